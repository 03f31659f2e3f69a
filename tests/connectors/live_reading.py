"""What the tests of live sources share: a clock that is told the time, and reading the offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from terascope.connectors.base import POSITION, Column, Edge, ReadReport, Split
from terascope.connectors.live import LinkClock, Links, LiveSettings, Offset, Speed
from terascope.connectors.registry import Interface, parse_interface, read_split
from terascope.types import Type

SECOND = 1_000_000_000
START = 1_600_000_000
PLACES = (Column(POSITION, Type.LLONG), Column("timestamp", Type.ULLONG))


@dataclass
class Wall:
    """The time, as the test says it."""

    ns: int = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.ns

    def pass_seconds(self, seconds: float) -> None:
        self.ns += round(seconds * SECOND)


@dataclass
class Run:
    """A reader that goes from offset to offset, and remembers what it was given."""

    sources: Sequence[str]
    folder: Path
    settings: LiveSettings = field(default_factory=LiveSettings)
    clocks: Mapping[str, LinkClock | None] = field(default_factory=dict)
    edge: Edge | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    wall: Wall = field(default_factory=Wall)
    given: list[list[Split]] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reopen()
        self.offsets.append(self.links.initial())

    def reopen(self) -> None:
        """As after a restart; the offsets are in the checkpoint."""
        self.links = Links(
            self.interfaces(), self.clocks, self.edge, self.settings, self.folder, self.wall
        )
        self.offsets = [Offset.from_json(offset.to_json()) for offset in self.offsets]

    def interfaces(self) -> list[Interface]:
        return [parse_interface(text, self.options) for text in self.sources]

    @property
    def offset(self) -> Offset:
        return self.offsets[-1]

    def step(self) -> list[Split]:
        """One look, and one micro-batch."""
        self.links.poll()
        self.offsets.append(self.links.latest(self.offset))
        self.given.append(self.links.splits(*self.offsets[-2:]))
        return self.given[-1]

    def step_until_ended(self, seconds: float = 0.0, most: int = 10_000) -> None:
        for _ in range(most):
            if self.offset.ended:
                return
            self.step()
            self.wall.pass_seconds(seconds)
        raise AssertionError("it does not end")

    @property
    def all_splits(self) -> list[Split]:
        return [split for batch in self.given for split in batch]


def live(**settings: object) -> LiveSettings:
    return LiveSettings(**settings)  # type: ignore[arg-type]


def replay(speed: str, **settings: object) -> LiveSettings:
    return LiveSettings(Speed.parse(speed), **settings)  # type: ignore[arg-type]


def read(
    splits: Sequence[Split], columns: Sequence[Column] = PLACES
) -> tuple[list[tuple[object, ...]], ReadReport]:
    """All tuples of the splits, and what was counted."""
    report = ReadReport()
    rows: list[tuple[object, ...]] = []
    for split in splits:
        for batch in read_split(split, columns, report):
            lines = [batch.column(k).to_pylist() for k in range(batch.num_columns)]
            rows += zip(*lines, strict=True)
    return rows, report


def batch_rows(
    run: Run, columns: Sequence[Column] = PLACES
) -> tuple[list[tuple[object, ...]], ReadReport]:
    """What a batch reads of the same sources."""
    splits = [split for one in run.interfaces() for split in one.splits(1 << 40)]
    return read(splits, columns)
