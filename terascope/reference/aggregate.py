"""GROUP BY, with grouping sets and the windows that stayed empty.

A group exists when it has a tuple: also without keys, no tuple means no row. A partial group that
sums FLOATs has a row for each range of its values (terascope.functions.exact_floats).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from terascope.functions.aggregates.float_sums import FloatRange
from terascope.functions.exact_floats import ORDINARY, to_digits
from terascope.plan.evaluate import Evaluator
from terascope.plan.expr import AggCall, Col
from terascope.plan.rel import WEND, WSTART, Aggregate
from terascope.reference.accumulate import accumulators, aggregate_values
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row, same_row
from terascope.reference.window import windows_between


def aggregate(rel: Aggregate, rows: list[Row], context: Evaluation) -> list[Row]:
    names = rel.source.names
    keys = [context.compile(expr, names) for _, expr in rel.keys]
    keyed = [(same_row(key(row) for key in keys), row) for row in rows]
    aggs = accumulators(rel.aggs, names, context)
    ranged = [context.compile(call.args[0], names) for _, call in rel.aggs if has_range(call)]
    given: list[Row] = []
    for key_set in grouping_sets(rel):
        groups: dict[Row, list[Row]] = {}
        for key, row in keyed:
            reduced = tuple(v if kept else None for v, kept in zip(key, key_set, strict=True))
            groups.setdefault(reduced, []).append(row)
        for key in missing_keys(rel, tuple(groups)):
            groups[key] = []
        for key, members in groups.items():
            parts = by_ranges(members, ranged)
            given += [(*key, *aggregate_values(aggs, part)) for part in parts]
    return given


def has_range(call: AggCall) -> bool:
    return isinstance(call.function, FloatRange)


def by_ranges(rows: list[Row], summed: Sequence[Evaluator]) -> list[list[Row]]:
    """The tuples of a group, apart by the ranges of the FLOATs that are summed. A NULL has none,
    and stands with the ordinary values.
    """
    if not summed or not rows:
        return [rows]
    found: dict[Row, list[Row]] = {}
    for row in rows:
        values = (value(row) for value in summed)
        ranges = tuple(ORDINARY if v is None else to_digits(v)[0] for v in values)
        found.setdefault(ranges, []).append(row)
    return list(found.values())


def grouping_sets(rel: Aggregate) -> list[tuple[bool, ...]]:
    """For each set, which of the keys are in it; a plain GROUP BY is the one set of all keys."""
    if rel.sets is None:
        return [tuple(True for _ in rel.keys)]
    return [tuple(name in chosen for name, _ in rel.keys) for chosen in rel.sets]


def missing_keys(rel: Aggregate, present: Iterable[Row]) -> Iterator[Row]:
    """Keys of the windows or epochs without tuples between the first and the last with one."""
    timed = {key for key in present if None not in key}
    if rel.emit_empty is None or not timed:
        return
    if rel.emit_empty == "epoch":
        epochs = {epoch for (epoch,) in timed}
        for epoch in range(min(epochs), max(epochs)):
            if epoch not in epochs:
                yield (epoch,)
        return
    sources = [expr.name if isinstance(expr, Col) else name for name, expr in rel.keys]
    start, end = sources.index(WSTART), sources.index(WEND)
    intervals = {(key[start], key[end]) for key in timed}
    for low, high in windows_between(rel.emit_empty, min(intervals), max(intervals)):
        if (low, high) not in intervals:
            yield (low, high) if start < end else (high, low)
