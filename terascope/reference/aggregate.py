"""GROUP BY: with grouping sets and the windows that stayed empty, and with CLOSING_WHEN.

In: the tuples below. Out: a row for each group. An `Accumulator` takes the tuples of a group in
stream order and gives the value of one aggregate. A group exists when it has a tuple: also without
keys, no tuple means no row. A partial group that sums FLOATs has a row for each range of its values
(terascope.functions.exact_floats). With CLOSING_WHEN (dissertation 3.1.2) a group lives over
epochs: it has a row per epoch from its first tuple until it closes, epochs without a tuple
included; the last epoch is the horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from terascope.functions.aggregates.float_sums import FloatRange
from terascope.functions.base import Value, ValueMistake
from terascope.functions.exact_floats import ORDINARY, to_digits
from terascope.functions.overflow import overflow_in
from terascope.plan.evaluate import Evaluator, constant_value
from terascope.plan.expr import AggCall, Col
from terascope.plan.rel import WEND, WSTART, Aggregate, NamedAgg, Running
from terascope.plan.show import written_agg
from terascope.reference.rows import Evaluation, Row, same_row, sort_key
from terascope.reference.window import windows_between


class Accumulator:
    """The state of one aggregate call, compiled against the columns it stands over."""

    def __init__(
        self, call: AggCall, written: str, names: tuple[str, ...], context: Evaluation
    ) -> None:
        self.call = call
        self.written = written
        self.function = call.function
        self.args = [context.compile(arg, names) for arg in call.args]
        self.order = [names.index(name) for name in call.order]
        self.zero_with = [constant_value(p, context.values) for p in call.state_parameters]
        self.finish_with = [constant_value(p, context.values) for p in call.finish_parameters]
        self.restart()

    def restart(self) -> None:
        self.state = self.function.zero(*self.zero_with)
        self.seen: set[Row] = set()

    def take(self, rows: list[Row]) -> None:
        """Reduce tuples, in stream order where it matters."""
        if self.order:
            rows = sorted(rows, key=lambda row: [sort_key(row[i]) for i in self.order])
        with failures_of(self.function.name):
            for row in rows:
                values = [arg(row) for arg in self.args]
                if self.function.skips_null and None in values:
                    continue
                if self.call.distinct:
                    key = same_row(values)
                    if key in self.seen:
                        continue
                    self.seen.add(key)
                self.state = self.function.reduce(self.state, *values)

    def value(self) -> Value:
        with overflow_in(self.written), failures_of(self.function.name):
            return self.function.finish(self.state, *self.finish_with)

    def end_epoch(self) -> None:
        """Running aggregates go on, the others begin anew."""
        if self.function.running:
            self.state = self.function.next_epoch(self.state)
        else:
            self.restart()


@contextmanager
def failures_of(aggregate: str) -> Iterator[None]:
    """Turn a failure of an aggregate that a user wrote into a mistake that names it."""
    try:
        yield
    except ValueMistake:
        raise
    except Exception as mistake:
        reason = f"aggregate {aggregate} failed: {type(mistake).__name__}: {mistake}"
        raise ValueMistake(reason) from mistake


def accumulators(
    aggs: tuple[NamedAgg, ...], names: tuple[str, ...], context: Evaluation
) -> list[Accumulator]:
    return [Accumulator(call, written_agg(call, name), names, context) for name, call in aggs]


def aggregate_values(group: list[Accumulator], rows: list[Row]) -> Row:
    """The values of all aggregates over one group that has no past."""
    for accumulator in group:
        accumulator.restart()
        accumulator.take(rows)
    return tuple(accumulator.value() for accumulator in group)


def running(rel: Running, rows: list[Row], context: Evaluation) -> list[Row]:
    """A tuple without an epoch belongs nowhere and is passed over."""
    names = rel.source.names
    keys = [context.compile(expr, names) for _, expr in rel.keys]
    groups: dict[Row, dict[int, list[Row]]] = {}
    for row in rows:
        epoch, *group = (key(row) for key in keys)
        if epoch is not None:
            groups.setdefault(same_row(group), {}).setdefault(epoch, []).append(row)
    reached = [epoch for epochs in groups.values() for epoch in epochs]
    known = context.horizon(rel.keys[0][1], rel.source)
    if known is not None:
        reached.append(known)
    last = max(reached, default=0)
    closing = context.compile(rel.closing, rel.names)
    given: list[Row] = []
    for group_key, epochs in groups.items():
        aggs = accumulators(rel.aggs, names, context)
        given += life_of_group(group_key, epochs, last, aggs, closing)
    return given


def life_of_group(
    group: Row,
    epochs: dict[int, list[Row]],
    last: int,
    aggs: list[Accumulator],
    closing: Evaluator,
) -> Iterator[Row]:
    """The rows of one group, which may die and be born again several times."""
    due = min(epochs)
    for start in sorted(epochs):
        if start < due:
            continue  # it was alive then
        for agg in aggs:
            agg.restart()
        for epoch in range(start, last + 1):
            for agg in aggs:
                agg.take(epochs.get(epoch, []))
            row = (epoch, *group, *(agg.value() for agg in aggs))
            yield row
            due = epoch + 1
            if closing(row) is True:
                break
            for agg in aggs:
                agg.end_epoch()


def aggregate(rel: Aggregate, rows: list[Row], context: Evaluation) -> list[Row]:
    names = rel.source.names
    keys = [context.compile(expr, names) for _, expr in rel.keys]
    keyed = [(same_row(key(row) for key in keys), row) for row in rows]
    aggs = accumulators(rel.aggs, names, context)
    floats = [call.args[0] for _, call in rel.aggs if isinstance(call.function, FloatRange)]
    ranged = [context.compile(arg, names) for arg in floats]
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
