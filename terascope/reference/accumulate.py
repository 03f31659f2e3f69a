"""One aggregate of one group: how tuples become its value.

In: `AggCall`s. Out: `Accumulator`s, which take the tuples of a group in stream order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from terascope.functions.base import Value, ValueMistake
from terascope.functions.overflow import overflow_in
from terascope.plan.expr import AggCall
from terascope.plan.rel import NamedAgg
from terascope.plan.show import written_agg
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row, same_row, sort_key


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
        self.zero_with = context.constants(call.state_parameters)
        self.finish_with = context.constants(call.finish_parameters)
        self.restart()

    def restart(self) -> None:
        self.state = self.function.zero(*self.zero_with)
        self.seen: set[Row] = set()

    def take(self, rows: list[Row]) -> None:
        """Reduce tuples, in stream order where it matters."""
        with failures_of(self.function.name):
            self._take(rows)

    def _take(self, rows: list[Row]) -> None:
        if self.order:
            rows = sorted(rows, key=lambda row: [sort_key(row[i]) for i in self.order])
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
