"""Notices: lines for the user, printed once when the state of a source changes.

In: the report of every micro-batch. Out: lines: a source is a replay, or has caught up; it is gone,
is back, or is left behind; its first tuples are late; a file cannot be used. The status shows the
same for as long as it is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from terascope.connectors.live import LinkOffset
from terascope.operate.status import CallStatus, SourceStatus
from terascope.streaming.heartbeat import BatchReport
from terascope.units import SECONDS, plural, readable_seconds

MOST_QUERIES: Final = 3
LONGEST_SKEW: Final = 3600.0
"""The longest useful skew in seconds: a source that is further behind is not merely slow."""


class Notices:
    """Compares each batch with the one before."""

    def __init__(self) -> None:
        self._before: Mapping[str, LinkOffset] = {}
        self._late: set[str] = set()
        """Sources with a notice about their late tuples."""
        self._files: set[str] = set()
        """The unusable files with a notice, as long as the status names them."""

    def ingest(self, report: BatchReport, sources: Mapping[str, SourceStatus]) -> list[str]:
        """The notices of a batch."""
        after = report.offset.links
        found = [
            line
            for name, link in after.items()
            if name in sources
            for line in changes(sources[name], self._before.get(name, LinkOffset()), link)
        ]
        self._before = after
        late = {name for name, source in sources.items() if source.late} - self._late
        self._late |= late
        found += [late_text(sources[name]) for name in sorted(late)]
        return found + self._unusable(sources.values())

    def _unusable(self, sources: Iterable[SourceStatus]) -> list[str]:
        """Notices of files that are named for the first time."""
        named = {path: (s.name, why) for s in sources for path, why in s.unusable_files.items()}
        new = [path for path in named if path not in self._files]
        self._files = set(named)
        return [f"{named[path][0]}: '{path}' is malformed: {named[path][1]}" for path in new]


def changes(source: SourceStatus, before: LinkOffset, after: LinkOffset) -> Iterator[str]:
    """The notices about one source."""
    if after.is_replay and not before.is_replay:
        yield f"{source.name} {replay_text(source)}"
    if before.is_replay and after.is_replay is False:
        yield f"{source.name} has caught up with the clock: it is live from now on"
    if after.is_away and not before.is_away:
        yield stall_text(source)
    if before.is_away and not after.is_away:
        late = "; what it gives now may be late" if before.is_left_behind else ""
        yield f"{source.name} can be read again{late}"
    if after.is_left_behind and not before.is_left_behind:
        yield f"{source.name} has given nothing for the liveness limit: the others go on without it"


def replay_text(source: SourceStatus) -> str:
    """The text that a source is a replay, with the consequence."""
    behind = source.replay_behind_seconds
    if behind is None:
        where = ""
    else:
        side = "behind" if behind >= 0 else "ahead of"
        where = f": its tuples are {readable_seconds(abs(behind))} {side} the clock"
    return f"is a replay{where}; its own clock moves its watermark, and silence closes no window"


def callback_text(call: CallStatus) -> str:
    """The text that a run waits for its callback."""
    return (
        f"the callback has been at work on batch {call.batch:,} of {call.query} for"
        f" {readable_seconds(call.seconds)}, and the run waits for it"
    )


def waiting_text(source: SourceStatus) -> str:
    """The effect of a silent source on the others."""
    if source.left_behind:
        return "the others go on without it"
    if source.waited_for_seconds is None:
        return "its watermark stands still"
    rest = readable_seconds(source.waited_for_seconds)
    return f"its watermark stands still, and the others wait for it for {rest}"


def stall_text(source: SourceStatus) -> str:
    """The reason why a source gives nothing, with the effect on the others."""
    if source.away:
        return f"{source.name} cannot be read: {source.stalled}; {waiting_text(source)}"
    return f"{source.name} is stalled: {source.stalled}"


def late_text(source: SourceStatus) -> str:
    """The number of late tuples of a source, by query, with the remedy."""
    return f"{late_count(source)}: {late_remedy(source)}"


def malformed_text(source: SourceStatus) -> str:
    """The unusable part of a source, with the reasons and the files."""
    many = sorted(source.malformed_reasons.items(), key=lambda one: (-one[1], one[0]))
    words = [f"{count:,} {why}" for why, count in many]
    if source.skipped_bytes:
        words.append(f"{source.skipped_bytes:,} bytes skipped")
    words += [f"'{path}': {why}" for path, why in source.unusable_files.items()]
    return f"{source.malformed:,} malformed of {source.name}: {', '.join(words)}"


def late_count(source: SourceStatus) -> str:
    """The number of late tuples of a source, by query."""
    many = sorted(source.late_queries.items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{name} {count:,}" for name, count in many[:MOST_QUERIES])
    if len(many) > MOST_QUERIES:
        shown += f" and {len(many) - MOST_QUERIES:,} more"
    queries = f" ({shown})" if shown else ""
    return f"{plural(source.late, 'tuple')} of {source.name} came too late{queries}"


def late_remedy(source: SourceStatus) -> str:
    """The setting that keeps tuples of a source from being late, with the reason."""
    name, behind = source.name, source.late_seconds
    if source.left_behind or source.away or source.late_after_absence:
        return f"a longer --liveness makes the others wait, which went on without {name}"
    if source.disorder_observed > source.disorder_declared:
        band = "banded_decreasing(n)" if source.falls else "banded_increasing(n)"
        return (
            f"declare {band} on its time column, or SLACK n of a MERGE: they came up"
            f" to {disorder_text(source)} behind later ones"
        )
    if source.replay:
        return (
            f"give --replay {name} from the start, or run it as a set of its own: others had gone"
            " on without it"
        )
    if behind is not None and behind > LONGEST_SKEW:
        return (
            f"give --replay {name} if it is old data, or a longer --liveness if it was gone: the"
            f" clock was {readable_seconds(behind)} ahead"
        )
    more = "longer" if behind is None else f"{readable_seconds(behind)} longer, or more"
    return f"give a --skew that is {more}: the clock had closed their window"


def disorder_text(source: SourceStatus) -> str:
    """The observed disorder, in seconds where its unit is one of time."""
    unit = SECONDS.get(source.disorder_unit)
    if unit is None:
        return f"{source.disorder_observed:g}"
    return readable_seconds(source.disorder_observed * unit)
