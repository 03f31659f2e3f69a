"""What the tests of the table connectors share: reading a source whole, however it is split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from terascope.connectors.base import Column, Connector, Edge, ReadReport, Split
from terascope.connectors.registry import Interface
from terascope.types import Type

SHARED = Path(__file__).resolve().parents[2] / "../shared"
WHOLE = 1 << 40
POSITION = Column("#pos", Type.LLONG)


@dataclass
class Seen:
    """Everything that reading a source gave."""

    rows: list[tuple[object, ...]] = field(default_factory=list)
    malformed: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    tuples: int = 0
    horizon: dict[str, int] = field(default_factory=dict)
    splits: int = 0


def splits_of(
    connector: Connector,
    interface: str,
    files: Sequence[Path],
    options: Mapping[str, str],
    target_bytes: int,
    edge: Edge | None = None,
) -> list[Split]:
    """The ranges of all files, each with its file's path and number."""
    owner = Interface(interface, connector.kind, "", tuple(sorted(options.items())))
    return [
        owner.split(path, ordinal, part)
        for ordinal, path in enumerate(files)
        for part in connector.ranges(path, options, target_bytes, edge)
    ]


def read_all(
    connector: Connector,
    files: Sequence[Path],
    columns: Sequence[Column],
    options: Mapping[str, str] | None = None,
    target_bytes: int = WHOLE,
) -> Seen:
    seen = Seen()
    for split in splits_of(connector, "if0", files, options or {}, target_bytes):
        report = ReadReport()
        for batch in connector.read(split, columns, report):
            batch.validate(full=True)
            assert batch.schema.names == [column.name for column in columns]
            lines = [batch.column(k).to_pylist() for k in range(batch.num_columns)]
            seen.rows += zip(*lines, strict=True)
        seen.malformed += report.malformed
        seen.bytes_read += report.bytes_read
        seen.tuples += report.tuples
        for name, value in report.horizon.items():
            seen.horizon[name] = max(value, seen.horizon.get(name, value))
        seen.splits += 1
    return seen


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def columns(**types: Type) -> tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in types.items())
