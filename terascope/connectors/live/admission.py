"""Admission: the entries that the next micro-batch reads.

In: the pending entries of each link, and the clock. Out: the number of entries to take from each
link. The entry with the smallest first time goes first, so that no link runs ahead of the others,
until the bytes of the micro-batch are enough.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from terascope.connectors.live.journal import Entry, LinkJournal
from terascope.connectors.live.link import LinkOffset, Seen
from terascope.connectors.live.settings import LinkClock
from terascope.connectors.packets.words import Ints

NEVER: Final = (1 << 63) - 1
UNKNOWN: Final = -1


def no_times() -> Ints:
    return np.empty(0, np.int64)


@dataclass
class LinkTimeline:
    """The times of the entries of a link that the journal still has."""

    clock: LinkClock | None
    base: int = 0
    low: Ints = field(default_factory=no_times)
    """First time of each; NEVER when it has no tuples, UNKNOWN when nothing is known."""
    high: Ints = field(default_factory=no_times)
    order: Ints = field(default_factory=no_times)
    """The order of admission: the first time of each, but no smaller than the entry's before."""
    due: Ints = field(default_factory=no_times)
    """The largest time of each entry and of all before it."""
    oldest: Ints = field(default_factory=no_times)
    """The smallest time of each entry and of all after it."""

    def follow(self, journal: LinkJournal) -> None:
        """Add the new entries of the journal, and drop those that it has dropped."""
        gone = journal.base - self.base
        new = journal.entries[max(len(self.low) - gone, 0) :]
        if not gone and not new:
            return
        self.base = journal.base
        times = [self._times(entry) for entry in new]
        fresh = np.array(times, np.int64).reshape(-1, 2)
        self.low = np.concatenate([self.low[gone:], fresh[:, 0]])
        self.high = np.concatenate([self.high[gone:], fresh[:, 1]])
        known = np.where(self.low == NEVER, UNKNOWN, self.low)
        self.order = np.maximum.accumulate(known)
        self.due = np.maximum.accumulate(self.high)
        self.oldest = np.minimum.accumulate(self.low[::-1])[::-1]

    def _times(self, entry: Entry) -> tuple[int, int]:
        times = entry.times_ns(self.clock)
        if times is not None:
            return times
        return (NEVER, UNKNOWN) if entry.empty else (UNKNOWN, UNKNOWN)

    def oldest_after(self, count: int) -> int:
        """The first time of the entries that are not among the first `count`; NEVER of none."""
        place = count - self.base
        return int(self.oldest[place]) if place < len(self.oldest) else NEVER


@dataclass
class PendingLink:
    """A link, and how many of its entries are admitted."""

    journal: LinkJournal
    timeline: LinkTimeline
    count: int

    def next_start(self, until_ns: int | None) -> int | None:
        """When the next entry starts; None when there is none that is due."""
        place = self.count - self.journal.base
        if place >= len(self.journal.entries):
            return None
        if until_ns is not None and int(self.timeline.due[place]) > until_ns:
            return None
        return int(self.timeline.order[place])

    def take(self) -> Entry:
        """The next entry."""
        self.count += 1
        return self.journal.entries[self.count - 1 - self.journal.base]

    @property
    def next_size(self) -> int:
        return self.journal.entries[self.count - self.journal.base].size


def admit(
    links: Mapping[str, PendingLink], most_bytes: int, until_ns: int | None
) -> dict[str, list[Entry]]:
    """Move the counts of the links on, as far as the bytes allow and, in a paced replay, entries
    are due at `until_ns`; return the taken entries.
    """
    taken: dict[str, list[Entry]] = {name: [] for name in links}
    queue = [
        (start, name)
        for name, link in links.items()
        if (start := link.next_start(until_ns)) is not None
    ]
    heapq.heapify(queue)
    total = 0
    while queue:
        _, name = heapq.heappop(queue)
        link = links[name]
        if total and total + link.next_size > most_bytes:
            break
        # An empty split counts too, or a batch could have any number of them.
        total += max(link.next_size, 1)
        taken[name].append(link.take())
        if (start := link.next_start(until_ns)) is not None:
            heapq.heappush(queue, (start, name))
    return taken


def seen_with(before: LinkOffset, taken: Sequence[Entry]) -> Seen:
    """The bounds of the columns over all admitted entries, these included."""
    seen, begun = dict(before.seen), before.begun
    for entry in taken:
        if entry.empty:
            continue
        bounds = {name: (low, high) for name, low, high in entry.split.bounds}
        held = seen if begun else bounds
        seen = {
            name: (min(low, bounds[name][0]), max(high, bounds[name][1]))
            for name, (low, high) in held.items()
            if name in bounds
        }
        begun = True
    return seen


def in_order_of_time(
    entries: Mapping[str, Sequence[Entry]], clocks: Mapping[str, LinkClock | None]
) -> list[Entry]:
    """Entries of several links by their first times; those of one link stay in their order."""
    placed = []
    for name, held in entries.items():
        latest = UNKNOWN
        for place, entry in enumerate(held):
            times = entry.times_ns(clocks[name])
            latest = max(latest, times[0] if times else UNKNOWN)
            placed.append((latest, name, place, entry))
    placed.sort(key=lambda one: one[:3])
    return [entry for _, _, _, entry in placed]
