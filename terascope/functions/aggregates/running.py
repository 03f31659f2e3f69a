"""Aggregates that go on over the epochs of a group until CLOSING_WHEN ends it (dissertation 3.1.2).

In a plain GROUP BY a group has one epoch, and they are sums and lists of that epoch. moving_sum(x,
N), moving_avg(x, N) and moving_sum_exp(x, N, alpha) are over the last N epochs of a group:
moving_sum_exp weighs the newest epoch with 1, the one before with alpha, then alpha squared, and so
on.

time_avg(x, ts, window) is the mean of x over time, each value counting as long as it stood. x is a
step function: a value holds from its ts until the next one's, the last until the end of its window,
windows being [k * window, (k + 1) * window). Under CLOSING_WHEN the last value of the epoch before
holds from the window's start; an epoch without tuples has the value that still stands. A group that
just began is averaged from its first tuple on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar, TypeAlias

from terascope.functions.aggregates.folding import Collecting, PlainAggregate, Runs, items
from terascope.functions.aggregates.total import (
    Average,
    Count,
    Sum,
    checked_sum,
    half_sums,
    is_wide,
    scaled_total,
    sum_type,
)
from terascope.functions.base import (
    FIRST,
    AggregateFunction,
    AggregatePart,
    Apply,
    Constant,
    Decomposition,
    State,
    Term,
    Value,
    ValueMistake,
    single,
)
from terascope.functions.epochs import SumsOfEpochs
from terascope.functions.object_states import fold_in_order, ordered_state
from terascope.functions.operators import operators
from terascope.functions.signatures import INTEGER, NUMBER
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.sketches.base import StateKind
from terascope.sketches.values import ordered_kind
from terascope.types import Type

Number: TypeAlias = int | float
SumAndPeak: TypeAlias = tuple[int, int]
EpochSums: TypeAlias = tuple[int, tuple[int, ...]]
"""N, and one sum for each of the last N epochs, the newest last."""


def epoch_sums(
    function: AggregateFunction,
    args: tuple[Type, ...],
    parameters: tuple[Value, ...],
    *more: tuple[AggregateFunction, tuple[Term, ...]],
) -> Decomposition:
    """The split of a running aggregate into the sums of its epochs, and more sub-aggregates."""
    (type_,) = args
    halves = is_wide(type_)
    sums = half_sums(type_) if halves else (single(Sum(), Sum(), FIRST),)
    subs = (*(sub for part in sums for sub in part.subs), *more)
    result = function.type_rule(args)
    merge = SumsOfEpochs(function, parameters, result, len(subs), halves)
    return Decomposition((AggregatePart(subs, merge),))


class RunningIntegers(PlainAggregate):
    """The base of sums of integers over epochs."""

    takes = (INTEGER,)
    running = True

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        found = super().type_rule(args)
        return self.returns or sum_type(found)


class RunningSum(RunningIntegers):
    name = "running_sum"
    sampling = "rescale"
    doc = "the sum since the group began; 0 when there is no value"

    def zero(self, *parameters: Value) -> int:
        return 0

    def merge(self, left: int, right: int) -> int:
        return left + right

    def finish(self, state: int, *parameters: Value) -> Number:
        return checked_sum(state, self.name)

    def split_epochs(
        self, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> Decomposition | None:
        return epoch_sums(self, args, parameters)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        made = Sum().split(args, finer)
        if made is None:
            return None
        nothing = Constant(0, sum_type(args[0]))
        return replace(made, finish=Apply(operators["coalesce"], (made.finish, nothing)))

    def spark(self, call: SparkCall) -> SparkForm | None:
        summed = Sum().spark(call)
        if summed is None:
            return None
        made = summed.finish
        return SparkForm(summed.parts, lambda parts: call.F.coalesce(made(parts), call.number(0)))


class RunningSumMax(RunningIntegers):
    """The state is the sum, and the largest it was in this epoch. A part's peak counts from its own
    beginning, so the later part's peak stands on the earlier part's sum.
    """

    name = "running_sum_max"
    ordered = True
    doc = "the largest value that running_sum(x) took during the epoch, its start included"

    def zero(self, *parameters: Value) -> SumAndPeak:
        return 0, 0

    def reduce(self, state: SumAndPeak, *args: Value) -> SumAndPeak:
        (value,) = args
        return self.merge(state, (value, max(value, 0)))

    def merge(self, left: SumAndPeak, right: SumAndPeak) -> SumAndPeak:
        return left[0] + right[0], max(left[1], left[0] + right[1])

    def finish(self, state: SumAndPeak, *parameters: Value) -> Number:
        return checked_sum(state[1], self.name)

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ordered_kind(args)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return fold_in_order(self, packed)

    def opened(self, packed: bytes, *parameters: Value) -> State:
        return ordered_state(self, packed, *parameters)

    def next_epoch(self, state: SumAndPeak) -> SumAndPeak:
        return state[0], state[0]


class RunningArray(Collecting):
    name = "running_array_aggr"
    takes = (INTEGER,)
    returns = Type.STRING
    ordered = True
    running = True
    doc = "the numbers since the group began, in stream order, as text with commas"

    def finish(self, state: Runs, *parameters: Value) -> str | None:
        return ",".join(map(str, items(state))) if state else None

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ordered_kind(args)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return fold_in_order(self, packed)

    def opened(self, packed: bytes, *parameters: Value) -> State:
        return ordered_state(self, packed, *parameters)


def epochs_of(name: str, parameters: Sequence[Value]) -> int:
    """The number of epochs that an aggregate looks back."""
    (epochs,) = parameters
    if type(epochs) is not int or epochs < 1:
        raise ValueMistake(f"{name} takes a number of epochs of at least 1, not {epochs}")
    return epochs


class MovingSum(RunningIntegers):
    name = "moving_sum"
    state_parameters = 1
    sampling = "rescale"
    example_parameters: ClassVar[tuple[Value, ...]] = (3,)
    doc = "moving_sum(x, N): the sum over the group's last N epochs; 0 when there is no value"

    def zero(self, *parameters: Value) -> EpochSums:
        return epochs_of(self.name, parameters), (0,)

    def reduce(self, state: EpochSums, *args: Value) -> EpochSums:
        epochs, sums = state
        return epochs, (*sums[:-1], sums[-1] + args[0])

    def merge(self, left: EpochSums, right: EpochSums) -> EpochSums:
        """Epoch by epoch, counted back from the newest."""
        pairs = zip_longest(reversed(left[1]), reversed(right[1]), fillvalue=0)
        return left[0], tuple(a + b for a, b in pairs)[::-1]

    def finish(self, state: EpochSums, *parameters: Value) -> Number:
        return checked_sum(sum(state[1]), self.name)

    def next_epoch(self, state: EpochSums) -> EpochSums:
        epochs, sums = state
        return epochs, (*sums, 0)[-epochs:]

    def split_epochs(
        self, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> Decomposition | None:
        return epoch_sums(self, args, parameters)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """In one epoch, the sum."""
        return RunningSum().split(args, finer)


EpochMeans: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""N, and the sum and the number of values of each of the last N epochs, the newest last."""


class MovingAverage(PlainAggregate):
    name = "moving_avg"
    takes = (INTEGER,)
    returns = Type.FLOAT
    running = True
    state_parameters = 1
    kind = "algebraic"
    sampling = "keep"
    example_parameters: ClassVar[tuple[Value, ...]] = (3,)
    doc = "moving_avg(x, N): the mean of the values of the group's last N epochs"

    def zero(self, *parameters: Value) -> EpochMeans:
        return epochs_of(self.name, parameters), ((0, 0),)

    def reduce(self, state: EpochMeans, *args: Value) -> EpochMeans:
        epochs, means = state
        total, count = means[-1]
        return epochs, (*means[:-1], (total + args[0], count + 1))

    def merge(self, left: EpochMeans, right: EpochMeans) -> EpochMeans:
        """Epoch by epoch, counted back from the newest."""
        pairs = zip_longest(reversed(left[1]), reversed(right[1]), fillvalue=(0, 0))
        return left[0], tuple((a[0] + b[0], a[1] + b[1]) for a, b in pairs)[::-1]

    def finish(self, state: EpochMeans, *parameters: Value) -> float | None:
        total, count = (sum(part) for part in zip(*state[1], strict=True))
        return float(total) / count if count else None

    def next_epoch(self, state: EpochMeans) -> EpochMeans:
        epochs, means = state
        return epochs, (*means, (0, 0))[-epochs:]

    def split_epochs(
        self, args: tuple[Type, ...], parameters: tuple[Value, ...]
    ) -> Decomposition | None:
        return epoch_sums(self, args, parameters, (Count(), (FIRST,)))

    def reduce_parts(self, state: EpochMeans, *parts: Value) -> EpochMeans:
        epochs, means = state
        total, count = means[-1]
        return epochs, (*means[:-1], (total + parts[0], count + parts[1]))

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """In one epoch, the mean."""
        return Average().split(args, finer)


class MovingSumExp(MovingSum):
    name = "moving_sum_exp"
    returns = Type.FLOAT
    finish_parameters = 1
    example_parameters = (3, 0.5)
    doc = "moving_sum_exp(x, N, alpha): the same, each epoch weighing alpha times the next newer"

    def finish(self, state: EpochSums, *parameters: Value) -> Number:
        (alpha,) = parameters
        if not isinstance(alpha, int | float) or isinstance(alpha, bool):
            raise ValueMistake(f"{self.name} takes a number as alpha, not {alpha}")
        weighed = 0.0
        for epoch in state[1]:
            weighed = weighed * alpha + epoch
        return weighed

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """In one epoch, the sum as a FLOAT, which cannot overflow."""
        if not is_wide(args[0]):
            return super().split(args, finer)
        total = scaled_total(args[0])
        nothing = Constant(0.0, Type.FLOAT)
        return Decomposition(half_sums(args[0]), Apply(operators["coalesce"], (total, nothing)))


@dataclass(frozen=True)
class Steps:
    """A stretch of the step function: `area` lies between its first and its last step."""

    first_at: int
    last_at: int
    last: Number
    area: Number = 0

    def then(self, later: Steps) -> Steps:
        between = (later.first_at - self.last_at) * self.last
        return Steps(self.first_at, later.last_at, later.last, self.area + between + later.area)


@dataclass(frozen=True)
class Standing:
    """`standing`: the value that came over from earlier epochs."""

    window: int
    standing: Number | None = None
    steps: Steps | None = None


class TimeAverage(PlainAggregate):
    name = "time_avg"
    arity = 2
    takes = (NUMBER, INTEGER)
    returns = Type.FLOAT
    state_parameters = 1
    kind = "algebraic"
    ordered = True
    running = True
    cheap = False
    finishes_with_all = True
    state_classes = (Standing, Steps)
    example_parameters = (60,)
    doc = "time_avg(x, ts, window): the mean of x weighed by how long each value stood"

    def zero(self, *parameters: Value) -> Standing:
        (window,) = parameters
        if type(window) is not int or window < 1:
            raise ValueMistake(f"{self.name} takes a window of at least 1, not {window}")
        return Standing(window)

    def reduce(self, state: Standing, *args: Value) -> Standing:
        value, at = args
        return self._with(state, Steps(at, at, value))

    def merge(self, left: Standing, right: Standing) -> Standing:
        if left.standing is None and left.steps is None:
            return right
        return left if right.steps is None else self._with(left, right.steps)

    def finish(self, state: Standing, *parameters: Value) -> float | None:
        steps, window = state.steps, state.window
        if steps is None:
            return None if state.standing is None else float(state.standing)
        end = (steps.last_at // window + 1) * window
        area = steps.area + (end - steps.last_at) * steps.last
        begin = steps.first_at
        if state.standing is not None:
            begin = steps.first_at // window * window
            area += (steps.first_at - begin) * state.standing
        return float(area / (end - begin))

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        return ordered_kind(args)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        return fold_in_order(self, packed, *parameters)

    def opened(self, packed: bytes, *parameters: Value) -> State:
        return ordered_state(self, packed, *parameters)

    def next_epoch(self, state: Standing) -> Standing:
        if state.steps is None:
            return state
        return Standing(state.window, standing=state.steps.last)

    def _with(self, state: Standing, later: Steps) -> Standing:
        steps = later if state.steps is None else state.steps.then(later)
        return replace(state, steps=steps)
