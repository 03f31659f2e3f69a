"""The folder of a stream, grown step by step as a run would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import arrow_type
from terascope.execute.results.result_files import parquet_batch
from terascope.kernels.encode.text import csv_header, csv_lines, json_lines
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import RowFormat
from terascope.types import Type, parse_ip

FIELDS = (
    Field("tb", Type.UINT),
    Field("srcIP", Type.IP),
    Field("share", Type.FLOAT),
    Field("name", Type.STRING),
    Field("bad", Type.BOOL),
    Field("payload", Type.BINARY),
)
ROWS: tuple[tuple[object, ...], ...] = (
    (1, parse_ip("10.0.0.1"), 0.5, 'a "b", c\nd', True, b"\x00\xff"),
    (2**62 + 1, parse_ip("2001:db8::1"), -1e300, "", False, b"\x01"),
    (None, None, None, None, None, None),
)
READABLE = [
    {
        "tb": 1,
        "srcIP": "10.0.0.1",
        "share": 0.5,
        "name": 'a "b", c\nd',
        "bad": True,
        "payload": "00ff",
    },
    {
        "tb": 2**62 + 1,
        "srcIP": "2001:db8::1",
        "share": -1e300,
        "name": "",
        "bad": False,
        "payload": "01",
    },
    dict.fromkeys(("tb", "srcIP", "share", "name", "bad", "payload")),
]


@dataclass
class WrittenStream:
    """Writes what a run writes for one named stream."""

    folder: Path
    format: RowFormat = "parquet"
    fields: Sequence[Field] = FIELDS
    query: str = "talkers"
    files: int = field(default=0)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.jsonl"

    def append(self, text: str) -> None:
        with self.manifest.open("a", encoding="utf-8") as file:
            file.write(text)

    def header(self, **changes: object) -> None:
        fields = [{"name": f.name, "type": f.type.value} for f in self.fields]
        told = {"query": self.query, "format": self.format, "fields": fields, "version": 1}
        self.append(json.dumps(told | changes) + "\n")

    def batch(self, number: int, *files: Sequence[tuple[object, ...]]) -> str:
        """Files with these rows, and the line of the manifest that tells of them."""
        names = [{"name": self.file(rows), "rows": len(rows)} for rows in files]
        told = {"batch": number, "rows": sum(map(len, files)), "files": names}
        return json.dumps(told) + "\n"

    def add(self, number: int, *files: Sequence[tuple[object, ...]]) -> None:
        self.append(self.batch(number, *files))

    def file(self, rows: Sequence[tuple[object, ...]]) -> str:
        self.files += 1
        name = f"part-{self.files:032x}.{self.format}"
        types = [f.type for f in self.fields]
        names = [f.name for f in self.fields]
        columns = [
            pa.array([row[place] for row in rows], arrow_type(type))
            for place, type in enumerate(types)
        ]
        path = self.folder / name
        match self.format:
            case "parquet":
                pq.write_table(pa.Table.from_batches([parquet_batch(columns, self.fields)]), path)
            case "csv":
                path.write_bytes(csv_header(names) + csv_lines(columns, types))
            case "ndjson":
                path.write_bytes(json_lines(names, columns, types))
        return name
