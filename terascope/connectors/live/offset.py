"""Offsets: the admitted entries of every link, and the time of admission.

In and out: plain JSON, for a checkpoint. An offset counts entries of the journal, so that the same
offsets always stand for the same splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Seen = Mapping[str, tuple[int, int]]
"""Column -> the smallest and largest value admitted so far."""


@dataclass(frozen=True)
class LinkOffset:
    """The offset of one link."""

    count: int = 0
    """Entries of its journal that are admitted."""
    quiet_ns: int | None = None
    """Every tuple older than this has been admitted; None when that cannot be said yet."""
    seen: Seen = field(default_factory=dict)
    """The bounds of the integer columns that have bounds in all admitted splits."""
    begun: bool = False
    """Whether a split with tuples was admitted: without one, nothing seen says nothing."""
    is_replay: bool | None = None
    """Whether it keeps its own clock, because that is far from the one on the wall; None: its first
    tuples have not come yet. A batch that is run again has the same answer, for it stands here."""
    alive_ns: int | None = None
    """The last time it could be read; of a replay, that it gave something."""
    is_away: bool = False
    """It cannot be read: its watermark stands still."""
    is_left_behind: bool = False
    """It was away or, as a replay, silent for longer than the liveness limit: the wall clock moves
    its watermark, so that the sources that are combined with it go on."""


@dataclass(frozen=True)
class Offset:
    """The offsets of all links."""

    links: Mapping[str, LinkOffset]
    tick: int = 0
    """Heartbeats of the clock; it moves when nothing else does."""
    now_ns: int = 0
    ended: bool = False
    """Nothing more can come."""
    arrived_ns: int = 0
    """The arrival time of the tuples since the offset before: by the wall clock, but never before
    earlier arrivals."""

    @staticmethod
    def initial(names: Iterable[str]) -> Offset:
        """Before anything."""
        return Offset({name: LinkOffset() for name in names})

    def link(self, name: str) -> LinkOffset:
        """The offset of a link; its start when the offset does not contain it."""
        return self.links.get(name, LinkOffset())

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        links = {name: {**vars(link), "seen": dict(link.seen)} for name, link in self.links.items()}
        return {**vars(self), "links": links}

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Offset:
        """Back from the plain dict."""
        links = {
            name: LinkOffset(
                int(link["count"]),
                link["quiet_ns"],
                {column: (int(low), int(high)) for column, (low, high) in link["seen"].items()},
                bool(link["begun"]),
                # Offsets that say nothing of it are of sources that the wall clock moved.
                link.get("is_replay", False if link["begun"] else None),
                link.get("alive_ns"),
                link.get("is_away", False),
                link.get("is_left_behind", False),
            )
            for name, link in held["links"].items()
        }
        return Offset(
            links, int(held["tick"]), int(held["now_ns"]), bool(held["ended"]),
            int(held.get("arrived_ns", 0)),
        )  # fmt: skip
