"""The interface of a link: one source that is polled again and again, its state, and offsets.

An offset has the admitted entries of every link, and the time of admission. It counts entries of
the journal, so that the same offsets always stand for the same splits. In a checkpoint
it is plain JSON. `file_link` and `generator_link` are links.

The timeline of a link has the times of its entries, and with them the order of their admission.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from terascope.connectors.base import Edge
from terascope.connectors.live.journal import Entry, Found, LinkJournal
from terascope.connectors.live.settings import PACKET_CLOCK, LinkClock, LiveSettings
from terascope.connectors.packets.planning import NANOSECONDS, CutRule, cutting
from terascope.connectors.packets.words import Ints
from terascope.connectors.registry import Interface

NEVER: Final = (1 << 63) - 1
UNKNOWN: Final = -1

Seen = Mapping[str, tuple[int, int]]
"""Column -> the smallest and largest value admitted so far."""


@dataclass(frozen=True)
class LinkOffset:
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
    """The last time at which it could be read; of a replay, at which it gave something."""
    is_away: bool = False
    """Whether the link cannot be read: its watermark stands still."""
    is_left_behind: bool = False
    """Whether the link was away or, as a replay, silent for longer than the liveness limit: the
    wall clock moves its watermark, so that the sources that are combined with it go on."""


@dataclass(frozen=True)
class Offset:
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
        return Offset({name: LinkOffset() for name in names})

    def link(self, name: str) -> LinkOffset:
        """The offset of a link; its start when the offset does not contain it."""
        return self.links.get(name, LinkOffset())

    def to_json(self) -> dict[str, Any]:
        links = {name: {**vars(link), "seen": dict(link.seen)} for name, link in self.links.items()}
        return {**vars(self), "links": links}

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Offset:
        links = {}
        for name, link in held["links"].items():
            seen = {column: (low, high) for column, (low, high) in link["seen"].items()}
            links[name] = LinkOffset(**{**link, "seen": seen})
        return Offset(**{**held, "links": links})


def no_times() -> Ints:
    return np.empty((0, 2), np.int64)


@dataclass
class LinkTimeline:
    """The times of the entries of a link that the journal still has."""

    base: int = 0
    times: Ints = field(default_factory=no_times)
    """First and last time of each: UNKNOWN, or NEVER as the first time when it has no tuples."""
    order: Ints = field(default_factory=no_times)
    """The order of admission: the first time of each, but no smaller than the entry's before."""
    due: Ints = field(default_factory=no_times)
    """The largest time of each entry and of all before it."""
    oldest: Ints = field(default_factory=no_times)
    """The smallest time of each entry and of all after it."""

    def follow(self, journal: LinkJournal, clock: LinkClock | None) -> None:
        """Add the new entries of the journal, and drop the entries that it has dropped."""
        gone = journal.base - self.base
        new = journal.entries[max(len(self.times) - gone, 0) :]
        if not gone and not new:
            return
        self.base = journal.base
        unknown = [(NEVER if entry.empty else UNKNOWN, UNKNOWN) for entry in new]
        times = [entry.times_ns(clock) or other for entry, other in zip(new, unknown, strict=True)]
        self.times = np.concatenate([self.times[gone:], np.array(times, np.int64).reshape(-1, 2)])
        low, high = self.times.T
        self.order = np.maximum.accumulate(np.where(low == NEVER, UNKNOWN, low))
        self.due = np.maximum.accumulate(high)
        self.oldest = np.minimum.accumulate(low[::-1])[::-1]


@dataclass(kw_only=True)
class Link(ABC):
    """One source that is looked at again and again, and its entries."""

    interface: Interface
    clock: LinkClock | None
    settings: LiveSettings
    edge: Edge | None
    journal: LinkJournal
    spool: Path
    """The folder of files that the link writes."""
    now: Callable[[], int]
    timeline: LinkTimeline = field(default_factory=LinkTimeline)
    admitted: int = 0
    """Entries of the journal that are admitted."""
    looked_ns: int | None = None
    """The clock before the last complete look."""
    stalled: str | None = None
    """Why it cannot be read, or not to its end."""
    exhausted: bool = False
    """Nothing more can come."""
    holds_back: bool = False
    """Something is there that cannot be read yet: the link is not known to be quiet."""
    grown_ns: int | None = None

    @property
    def split_bytes(self) -> int:
        """About the size of splits: no split may be longer than what a micro-batch reads, and one
        that is to end at an edge may be one and a half times as long.
        """
        settings, most = self.settings, self.settings.most_bytes
        if self.edge is not None and settings.piece_ns is None:
            most = most * 2 // 3
        return max(min(settings.split_bytes, most), 1)

    @property
    def cut_rule(self) -> CutRule:
        """The rule for cutting files, in ticks of the clock."""
        clock, piece_ns = self.clock, self.settings.piece_ns
        if clock is None:
            return cutting(self.split_bytes, None)
        if piece_ns is not None:
            # However little there is: what waits for more bytes would come late.
            return CutRule(1, self.split_bytes, max(piece_ns // clock.tick_ns, 1))
        ticks = NANOSECONDS if clock is PACKET_CLOCK else {clock.column: 1}
        return cutting(self.split_bytes, self.edge, ticks)

    @property
    def frontier_ns(self) -> int | None:
        """The least time of data that was not found yet; None when it is unknown."""
        return None

    @property
    def files(self) -> int:
        return len(self.journal.files)

    @property
    def is_away(self) -> bool:
        """Whether the source cannot be read at all."""
        return self.stalled is not None and self.holds_back

    @property
    def is_lost(self) -> bool:
        """Whether its next data was found and is gone: no task could read it."""
        if not self.is_away or self.pending <= 0:
            return False
        return not Path(self.next_entry.split.path).exists()

    @property
    def pending(self) -> int:
        """The number of entries that are not admitted."""
        return self.journal.count - self.admitted

    @property
    def next_entry(self) -> Entry:
        return self.journal.entries[self.admitted - self.journal.base]

    def next_start(self, until_ns: int | None) -> int | None:
        """The start of the next entry; None when no pending entry is due."""
        place = self.admitted - self.journal.base
        if self.pending <= 0 or (until_ns is not None and self.timeline.due[place] > until_ns):
            return None
        return int(self.timeline.order[place])

    @property
    def oldest_pending(self) -> int:
        """The first time of the pending entries; NEVER of none."""
        place = self.admitted - self.timeline.base
        return int(self.timeline.oldest[place]) if place < len(self.timeline.oldest) else NEVER

    def follow_journal(self) -> None:
        self.timeline.follow(self.journal, self.clock)

    @abstractmethod
    def look(self, reading: int | None) -> Iterator[Found | str]:
        """The data until `reading`; a path alone is a file that is gone for good."""

    @abstractmethod
    def marks(self) -> dict[str, int]:
        """Facts that a restart needs besides the journal of the link."""

    @abstractmethod
    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on after a restart."""

    @abstractmethod
    def release(self) -> None:
        """Entries are committed: delete the files that only they needed."""

    def state(self) -> LinkState:
        backlog = self.journal.entries[max(self.admitted - self.journal.base, 0) :]
        size = sum(entry.size for entry in backlog)
        return LinkState(
            self.interface.name, size, len(backlog), self.files, self.stalled, self.grown_ns
        )


@dataclass(frozen=True)
class LinkState:
    """The state of a link, for status and metrics."""

    name: str
    backlog_bytes: int
    backlog_splits: int
    files: int
    stalled: str | None
    grown_ns: int | None
    """The time at which the link grew last, by the wall clock."""
