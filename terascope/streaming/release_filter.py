"""The trees that give only the rows that are newly complete.

In: how a stream is released, and from which value up to which. Out: the trees of the plan with a
filter right above the operator that the query is released at. Everything else is evaluated as it
stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from terascope.analysis.moving import ALL
from terascope.analysis.release import Release, ReleasePart
from terascope.functions.base import Value
from terascope.plan.build import FALSE, call, conjunction, disjunction
from terascope.plan.expr import Bound, Expr
from terascope.plan.rel import Filter, PlanMistake, Rel, inputs, with_inputs
from terascope.types import Type

Range: TypeAlias = tuple[Value, Value]
"""From the first value, which is in it, up to the second, which is not. None as first: from the
beginning. ALL as second: to the end, with the rows that have no value (NULL). None as second:
nothing."""


def released(
    streams: Mapping[str, Rel], release: Release, ranges: Sequence[Range]
) -> Mapping[str, Rel]:
    """The same trees, in which the released operator gives only rows of the ranges, one for each
    part. Meant for evaluating the one stream that `release` speaks of: others that read the same
    tree would miss rows.
    """
    if release.kind != "ordered":
        return streams
    kept = disjunction(
        part_of(part, bounds) for part, bounds in zip(release.parts, ranges, strict=True)
    )
    tree = streams[release.stream]
    return {**streams, release.stream: filtered(tree, release.node, kept)}


def part_of(part: ReleasePart, bounds: Range) -> Expr:
    """Whether a row belongs to a part and its value to the range of that part."""
    within = in_range(part, *bounds)
    return within if part.only is None else conjunction((part.only, within))


def in_range(part: ReleasePart, low: Value, high: Value) -> Expr:
    if high is None or low is ALL:
        return FALSE
    reached, beyond = ("<=", ">") if part.descending else (">=", "<")
    conditions = []
    if low is not None:
        conditions.append(call(reached, part.value, literal(low)))
    if high is not ALL:
        conditions.append(call(beyond, part.value, literal(high)))
    within = conjunction(conditions)
    if high is ALL and conditions:
        return disjunction((call("is_null", part.value), within))
    return within


def literal(value: int | float) -> Bound:
    return Bound(value, Type.FLOAT if isinstance(value, float) else Type.LLONG)


def filtered(tree: Rel, node: Rel, kept: Expr) -> Rel:
    """The tree with a filter above the operator, which stands on the way down from its top: only
    what looks at one row at a time, or looks something up in a table, is above it.
    """
    if tree == node:
        return Filter(tree, kept, span=tree.span)
    parts = inputs(tree)
    for place, part in enumerate(parts):
        if contains(part, node):
            changed = filtered(part, node, kept)
            return with_inputs(tree, (*parts[:place], changed, *parts[place + 1 :]))
    raise PlanMistake("the released operator is not in the tree")


def contains(tree: Rel, node: Rel) -> bool:
    return tree == node or any(contains(part, node) for part in inputs(tree))
