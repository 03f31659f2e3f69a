"""JSON lines as a source: one object per line.

In: plain or gzip files. Out: Arrow batches of the wanted top-level keys; `#pos` counts the bytes
before a line in the unpacked file. A missing key and null are NULL. Values convert by their text: a
number in a STRING column is its text as written, "60" in an integer column is 60, an object or
array in a STRING column is its JSON. The source's own columns leave nested values out; strings are
IP when all of a sample are addresses, else STRING.

Options: max_row_bytes (16 MiB).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors import base
from terascope.connectors.base import Column, Range, ReadReport, Split
from terascope.connectors.file_bytes import head, is_gzip, opened, size_of
from terascope.connectors.tables import records
from terascope.connectors.tables.batches import text_column
from terascope.connectors.tables.convert import Converted
from terascope.connectors.tables.json_scan import scan_json
from terascope.connectors.tables.kernels import Int64s
from terascope.connectors.tables.records import RecordReader, Scanned
from terascope.diagnostic import SourceError
from terascope.types import Type, parse_ip

SAMPLE_LINES = 2000


class JsonConnector(records.TextConnector):
    """The kind `json`; `jsonl` and `ndjson` are the same."""

    kind = "json"
    suffixes = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """The keys seen in a sample of the first file that is not empty, in order of appearance."""
        records.check_names(self.kind, options, ("max_row_bytes",))
        for path in files:
            sample = head(path, records.SAMPLE_BYTES)
            if sample.strip():
                return _sampled_columns(sample[records.byte_order_mark(sample) :])
        raise SourceError("cannot tell the columns: every file is empty; declare a PROTOCOL")

    def ranges(
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: base.Edge | None
    ) -> list[Range]:
        records.check_names(self.kind, options, ("max_row_bytes",))
        records.row_limit(options)
        size = size_of(path)
        cuts = [] if is_gzip(path) else records.line_cuts(path, 0, size, target_bytes)
        return [Range(*ends) for ends in pairwise([0, *cuts, size])]

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        packed = is_gzip(split.path)
        if not packed and split.start == 0 and not head(split.path, records.SAMPLE_BYTES).strip():
            report.blame(split.path, base.FileFault.EMPTY)
            return
        start = split.start or records.byte_order_mark(head(split.path, 3))
        names = tuple(dict.fromkeys(c.name for c in columns if c.name != base.POSITION))
        slots = {name: slot for slot, name in enumerate(names)}

        def converted(scanned: Scanned, rows: Int64s, column: Column) -> Converted:
            found = text_column(scanned.texts(slots[column.name], rows), column)
            if column.name == base.INTERFACE and column.type is Type.STRING:
                # The objects' own interface where they say one, else the one they were read from.
                return Converted(pc.fill_null(found.values, split.source))
            return found

        reader = _record_reader(names, records.row_limit(dict(split.options)))
        yield from reader.batches(split, columns, start, converted, report)

    def fault(self, path: Path, options: Mapping[str, str]) -> None:
        """None, if the file can be opened: its lines are looked at one by one."""
        with opened(path):
            return


def _record_reader(names: Sequence[str], max_record: int) -> RecordReader:
    encoded = [name.encode() for name in names]
    keys = np.frombuffer(b"".join(encoded), np.uint8)
    key_offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    arrays = records.Arrays.of(len(names))
    scan = partial(scan_json, max_record, keys, key_offsets, arrays)
    return RecordReader(scan, arrays, max_record)


def sampled_keys(files: Sequence[Path]) -> frozenset[str]:
    """The keys of a sample of each file, those of nested values too."""
    return frozenset(key for path in files for key in _key_types(head(path, records.SAMPLE_BYTES)))


def _sampled_columns(sample: bytes) -> tuple[Column, ...]:
    return tuple(
        Column(name, Type.STRING if type is Type.NULL else type)
        for name, type in _key_types(sample).items()
        if type is not None
    )


def _key_types(sample: bytes) -> dict[str, Type | None]:
    """The keys of a sample, in order of appearance; no type is that of nested values."""
    types: dict[str, Type | None] = {}
    for line in sample.splitlines()[:SAMPLE_LINES]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # counted when it is read; the sample may also end within a line
        for key, value in row.items() if isinstance(row, dict) else ():
            seen = _type_of(value)
            before = types.get(key, Type.NULL)
            types[key] = seen if before is Type.NULL else _common(before, seen)
    return types


TYPES: Final = {NoneType: Type.NULL, bool: Type.BOOL, int: Type.INT, float: Type.FLOAT}
"""The types of values that are not strings."""


def _type_of(value: object) -> Type | None:
    """The type of one value; None for an object or array."""
    if isinstance(value, str):
        return Type.IP if parse_ip(value) else Type.STRING
    return TYPES.get(type(value))


def _common(left: Type | None, right: Type | None) -> Type | None:
    """The type of a column that has values of both; nested wins: such a column is left out."""
    if left is None or right is None:
        return None
    if left is right or right is Type.NULL:
        return left
    return Type.FLOAT if {left, right} == {Type.INT, Type.FLOAT} else Type.STRING
