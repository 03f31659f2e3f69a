"""time_avg(x, ts, window): the mean of x over time, each value counting as long as it stood.

x is a step function: a value holds from its ts until the next one's, the last until the end of its
window, windows being [k * window, (k + 1) * window). Under CLOSING_WHEN the last value of the epoch
before holds from the window's start; an epoch without tuples has the value that still stands. A
group that just began is averaged from its first tuple on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.base import Value, ValueMistake
from terascope.functions.signatures import INTEGER, NUMBER
from terascope.types import Type

Number = int | float


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
class State:
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
    state_classes = (State, Steps)
    example_parameters = (60,)
    doc = "time_avg(x, ts, window): the mean of x weighed by how long each value stood"

    def zero(self, *parameters: Value) -> State:
        (window,) = parameters
        if type(window) is not int or window < 1:
            raise ValueMistake(f"{self.name} takes a window of at least 1, not {window}")
        return State(window)

    def reduce(self, state: State, *args: Value) -> State:
        value, at = args
        return self._with(state, Steps(at, at, value))

    def merge(self, left: State, right: State) -> State:
        if left.standing is None and left.steps is None:
            return right
        return left if right.steps is None else self._with(left, right.steps)

    def finish(self, state: State, *parameters: Value) -> float | None:
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

    def next_epoch(self, state: State) -> State:
        if state.steps is None:
            return state
        return State(state.window, standing=state.steps.last)

    def _with(self, state: State, later: Steps) -> State:
        steps = later if state.steps is None else state.steps.then(later)
        return replace(state, steps=steps)


AGGREGATES: Final = (TimeAverage(),)
