"""Resuming from the state of an earlier run, with a set that may have changed since.

In: the state of a checkpoint, if it has one, and the plan of the set that is to run. Out: the state
from which the set resumes. Queries with unchanged text resume without a gap. A new query begins
with the first slice of which every tuple will be, or still is, available: no row is computed from
half a slice. State that no query reads any more is dropped. Only a change that may be a mistake is
refused: a query with the same text over a changed source or with changed keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from terascope.analysis.moving import ALL
from terascope.analysis.release import complete_below
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.base import interface_of
from terascope.diagnostic import OutputError
from terascope.functions.base import Value
from terascope.physical.stream.plan import LowStream, RunningStream, StreamOutput, StreamPlan
from terascope.physical.stream.slice_streams import SliceValue
from terascope.physical.stream.windows import released_by_start
from terascope.plan.rel import Aggregate, Filter, Project, Rank, Read, Rel, Running, Scan, walk
from terascope.plan.show import show_named
from terascope.streaming.closing import furthest
from terascope.streaming.sources import streams_below
from terascope.streaming.state.state import StreamProgress, StreamState
from terascope.streaming.stored_rows import ALIVE_STREAM, base_stream

FURTHEST: Final = 1 << 62


def resumed_state(plan: StreamPlan, before: StreamState | None, destinations: int) -> StreamState:
    """The state with which a set starts.

    Raises:
        OutputError: a query that was not changed can no longer be what it was.
    """
    told = {output.name: description(output, plan) for output in plan.outputs}
    schemas, partitions = source_schemas(plan), source_partitions(plan)
    if before is None:
        state = StreamState(destinations=destinations)
        state.streams = {key: StreamProgress() for key in plan.leaves.values()}
        state.queries = {output.name: StreamProgress() for output in plan.outputs}
    else:
        state = before.copy()
        check_unchanged(before, told, schemas)
        check_partitions(before, partitions)
        if before.ended:  # all slices are closed: whatever comes begins with the next ones
            before = replace(before, streams={}, texts={}, segments=[], starts={})
            state.segments, state.ended = [], False
        StateMigration(plan, before, state, told).apply()
    state.texts, state.schemas, state.partitions = told, schemas, partitions
    state.columns = {stream.key: list(stream.texts) for stream in plan.low}
    state.layouts |= {stream.layout: list(stream.texts) for stream in plan.low}
    used = {segment.layout for segment in state.segments} | {s.layout for s in plan.low}
    state.layouts = {name: texts for name, texts in state.layouts.items() if name in used}
    return state


# ---- the identity of a query ---------------------------------------------------------------------


def description(output: StreamOutput, plan: StreamPlan) -> dict[str, Any]:
    below = (plan.trees.streams[name] for name in streams_below(plan, output.name, ()))
    scans = (rel for tree in below for rel in walk(tree) if isinstance(rel, Scan))
    return {
        "text": output.text,
        "own": output.own,
        "keys": keys_of(plan.trees.streams[output.name], plan.trees.streams),
        "leaves": sorted(leaves_of(output, plan)),
        "direct": output.low is not None,
        "by_start": None if output.release is None else released_by_start(output.release),
        "interfaces": sorted({i for scan in scans for i in scan.interfaces}),
    }


def keys_of(rel: Rel, streams: Mapping[str, Rel]) -> str:
    """The grouping keys of a query, with their types."""
    while True:
        match rel:
            case Read(stream=stream):
                rel = streams[stream]
            case Filter() | Project() | Rank():
                rel = rel.source
            case Aggregate() | Running():
                types = ", ".join(expr.type.value for _, expr in rel.keys)
                return f"{show_named(rel.keys)} ({types})"
            case _:
                return ""


def leaves_of(output: StreamOutput, plan: StreamPlan) -> set[str]:
    """The keys of the stored streams that a query reads."""
    if output.low is not None:
        return {plan.low[output.low].key}
    keys = plan.leaves
    return {keys[name] for name in streams_below(plan, output.name, keys) if name in keys}


def source_schemas(plan: StreamPlan) -> dict[str, Any]:
    """The columns that are read of each interface, with their declarations."""
    found: dict[str, dict[str, str]] = {}
    for stream in plan.low:
        for column in stream.scan.columns:
            slope = "" if column.slope is None else f" {column.slope.trend.value}"
            band = "" if column.slope is None or not column.slope.band else f"({column.slope.band})"
            clock = f" clock({column.clock})" if column.clock else ""
            for interface in stream.scan.interfaces:
                known = found.setdefault(interface, {})
                known[column.read_from] = f"{column.type.value}{slope}{band}{clock}"
    return found


def source_partitions(plan: StreamPlan) -> dict[str, Any]:
    """The partitions of each source; None: it has not several."""
    return {
        interface_of(one.name): None
        if one.partition is None or not one.is_part
        else {
            "by": one.partition.by,
            "count": one.partition.count,
            "bounds": list(map(str, one.partition.bounds)),
        }
        for read in plan.deliveries.reads
        for one in read.interfaces
    }


def check_partitions(before: StreamState, partitions: Mapping[str, Any]) -> None:
    """Refuse other partitions of a source: its open groups are stored by the partition that owns
    them.
    """
    known = set(map(interface_of, before.schemas))
    for source, now in partitions.items():
        then = before.partitions.get(source)
        if source not in known or then == now:
            continue
        texts = partition_text(then), partition_text(now)
        change = f"had {texts[0]} and has {texts[1]} now"
        if texts[0] == texts[1]:
            change = f"had other ranges of its {texts[0]}"
        raise OutputError(
            f"'{source}' {change}, so that groups of the checkpoint are not with their partition;"
            " bind it as it was, or begin anew with another --checkpoint"
        )


def partition_text(partitions: Mapping[str, Any] | None) -> str:
    if partitions is None:
        return "no partitions"
    return f"{partitions['count']} partitions by {partitions['by'] or 'no values'}"


def check_unchanged(
    before: StreamState,
    told: Mapping[str, Mapping[str, Any]],
    schemas: Mapping[str, Mapping[str, str]],
) -> None:
    """Refuse an unchanged query that cannot resume."""
    advice = "; restore it, give the query another name, or begin anew with another --checkpoint"
    for name, now in told.items():
        then = before.texts.get(name)
        if then is None or then["own"] != now["own"]:
            continue
        for interface in now["interfaces"]:
            for column, was in before.schemas.get(interface, {}).items():
                declared = schemas.get(interface, {}).get(column, was)
                if declared != was:
                    raise OutputError(
                        f"query {name} is the one of the checkpoint, but column '{column}' of"
                        f" '{interface}' was {was} and is {declared}{advice}"
                    )
        # A window that tumbles may have a key of its own, or be made of slices.
        same_way = then["text"] != now["text"] or then["direct"] == now["direct"]
        if then["keys"] != now["keys"] and same_way:
            raise OutputError(
                f"query {name} is the one of the checkpoint, but its keys were {then['keys']} and"
                f" are {now['keys']}{advice}"
            )


# ---- the change ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateMigration:
    """Migrates the state of a set to a changed one."""

    plan: StreamPlan
    before: StreamState
    state: StreamState
    told: Mapping[str, Mapping[str, Any]]
    """The description of each query."""

    @cached_property
    def _reached(self) -> Watermarks:
        return Watermarks(self.plan.trees, furthest(self.before.seen), in_order=True)

    def apply(self) -> None:
        plan, state, before = self.plan, self.state, self.before
        state.starts, state.queries = {}, {}
        known = before.streams
        state.streams = {s.key: known.get(s.key) or self._new_stream(s) for s in plan.low}
        for running in plan.running:
            state.streams[running.key] = known.get(running.key) or self._new_running(running)
        for output in plan.outputs:
            if self._goes_on(output):
                state.queries[output.name] = self._carried_on(output)
                if output.name in before.starts and output.low is not None:
                    state.starts[output.name] = before.starts[output.name]
            else:
                state.queries[output.name] = self._new_query(output)
        state.segments = [
            s
            for s in state.segments
            if base_stream(s.stream.removesuffix(ALIVE_STREAM)) in state.streams
        ]

    def _goes_on(self, output: StreamOutput) -> bool:
        then = self.before.texts.get(output.name)
        if then is None or then["text"] != self.told[output.name]["text"]:
            return False
        missing = set(self.told[output.name]["leaves"]) - self.before.streams.keys()
        if not all(self._is_recomposed(key, output) for key in missing):
            raise OutputError(
                f"query {output.name} would be computed from other parts than those in the"
                " checkpoint, because settings have changed; restore them, or begin anew with"
                " another --checkpoint"
            )
        return True

    def _is_recomposed(self, key: str, output: StreamOutput) -> bool:
        """Whether a stream has slices of windows whose earlier slices are in the checkpoint and are
        still read by the query.
        """
        leaves = self.told[output.name]["leaves"]
        streams = {stream.key: stream for stream in self.plan.low}
        found = [one for one in self._replaced(streams.get(key)) if one.key in leaves]
        # Groups of whole windows may have been made of other columns than those of slices are.
        whole = (one for one in found if one.sliced is not None and one.sliced.scale > 1)
        return bool(found) and not any(map(self._has_new_columns, whole))

    def _replaced(self, stream: LowStream | None) -> list[LowStream]:
        """The streams of the checkpoint that another stream replaces: they differ from it in their
        slices only, and receive no more tuples.
        """
        if stream is None or stream.sliced is None or stream.is_retired:
            return []
        return [
            one
            for one in self.plan.low
            if one.is_retired
            and one.sliced is not None
            and one.sliced.is_like(stream.sliced)
            and one.key in self.before.streams
        ]

    def _carried_on(self, output: StreamOutput) -> StreamProgress:
        """The progress of a query that resumes. A query over tumbling windows may have been written
        by the tasks that close them, and be assembled from slices now, or the other way round.
        """
        before, direct = self.before, output.low is not None
        progress, then = before.queries[output.name], before.texts[output.name]
        if then["direct"] == direct:
            return progress
        made = self._from_windows(output) if direct else self._from_direct(output)
        if made is None:
            raise OutputError(
                f"query {output.name} would be released in another way than before, because"
                " settings have changed; restore them, or begin anew with another --checkpoint"
            )
        return made

    def _from_direct(self, output: StreamOutput) -> StreamProgress | None:
        """Windows up to the last closed one were written; None: it is unknown which."""
        assert output.release is not None
        leaves, by_start = leaves_of(output, self.plan), released_by_start(output.release)
        own = [
            stream
            for stream in self.plan.low
            if stream.key in leaves & self.before.streams.keys()
            and stream.sliced is not None
            and stream.sliced.scale > 1
        ]
        if by_start is None or len(own) != 1 or own[0].sliced is None:
            return None
        until, sliced = self.before.streams[own[0].key].until, own[0].sliced
        since = self.before.starts.get(output.name)
        known = [sliced.closed_before(value) for value in (until, since) if value is not None]
        if not known:
            return StreamProgress()
        return StreamProgress(bounds=[max(known) + (0 if by_start else sliced.scale)])

    def _from_windows(self, output: StreamOutput) -> StreamProgress | None:
        """Progress of assembled windows; None: not all closed windows were written."""
        assert output.low is not None
        stream, before = self.plan.low[output.low], self.before
        then, progress = before.texts[output.name], before.queries[output.name]
        one = before.streams.get(stream.key)
        if one is None or stream.sliced is None or stream.sliced.scale == 1:
            return None
        shift = 0 if then["by_start"] else stream.sliced.scale
        released = progress.bounds[0] if len(progress.bounds) == 1 else None
        if one.until is None:
            return StreamProgress() if released is None else None
        closed = stream.sliced.closed_before(one.until)
        if released is None or released < closed + shift:
            return None
        return StreamProgress(until=one.until)

    def _new_stream(self, stream: LowStream) -> StreamProgress:
        """A new low-level stream has whole slices after the last slice with read tuples."""
        since = self._unseen(stream, stream.value)
        if stream.groups is None:
            return StreamProgress(since=since, kept_from=self._unseen(stream, stream.kept_by))
        replaced = self._replaced(stream)
        if replaced and stream.sliced is not None:
            # What was closed stays closed; what was open goes on, in slices of both kinds.
            before = ((one.sliced, self.before.streams[one.key].until) for one in replaced)
            known = [s.closed_before(end) for s, end in before if s is not None and end is not None]
            until = stream.sliced.value_at(max(known)) if known else None
            return StreamProgress(until=until, since=since, goes_on=True)
        return StreamProgress(until=since, since=since)

    def _unseen(self, stream: LowStream, column: str | None) -> SliceValue | None:
        """The first value of a column that no tuple read so far has."""
        if column is None or not self.before.seen:
            return None
        found = self._reached.of_column(column, stream.read)
        if found is None or found is ALL:
            return None
        sign = -1 if stream.descending else 1
        return after(sign * found)

    def _available(self) -> dict[str, SliceValue | None]:
        """For each stored stream the first value of which all rows are, or will be, stored."""
        found: dict[str, SliceValue | None] = {}
        was_read = {leaf for then in self.before.texts.values() for leaf in then["leaves"]}
        for stream in self.plan.low:
            progress = self.state.streams[stream.key]
            gone = progress.kept_from
            if stream.groups is not None and (stream.key not in was_read or gone is None):
                gone = progress.until
            if self._has_new_columns(stream):
                column = stream.kept_by if stream.groups is None else stream.value
                gone = self._unseen(stream, column)
            if progress.goes_on and progress.since is not None:
                # Slices before may have tuples in streams that a new query does not read.
                gone = progress.since if gone is None else max(gone, progress.since)
            found[stream.name] = gone
        for running in self.plan.running:
            if running.key in self.state.streams:
                found[running.name] = self.state.streams[running.key].until
        return found

    def _has_new_columns(self, stream: LowStream) -> bool:
        """Whether a stream has columns now that were not computed before."""
        return bool(set(stream.texts) - set(self.before.columns.get(stream.key, ())))

    def _new_running(self, running: RunningStream) -> StreamProgress:
        def asked(value: Value) -> Mapping[Any, Value]:
            return self.plan.retention.from_epoch(running.rel, value)

        column = running.value
        start = self._first(self._reached.of_column(column, running.rel), asked)
        return StreamProgress(until=start, since=start)

    def _new_query(self, output: StreamOutput) -> StreamProgress:
        plan = self.plan
        if output.release is None:
            assert output.low is not None
            stream = plan.low[output.low]
            if stream.groups is not None:
                start = self._available()[stream.name]
                if start is not None and self.before.seen:
                    self.state.starts[output.name] = start
            return StreamProgress()
        release = output.release
        if release.kind != "ordered":
            return StreamProgress()

        def asked(value: Value) -> Mapping[Any, Value]:
            return plan.retention.after_release(release, [value] * len(release.parts))

        reached = [v for v in complete_below(release, self._reached) if v not in (None, ALL)]
        falling = any(part.descending for part in release.parts)
        if not reached or falling:
            return StreamProgress(bounds=[None if v is None or v is ALL else v for v in reached])
        start = self._first(min(reached), asked)
        return StreamProgress(bounds=[start] * len(release.parts), since=start)

    def _first(
        self, least: Value, asked: Callable[[Value], Mapping[Any, Value]]
    ) -> SliceValue | None:
        """The first value whose rows need no row that is gone, or was never stored."""
        if least is None or least is ALL:
            return None
        available = self._available()
        falling = {stream.name for stream in self.plan.low if stream.descending}

        def whole(value: SliceValue) -> bool:
            for leaf, bound in asked(value).items():
                have = available.get(leaf) if isinstance(leaf, str) else None
                if have is None or bound is ALL:
                    continue
                if bound is None or (-bound if leaf in falling else bound) < have:
                    return False
            return True

        start: SliceValue = least
        step = 1
        # No new slice can be whole before the last value that was read.
        while not whole(start):
            start, step = least + step, 2 * step
            if step > FURTHEST:
                return after(least)
        low, high = least - 1, start
        while isinstance(high, int) and high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if whole(middle) else (middle, high)
        return high


def after(value: SliceValue) -> SliceValue:
    return math.nextafter(value, math.inf) if isinstance(value, float) else value + 1
