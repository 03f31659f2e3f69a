"""The growth of a file: pieces that can be read now, and the position after them.

In: a file and its last position. Out: a `Growth`. There is one module for each form of file:
`captures`, `texts`, `columnar`; `timed` for all others, which are read once they stop growing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from terascope.connectors.base import Bounds, Connector, Edge, Options, Split
from terascope.connectors.cutting import NO_STEP, CutRule
from terascope.connectors.live.entry import FileState
from terascope.connectors.live.settings import PACKET_CLOCK, LinkClock
from terascope.connectors.packets.planning import cutting

INCOMPLETE_GZIP: Final = "its gzip stream is not complete"
INCOMPLETE_PARQUET: Final = "it is not a Parquet file, or not complete"


@dataclass(frozen=True)
class Cuts:
    """The sizes of pieces."""

    split_bytes: int
    edge: Edge | None = None
    piece_ns: int | None = None
    """For a paced replay: the most time in a piece."""

    def by_clock(self, clock: LinkClock | None) -> CutRule:
        """In ticks of a clock."""
        target = max(self.split_bytes, 1)
        if clock is None:
            return CutRule(target, target, NO_STEP)
        if self.piece_ns is not None:
            # However little there is: what waits for more bytes would come late.
            return CutRule(1, target, max(self.piece_ns // clock.tick_ns, 1))
        if self.edge is not None and self.edge.column == clock.column:
            step = self.edge.often or self.edge.step
            return CutRule(target // 2, target + target // 2, max(step, 0))
        return CutRule(target, target, NO_STEP)

    def for_packets(self) -> CutRule:
        """For captures, whose planner has all clocks of packets."""
        if self.piece_ns is not None:
            return self.by_clock(PACKET_CLOCK)
        return cutting(self.split_bytes, self.edge)


@dataclass(frozen=True)
class Followed:
    """A file that is looked at."""

    interface: str
    connector: Connector
    options: Options
    clock: LinkClock | None
    cuts: Cuts
    state: FileState
    size: int
    """As it was before anything was read."""
    settled: bool
    """It has not grown since the look before."""
    final: bool
    """Whether it seems to be finished: an incomplete record at its end is taken as it is."""
    ended: bool
    """Whether nothing will come any more, so that incomplete records stay incomplete."""

    @property
    def path(self) -> Path:
        return Path(self.state.path)

    def split(self, start: int, end: int, options: Options) -> Split:
        """A range of the file as a reader takes it."""
        return Split(
            self.connector.kind, self.interface, self.state.path, self.state.ordinal,
            start, end, options,
        )  # fmt: skip


@dataclass(frozen=True)
class FilePiece:
    """A piece that becomes a split."""

    start: int
    end: int
    options: Options
    bounds: Bounds
    size: int
    empty: bool = False


@dataclass(frozen=True)
class Growth:
    """The result of a look at a file."""

    pieces: tuple[FilePiece, ...]
    position: int
    carried: Options = ()
    closed: bool = False
    torn: str | None = None
    """The missing part of an incomplete record, if there is one."""
