"""Offsets: how much of every link has been admitted, and what time it was then.

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
    """How far one link is."""

    count: int = 0
    """Entries of its journal that are admitted."""
    quiet_ns: int | None = None
    """Every tuple older than this has been admitted; None when that cannot be said yet."""
    seen: Seen = field(default_factory=dict)
    """Of the integer columns with known bounds in all admitted splits."""
    begun: bool = False
    """Whether a split with tuples was admitted: without one, nothing seen says nothing."""


@dataclass(frozen=True)
class Offset:
    """How far all links are."""

    links: Mapping[str, LinkOffset]
    tick: int = 0
    """Heartbeats of the clock; it moves when nothing else does."""
    now_ns: int = 0
    ended: bool = False
    """Nothing more can come."""

    @staticmethod
    def initial(names: Iterable[str]) -> Offset:
        """Before anything."""
        return Offset({name: LinkOffset() for name in names})

    def link(self, name: str) -> LinkOffset:
        """How far a link is; at its start when the offset does not know it."""
        return self.links.get(name, LinkOffset())

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {
            "links": {
                name: {
                    "count": link.count,
                    "quiet_ns": link.quiet_ns,
                    "seen": {column: list(ends) for column, ends in link.seen.items()},
                    "begun": link.begun,
                }
                for name, link in self.links.items()
            },
            "tick": self.tick,
            "now_ns": self.now_ns,
            "ended": self.ended,
        }

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Offset:
        """Back from the plain dict."""
        links = {
            name: LinkOffset(
                int(link["count"]),
                link["quiet_ns"],
                {column: (int(low), int(high)) for column, (low, high) in link["seen"].items()},
                bool(link["begun"]),
            )
            for name, link in held["links"].items()
        }
        return Offset(links, int(held["tick"]), int(held["now_ns"]), bool(held["ended"]))
