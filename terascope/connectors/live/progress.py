"""Progress: the offset that follows from admitted entries, and the watermarks of the links.

In: the offset before, the taken entries, and the clock. Out: the offset after: counts, bounds of
columns, the watermarks of links, and whether the stream has ended.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.connectors.live.admission import NEVER, PendingLink, seen_with
from terascope.connectors.live.journal import Entry
from terascope.connectors.live.link import Link, LinkOffset, Offset, Seen
from terascope.connectors.live.settings import LinkClock, LiveSettings


def decided(
    before: LinkOffset,
    name: str,
    taken: Sequence[Entry],
    is_drained: bool,
    now_ns: int,
    clock: LinkClock | None,
    settings: LiveSettings,
) -> bool | None:
    """Whether a followed source is a replay after it has given `taken`."""
    if before.is_replay is False or settings.speed is not None:
        return before.is_replay
    if name in settings.replays:
        return True
    if settings.replay_limit_ns is None:
        return False
    times = [held for entry in taken if (held := entry.times_ns(clock)) is not None]
    if not times or clock is None:
        return before.is_replay
    near = settings.skew_ns + max(settings.heartbeat_ns, clock.tick_ns)
    if is_drained and abs(now_ns - max(last for _, last in times)) <= near:
        return False
    if before.is_replay is None:
        first = min(first for first, _ in times)
        return abs(now_ns - first) > settings.skew_ns + settings.replay_limit_ns
    return True


def is_away(link: Link) -> bool:
    """Whether a source cannot be read at all."""
    return link.stalled is not None and link.holds_back


def last_alive(
    before: LinkOffset,
    link: Link,
    pending: PendingLink,
    gave: bool,
    is_replay: bool | None,
    now_ns: int,
) -> int:
    """When a source was last known to be there; a replay shows that by giving something."""
    is_pending = pending.count < pending.journal.count
    if not is_away(link) and (not is_replay or gave or is_pending):
        return now_ns
    return now_ns if before.alive_ns is None else before.alive_ns


def live_partners(
    name: str, links: Mapping[str, LinkOffset], settings: LiveSettings
) -> Iterable[str]:
    """The sources combined with this one whose watermarks the wall clock moves."""
    partners = links.keys() if settings.partners is None else settings.partners.get(name, ())
    return [
        other
        for other in partners
        if other != name and other in links and links[other].begun and not links[other].is_replay
    ]


def is_left_behind(
    name: str, links: Mapping[str, LinkOffset], now_ns: int, settings: LiveSettings
) -> bool:
    """Whether others go on without a source that was not alive for the liveness limit."""
    alive, limit = links[name].alive_ns, settings.liveness_of(name)
    if alive is None or limit is None or now_ns - alive < limit:
        return False
    return bool(live_partners(name, links, settings))


def follows_the_wall(name: str, links: Mapping[str, LinkOffset], settings: LiveSettings) -> bool:
    """Whether silence of a source that can be read moves its watermark by the wall clock."""
    link = links[name]
    if link.is_replay is not None or link.begun or settings.speed is not None:
        return not link.is_replay
    return bool(live_partners(name, links, settings))


@dataclass(frozen=True)
class LinkProgress:
    """The state of the links from which the next offset is computed."""

    settings: LiveSettings
    links: Mapping[str, Link]
    clocks: Mapping[str, LinkClock | None]
    looked: Mapping[str, int]
    """The clock before the last complete look at each link."""

    def offset(
        self,
        start: Offset,
        pending: Mapping[str, PendingLink],
        taken: Mapping[str, Sequence[Entry]],
        reading: int | None,
        wall_ns: int,
    ) -> Offset:
        """The offset after `taken`; the one before when nothing has changed in its heartbeat.
        `reading` None: what is admitted says what time it is. `wall_ns` is the time on the wall,
        which may have been set back since the offset before.
        """
        seen = {name: seen_with(start.link(name), taken[name]) for name in pending}
        drained = all(link.count == link.journal.count for link in pending.values())
        ended = start.ended or (drained and all(link.exhausted for link in self.links.values()))
        if reading is None:
            reading = self._data_time(start, pending, seen)
        now = max(reading, start.now_ns)
        beat = self.settings.heartbeat_ns
        tick = max(now // beat, start.tick) if beat else 0
        if not any(taken.values()) and tick == start.tick and ended == start.ended:
            return start
        beat_ns = tick * beat if beat else now
        links = {
            name: self._link_offset(name, start.link(name), link, taken[name], seen[name], beat_ns)
            for name, link in pending.items()
        }
        # Whether the wall clock moves a watermark depends on the other links.
        left = {name: is_left_behind(name, links, beat_ns, self.settings) for name in links}
        links = {name: replace(link, is_left_behind=left[name]) for name, link in links.items()}
        quiet = {name: self._quiet(name, links, link, now) for name, link in pending.items()}
        links = {name: replace(link, quiet_ns=quiet[name]) for name, link in links.items()}
        return Offset(links, tick, beat_ns, ended, max(wall_ns, start.arrived_ns))

    def _link_offset(
        self,
        name: str,
        before: LinkOffset,
        pending: PendingLink,
        taken: Sequence[Entry],
        seen: Seen,
        now: int,
    ) -> LinkOffset:
        """The offset of a link, still with its old watermark."""
        link = self.links[name]
        gave = any(not entry.empty for entry in taken)
        drained = pending.count == pending.journal.count and not link.holds_back
        is_replay = decided(
            before, name, taken, drained, now, self.clocks[name], self.settings
        )  # fmt: skip
        alive = last_alive(before, link, pending, gave, is_replay, now)
        begun = before.begun or gave
        return LinkOffset(
            pending.count, before.quiet_ns, seen, begun, is_replay, alive, is_away(link)
        )  # fmt: skip

    def _data_time(
        self,
        start: Offset,
        pending: Mapping[str, PendingLink],
        seen: Mapping[str, Seen],
    ) -> int:
        """The time of a replay as fast as can be: the first that is not admitted, or the last."""
        firsts = [link.timeline.oldest_after(link.count) for link in pending.values()]
        firsts += [f for link in self.links.values() if (f := link.frontier_ns) is not None]
        first = min(firsts, default=NEVER)
        if first < NEVER:
            return max(first, start.now_ns)
        lasts = [
            seen[name][clock.column][1] * clock.tick_ns
            for name, clock in self.clocks.items()
            if clock is not None and clock.column in seen[name]
        ]
        return max(lasts, default=start.now_ns)

    def _quiet(
        self, name: str, links: Mapping[str, LinkOffset], pending: PendingLink, now: int
    ) -> int | None:
        """The watermark of a link: all older tuples are admitted. It never falls."""
        before = links[name].quiet_ns
        beat = self.settings.heartbeat_ns
        link = self.links[name]
        looked = self.looked.get(name)
        if self.settings.speed is not None and not link.holds_back:
            looked = now  # nothing comes to what is replayed
        if links[name].is_left_behind:
            looked = now
        elif not follows_the_wall(name, links, self.settings):
            return before
        if not beat or looked is None:
            return before
        frontier = link.frontier_ns
        known = min(looked, pending.timeline.oldest_after(pending.count))
        known = known if frontier is None else min(known, frontier)
        if known < 0:
            return before
        return max(known // beat * beat, before or 0)
