"""What a person should hear of while a set runs, once, when it happens.

In: the report of every micro-batch. Out: lines: a source is a replay, or has caught up; it is gone,
is back, or is left behind. The status says the same as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from terascope.connectors.live import LinkOffset
from terascope.stream.amounts import readable_seconds
from terascope.stream.report import BatchReport
from terascope.stream.status import SourceStatus


class Notices:
    """Compares each batch with the one before."""

    def __init__(self) -> None:
        self._before: Mapping[str, LinkOffset] = {}

    def hear(self, report: BatchReport, sources: Mapping[str, SourceStatus]) -> list[str]:
        """What is new since the last batch."""
        after = report.offset.links
        found = [
            line
            for name, link in after.items()
            if name in sources
            for line in changes(sources[name], self._before.get(name, LinkOffset()), link)
        ]
        self._before = after
        return found


def changes(source: SourceStatus, before: LinkOffset, after: LinkOffset) -> Iterator[str]:
    """What has become of one source."""
    if after.is_replay and not before.is_replay:
        yield f"{source.name} {replay_text(source)}"
    if before.is_replay and after.is_replay is False:
        yield f"{source.name} has caught up with the clock: it is live from now on"
    if after.is_away and not before.is_away:
        yield f"{source.name} cannot be read: {source.stalled}; {waiting_text(source)}"
    if before.is_away and not after.is_away:
        late = "; what it gives now may be late" if before.is_left_behind else ""
        yield f"{source.name} can be read again{late}"
    if after.is_left_behind and not before.is_left_behind:
        yield f"{source.name} has given nothing for the liveness limit: the others go on without it"


def replay_text(source: SourceStatus) -> str:
    """What it means that a source is a replay."""
    behind = source.replay_behind_seconds
    if behind is None:
        where = ""
    else:
        side = "behind" if behind >= 0 else "ahead of"
        where = f": its tuples are {readable_seconds(abs(behind))} {side} the clock"
    return f"is a replay{where}; its own clock moves its watermark, and silence closes no window"


def waiting_text(source: SourceStatus) -> str:
    """What a source that gives nothing means for the others."""
    if source.left_behind:
        return "the others go on without it"
    if source.waited_for_seconds is None:
        return "its watermark stands still"
    rest = readable_seconds(source.waited_for_seconds)
    return f"its watermark stands still, and the others wait for it for {rest}"
