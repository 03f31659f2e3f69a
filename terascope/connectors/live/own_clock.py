"""Which clock moves the watermark of a followed source: the wall clock, or its own.

The wall clock moves the watermark of a silent live source: nothing older will come. That is
wrong of a source that gives old data, such as captures of last year that are copied into a followed
folder piece by piece: every piece after the first would be late. So its first tuples decide. If
they are further from the wall clock than the skew and a limit, before it or after it, the source is
a *replay*, whose watermark only its tuples move. A replay that has caught up with the wall clock,
as a backlog does that is read after an outage, is live from then on. A live source never becomes a
replay, for a watermark never falls.

A source that has given nothing yet is moved by the wall clock only for the sake of live sources
that a query combines with it. And a source that cannot be read, or a replay that gives nothing,
stops its watermark; the live sources that are combined with it go on without it after the liveness
limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from terascope.connectors.live.admission import PendingLink
from terascope.connectors.live.entry import Entry
from terascope.connectors.live.link import Link
from terascope.connectors.live.offset import LinkOffset
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
