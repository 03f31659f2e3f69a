"""An aggregation that sums FLOATs as two: one whose groups are kept in fixed places, and its merge.

In: an Aggregate. Out: the aggregation of its sub-aggregates by the same keys, and what merges those
rows; or None where some aggregate does not split. A group has a row for each range of its values
(terascope.functions.exact_floats), so that tuples are added to integers only, which Spark does in
generated code. In one step, each group would have to hold a list for values of other ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from terascope.physical.split.sub_aggregates import SplitCall, merged_again, split_call
from terascope.plan.expr import AggCall, Col
from terascope.plan.rel import Aggregate, Named, NamedAgg, Read
from terascope.types import Type


@dataclass(frozen=True)
class TwoSteps:
    subs: Aggregate
    merge: Aggregate
    """Reads rows of `subs`."""
    values: tuple[Named, ...]
    """The columns of the aggregation, from those of the merge."""


def in_two_steps(rel: Aggregate) -> TwoSteps | None:
    calls = [call for _, call in rel.aggs]
    if rel.emit_empty is not None or any(call.order for call in calls):
        return None
    if not any(map(is_float_sum, calls)):
        return None
    splits = [made for call in calls if isinstance(made := split_call(call, True), SplitCall)]
    if len(splits) < len(calls) or not all(split.subs for split in splits):
        return None
    subs = named("sub", [c for split in splits for sub in split.subs for c in sub.calls])
    names = {call: name for name, call in subs}
    below = replace(rel, aggs=tuple(subs), sets=None)
    merges = [
        merged_again(split, [Col(names[c], c.type) for sub in split.subs for c in sub.calls])
        for split in splits
    ]
    whole = {
        some[0]: name for (name, _), some in zip(rel.aggs, merges, strict=True) if len(some) == 1
    }
    merged = named("merged", [call for some in merges for call in some], whole)
    columns = {call: Col(name, call.type) for name, call in merged}
    keys = tuple((name, Col(name, expr.type)) for name, expr in rel.keys)
    values = tuple(
        (name, split.value([columns[call] for call in some], False))
        for (name, _), split, some in zip(rel.aggs, splits, merges, strict=True)
    )
    above = replace(rel, source=Read("", below.fields), keys=keys, aggs=tuple(merged))
    return TwoSteps(below, above, (*keys, *values))


def named(
    prefix: str, calls: Sequence[AggCall], known: Mapping[AggCall, str] | None = None
) -> list[NamedAgg]:
    """Each different call once, with a name; `known`: those of some calls."""
    names = known or {}
    return [(names.get(call, f"#{prefix}{i}"), call) for i, call in enumerate(dict.fromkeys(calls))]


def is_float_sum(call: AggCall) -> bool:
    summed = call.function.adds_floats == "values" and not call.distinct
    return summed and call.args[0].type is Type.FLOAT
