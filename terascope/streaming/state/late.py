"""Tuples that come when a slice they belong to is closed: counted, and kept apart on request.

In: batches of tuples, and for each interface the values of its ordered columns below which a slice
of some query is closed. Out: how many came too late, and their rows in files of their own, with
the column and the watermark. They are late by the watermark of their own source: it
said that no such tuple would come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from terascope.execute.results.parts import Part, PartWriter
from terascope.files import PRIVATE, escaped, make_folder
from terascope.physical.delivery import PartFormat
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.rel import Field
from terascope.types import Type

ClosedColumn: TypeAlias = tuple[str, SliceValue, str, bool]
"""A column, the value below which a slice of a stream is closed, the key of the stream, and whether
the column falls: then slices above the value are closed."""
LATE: Final = "late:"
"""Before the name of an interface: who has the rows of its late tuples."""


class LateWatch:
    """Looks at the tuples of one task."""

    def __init__(
        self,
        closed: Mapping[str, Sequence[ClosedColumn]],
        folder: str | None,
        fields: Sequence[Field] = (),
        format: PartFormat = "parquet",
        mode: int = PRIVATE,
    ) -> None:
        """`fields`: the columns of the tuples, those that are kept."""
        self._closed = closed
        self._folder = folder
        self._fields = tuple(fields)
        self._format = format
        self._mode = mode
        self._writers: dict[str, PartWriter] = {}
        self.counts: Counter[str] = Counter()
        self.by_stream: dict[str, Counter[str]] = {}
        """By interface, then by the key of the low-level stream that misses them."""
        self.behind: dict[str, dict[str, SliceValue]] = {}
        """By interface and column: how far a late tuple was behind a closed slice, at most."""

    def see(
        self,
        columns: pa.RecordBatch,
        interface: str,
        smallest: Mapping[str, Any],
        largest: Mapping[str, Any],
    ) -> None:
        """`smallest`, `largest`: of the ordered columns in this batch, or further apart; most
        batches are told by these.
        """
        late: pa.Array | None = None
        found: dict[tuple[str, SliceValue], pa.Array] = {}
        for name, limit, stream, falls in self._closed.get(interface, ()):
            if name not in smallest:
                continue
            excess = largest[name] - limit if falls else limit - smallest[name]
            if excess <= 0:
                continue
            if (name, limit) not in found:
                is_late = pc.greater if falls else pc.less
                mask = pc.fill_null(is_late(columns.column(name), limit), False)
                found[name, limit] = mask
                late = mask if late is None else pc.or_(late, mask)
                behind = self.behind.setdefault(interface, {})
                behind[name] = max(behind.get(name, 0), excess)
            missed = pc.sum(found[name, limit]).as_py() or 0
            self.by_stream.setdefault(interface, Counter())[stream] += missed
        if late is None:
            return
        rows = columns.filter(late)
        self.counts[interface] += rows.num_rows
        if self._folder is not None and rows.num_rows:
            self._keep(rows, interface)

    def _keep(self, rows: pa.RecordBatch, interface: str) -> None:
        assert self._folder is not None
        if interface not in self._writers:
            folder = Path(self._folder) / escaped(interface)
            make_folder(folder, self._mode)
            self._writers[interface] = PartWriter(
                folder, self._format, self._fields, mode=self._mode
            )
        names = [f.name for f in self._fields]
        self._writers[interface].write(rows.select(names))

    def close(self) -> Iterator[tuple[str, str]]:
        for interface, writer in self._writers.items():
            yield "part", Part(LATE + interface, *writer.close()).told()


def kept_fields(names: Sequence[str], types: Sequence[Type]) -> tuple[Field, ...]:
    """The columns that are kept of late tuples: those that were read, but for marks of our own."""
    return tuple(
        Field(name, type)
        for name, type in zip(names, types, strict=True)
        if not name.startswith("#")
    )
