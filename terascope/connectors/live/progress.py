"""Progress: the entries that the next micro-batch reads, and the offset after them.

In: the offset before, the pending entries of each link, and the clock. Out: the number of entries
to take from each link, and the offset after: counts, bounds of columns, the watermarks of links,
and whether the stream has ended. The entry with the smallest first time goes first, so that no link
runs ahead of the others, until the bytes of the micro-batch are enough.

Which clock moves the watermark of a followed source, the wall clock or its own? The wall clock
moves the watermark of a silent live source: nothing older will come. That is wrong of a source that
gives old data, such as captures of last year that are copied into a followed folder piece by piece:
every piece after the first would be late. So its first tuples decide. If they are further from the
wall clock than the skew and a limit, before it or after it, the source is a *replay*, whose
watermark only its tuples move. A replay that has caught up with the wall clock, as a backlog does
that is read after an outage, is live from then on. A live source never becomes a replay, for a
watermark never falls.

A source that has given nothing yet is moved by the wall clock only for the sake of live sources
that a query combines with it. And a source that cannot be read, or a replay that gives nothing,
stops its watermark; the live sources that are combined with it go on without it after the liveness
limit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.connectors.live.journal import Entry
from terascope.connectors.live.link import NEVER, UNKNOWN, Link, LinkOffset, Offset, Seen
from terascope.connectors.live.settings import LiveSettings


def admit(
    links: Mapping[str, Link], most_bytes: int, until_ns: int | None
) -> dict[str, list[Entry]]:
    """Move the counts of the links on, as far as the bytes allow and, in a paced replay, entries
    are due at `until_ns`; return the taken entries.
    """
    taken: dict[str, list[Entry]] = {name: [] for name in links}
    queue = [
        (start, name)
        for name, link in links.items()
        if not link.is_lost and (start := link.next_start(until_ns)) is not None
    ]
    heapq.heapify(queue)
    total = 0
    while queue:
        _, name = heapq.heappop(queue)
        link = links[name]
        entry = link.next_entry
        if total and total + entry.size > most_bytes:
            break
        # An empty split counts too, or a batch could have any number of them.
        total += max(entry.size, 1)
        taken[name].append(entry)
        link.admitted += 1
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


def in_order_of_time(entries: Iterable[tuple[Link, Sequence[Entry]]]) -> list[Entry]:
    """Entries of several links by their first times; those of one link stay in their order."""
    placed = []
    for link, held in entries:
        latest = UNKNOWN
        for place, entry in enumerate(held):
            times = entry.times_ns(link.clock)
            latest = max(latest, times[0] if times else UNKNOWN)
            placed.append((latest, link.interface.name, place, entry))
    placed.sort(key=lambda one: one[:3])
    return [entry for _, _, _, entry in placed]


@dataclass(frozen=True)
class LinkProgress:
    """The offsets of links, by their settings and the state of each."""

    settings: LiveSettings
    links: Mapping[str, Link]

    def offset(
        self,
        start: Offset,
        taken: Mapping[str, Sequence[Entry]],
        reading: int | None,
        wall_ns: int,
    ) -> Offset:
        """The offset after `taken`; the one before when nothing has changed in its heartbeat.
        `reading` None: what is admitted says what time it is. `wall_ns` is the time on the wall,
        which may have been set back since the offset before.
        """
        seen = {name: seen_with(start.link(name), taken[name]) for name in self.links}
        is_over = all(link.exhausted and link.pending == 0 for link in self.links.values())
        ended = start.ended or is_over
        if reading is None:
            reading = self._data_time(start, seen)
        now = max(reading, start.now_ns)
        beat = self.settings.heartbeat_ns
        tick = max(now // beat, start.tick) if beat else 0
        if not any(taken.values()) and tick == start.tick and ended == start.ended:
            return start
        beat_ns = tick * beat if beat else now
        links = {
            name: self._link_offset(link, start.link(name), taken[name], seen[name], beat_ns)
            for name, link in self.links.items()
        }
        # Whether the wall clock moves a watermark depends on the other links.
        left = {name: self._is_left_behind(name, links, beat_ns) for name in links}
        links = {name: replace(link, is_left_behind=left[name]) for name, link in links.items()}
        quiet = {name: self._quiet(name, links, now) for name in links}
        links = {name: replace(link, quiet_ns=quiet[name]) for name, link in links.items()}
        return Offset(links, tick, beat_ns, ended, max(wall_ns, start.arrived_ns))

    def _link_offset(
        self, link: Link, before: LinkOffset, taken: Sequence[Entry], seen: Seen, now: int
    ) -> LinkOffset:
        """The offset of a link, still with its old watermark."""
        gave = any(not entry.empty for entry in taken)
        is_replay = self._is_replay(link, before, taken, now)
        # When it was last known to be there; a replay shows that by giving something.
        is_alive = not link.is_away and (not is_replay or gave or link.pending > 0)
        alive = now if is_alive or before.alive_ns is None else before.alive_ns
        begun = before.begun or gave
        return LinkOffset(
            link.admitted, before.quiet_ns, seen, begun, is_replay, alive, link.is_away
        )

    def _is_replay(
        self, link: Link, before: LinkOffset, taken: Sequence[Entry], now_ns: int
    ) -> bool | None:
        """Whether a followed source is a replay after it has given `taken`."""
        settings, clock = self.settings, link.clock
        if before.is_replay is False or settings.speed is not None:
            return before.is_replay
        if link.interface.name in settings.replays:
            return True
        if settings.replay_limit_ns is None:
            return False
        times = [held for entry in taken if (held := entry.times_ns(clock)) is not None]
        if not times or clock is None:
            return before.is_replay
        near = settings.skew_ns + max(settings.heartbeat_ns, clock.tick_ns)
        is_drained = link.pending <= 0 and not link.holds_back
        if is_drained and abs(now_ns - max(last for _, last in times)) <= near:
            return False
        if before.is_replay is None:
            first = min(first for first, _ in times)
            return abs(now_ns - first) > settings.skew_ns + settings.replay_limit_ns
        return True

    def _has_live_partners(self, name: str, links: Mapping[str, LinkOffset]) -> bool:
        """Whether the wall clock moves the watermark of a source that is combined with this one."""
        own = self.settings.partners
        partners: Iterable[str] = links if own is None else own.get(name, ())
        return any(
            other != name and other in links and links[other].begun and not links[other].is_replay
            for other in partners
        )

    def _is_left_behind(self, name: str, links: Mapping[str, LinkOffset], now_ns: int) -> bool:
        """Whether others go on without a source that was not alive for the liveness limit."""
        alive, settings = links[name].alive_ns, self.settings
        limit = settings.own_liveness_ns.get(name, settings.liveness_ns)
        if alive is None or limit is None or now_ns - alive < limit:
            return False
        return self._has_live_partners(name, links)

    def _follows_the_wall(self, name: str, links: Mapping[str, LinkOffset]) -> bool:
        """Whether silence of a source that can be read moves its watermark by the wall clock."""
        link = links[name]
        if link.is_replay is not None or link.begun or self.settings.speed is not None:
            return not link.is_replay
        return self._has_live_partners(name, links)

    def _data_time(self, start: Offset, seen: Mapping[str, Seen]) -> int:
        """The time of a replay as fast as can be: the first that is not admitted, or the last."""
        firsts = [link.oldest_pending for link in self.links.values()]
        firsts += [f for link in self.links.values() if (f := link.frontier_ns) is not None]
        first = min(firsts, default=NEVER)
        if first < NEVER:
            return max(first, start.now_ns)
        lasts = [
            seen[name][link.clock.column][1] * link.clock.tick_ns
            for name, link in self.links.items()
            if link.clock is not None and link.clock.column in seen[name]
        ]
        return max(lasts, default=start.now_ns)

    def _quiet(self, name: str, links: Mapping[str, LinkOffset], now: int) -> int | None:
        """The watermark of a link: all older tuples are admitted. It never falls."""
        before = links[name].quiet_ns
        beat = self.settings.heartbeat_ns
        link = self.links[name]
        looked = link.looked_ns
        if self.settings.speed is not None and not link.holds_back:
            looked = now  # nothing comes to what is replayed
        if links[name].is_left_behind:
            looked = now
        elif not self._follows_the_wall(name, links):
            return before
        if not beat or looked is None:
            return before
        known = min(looked, link.oldest_pending)
        known = known if link.frontier_ns is None else min(known, link.frontier_ns)
        if known < 0:
            return before
        return max(known // beat * beat, before or 0)
