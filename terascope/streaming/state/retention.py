"""Expiry: the stored rows that no query will read again.

In: a plan, and the value up to which each of its queries was released. Out: the state without these
segments.
"""

from __future__ import annotations

from terascope.analysis.moving import ALL
from terascope.analysis.retention import Leaf, epoch_retention_bounds, retention_bounds
from terascope.functions.base import Value
from terascope.physical.stream.plan import StreamPlan
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import StreamState
from terascope.streaming.state.tiers import base_stream


class Expiry:
    """Drops expired segments after every batch; a batch that is run again starts from an earlier
    state.
    """

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan
        self._moved: list[tuple[object, ...]] | None = None
        self._least: dict[str, Value] = {}

    def __call__(self, state: StreamState) -> None:
        moved = [progress.moved for progress in (*state.queries.values(), *state.streams.values())]
        if moved != self._moved:  # asking everybody takes longer than most batches have
            self._moved, self._least = moved, retained_from(self._plan, state)
        least = self._least

        def is_over(segment: Segment) -> bool:
            stream = base_stream(segment.stream)
            if segment.kind != "rows" or stream not in least:
                return False
            bound = least[stream]
            return bound is ALL or (bound is not None and segment.ends_before(bound))

        state.segments = [s for s in state.segments if not is_over(s)]
        for key, bound in least.items():
            state.streams[key].kept_from = None if bound is ALL else bound


def retained_from(plan: StreamPlan, state: StreamState) -> dict[str, Value]:
    """By the key of a stream: the earliest slice that a query will read again."""
    keys, kept_by = plan.leaves, plan.kept_by
    falling = {stream.name for stream in plan.low if stream.descending}
    least: dict[str, Value] = dict.fromkeys(keys.values(), ALL)
    found: list[tuple[Leaf, Value]] = []
    for output in plan.outputs:
        if output.release is None or output.release.kind == "at_once":
            continue
        progress = state.queries[output.name]
        values = (
            [ALL] * len(output.release.parts)
            if progress.ended
            else progress.lows(len(output.release.parts))
        )
        if progress.ended and output.release.kind != "ordered":
            continue
        found += retention_bounds(output.release, values, plan.trees, keys, kept_by).items()
    for running in plan.running:
        one = state.streams[running.key]
        if not one.ended:
            found += epoch_retention_bounds(
                running.rel, one.until, plan.trees, keys, kept_by
            ).items()
    for leaf, value in found:
        if isinstance(leaf, str):
            sign = -1 if leaf in falling else 1
            least[keys[leaf]] = smaller(least[keys[leaf]], value, sign)
    return least


def smaller(a: Value, b: Value, sign: int) -> Value:
    """The earlier of two bounds, as the store has them; None is before all."""
    if a is None or b is None:
        return None
    other = b if b is ALL else sign * b
    return other if a is ALL else a if other is ALL else min(a, other)
