"""moving_sum(x, N) and moving_sum_exp(x, N, alpha): over the last N epochs of a group.

The state is (N, sums), one sum per epoch, the newest last. moving_sum_exp weighs the newest epoch
with 1, the one before with alpha, then alpha squared, and so on.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import ClassVar, Final, TypeAlias

from terascope.functions.aggregates.folding import PlainAggregate
from terascope.functions.aggregates.total import checked_sum, sum_type
from terascope.functions.base import Value, ValueMistake
from terascope.functions.signatures import INTEGER
from terascope.types import Type

Number: TypeAlias = int | float
State: TypeAlias = tuple[int, tuple[int, ...]]


class MovingSum(PlainAggregate):
    name = "moving_sum"
    takes = (INTEGER,)
    state_parameters = 1
    running = True
    sampling = "rescale"
    example_parameters: ClassVar[tuple[Value, ...]] = (3,)
    doc = "moving_sum(x, N): the sum over the group's last N epochs; 0 when there is no value"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        found = super().type_rule(args)
        return self.returns or sum_type(found)

    def zero(self, *parameters: Value) -> State:
        (epochs,) = parameters
        if type(epochs) is not int or epochs < 1:
            raise ValueMistake(f"{self.name} takes a number of epochs of at least 1, not {epochs}")
        return epochs, (0,)

    def reduce(self, state: State, *args: Value) -> State:
        epochs, sums = state
        return epochs, (*sums[:-1], sums[-1] + args[0])

    def merge(self, left: State, right: State) -> State:
        """Epoch by epoch, counted back from the newest."""
        pairs = zip_longest(reversed(left[1]), reversed(right[1]), fillvalue=0)
        return left[0], tuple(a + b for a, b in pairs)[::-1]

    def finish(self, state: State, *parameters: Value) -> Number:
        return checked_sum(sum(state[1]), self.name)

    def next_epoch(self, state: State) -> State:
        epochs, sums = state
        return epochs, (*sums, 0)[-epochs:]


class MovingSumExp(MovingSum):
    name = "moving_sum_exp"
    returns = Type.FLOAT
    finish_parameters = 1
    example_parameters = (3, 0.5)
    doc = "moving_sum_exp(x, N, alpha): the same, each epoch weighing alpha times the next newer"

    def finish(self, state: State, *parameters: Value) -> Number:
        (alpha,) = parameters
        if not isinstance(alpha, int | float) or isinstance(alpha, bool):
            raise ValueMistake(f"{self.name} takes a number as alpha, not {alpha}")
        weighed = 0.0
        for epoch in state[1]:
            weighed = weighed * alpha + epoch
        return weighed


AGGREGATES: Final = (MovingSum(), MovingSumExp())
