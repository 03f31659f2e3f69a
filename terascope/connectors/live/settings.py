"""The settings with which live sources are followed or replayed.

`LiveSettings` is for all links of a run, `Speed` is that of a replay, `LinkClock` is for each link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from terascope.connectors.base import TICK_NS, ClockUnit
from terascope.diagnostic import SourceError

PIECE_NS: Final = 200_000_000
"""A paced replay gives the trace in pieces of this length on the wall, where that can be."""
FASTEST: Final = "max"


@dataclass(frozen=True)
class Speed:
    """Seconds of the trace in a second on the wall."""

    factor: float | None
    """None: as fast as it can be read."""

    @property
    def is_paced(self) -> bool:
        return self.factor is not None

    def trace_ns(self, wall_ns: int) -> int:
        """The time of the trace for a time of the wall clock; only for a paced replay."""
        assert self.factor is not None, "the fastest replay does not ask the clock"
        return int(wall_ns * self.factor)

    @staticmethod
    def parse(text: str | None) -> Speed | None:
        """None is live.

        Raises:
            SourceError: the text is no speed.
        """
        if text is None:
            return None
        word = text.strip().lower()
        if word == FASTEST:
            return Speed(None)
        try:
            factor = float(word.removesuffix("x"))
        except ValueError:
            factor = math.nan
        if not (word.endswith("x") and 0 < factor < math.inf):
            raise SourceError(f"'{text}' is no speed; write 1x, 10x, 0.5x or {FASTEST}")
        return Speed(factor)

    def __str__(self) -> str:
        return FASTEST if self.factor is None else f"{self.factor:g}x"


@dataclass(frozen=True)
class LiveSettings:
    speed: Speed | None = None
    """None: sources are followed; else existing data is replayed."""
    until_idle: bool = False
    """Stop when all that is there has been read."""
    heartbeat_ns: int = 1_000_000_000
    """The interval at which silent sources move the offset; 0: never."""
    split_bytes: int = 4 << 20
    most_bytes: int = 256 << 20
    """The most bytes that one micro-batch reads, but at least one split."""
    skew_ns: int = 0
    """The most time by which a tuple of a live source may appear later than its own time."""
    replay_limit_ns: int | None = 60_000_000_000
    """A followed source whose first tuples are further from the clock on the wall than this and the
    skew is a replay and keeps its own clock; None: no source is."""
    replays: frozenset[str] = frozenset()
    """Sources that are replays whatever their tuples say."""
    liveness_ns: int | None = 300_000_000_000
    """The time for which live sources wait for a source that cannot be read, or for a replay that
    gives nothing; None: for ever."""
    own_liveness_ns: Mapping[str, int | None] = field(default_factory=dict)
    """The limits of sources for which queries set one."""
    partners: Mapping[str, frozenset[str]] | None = None
    """By source: the sources that some query combines with it, which wait for its watermark; None:
    every source is combined with every other."""

    @property
    def piece_ns(self) -> int | None:
        """Time of the trace in one piece of a paced replay; None when it is not paced."""
        if self.speed is None or not self.speed.is_paced:
            return None
        return max(self.speed.trace_ns(PIECE_NS), 1)


@dataclass(frozen=True)
class LinkClock:
    """The column of an interface that is its clock."""

    column: str
    unit: ClockUnit

    @property
    def tick_ns(self) -> int:
        return TICK_NS[self.unit]


PACKET_CLOCK: Final = LinkClock("timestamp", "ns")
"""The clock of packets, which is finer than any query may need."""
