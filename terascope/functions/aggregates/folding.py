"""What built-in aggregates share: the types they take, and states that are values.

`PlainAggregate` is the base of all of them. `Folding` is for aggregates whose state is what all
values make when they are combined two by two. `Collecting` keeps the values themselves, as `Runs`:
a sequence that is never changed in place, a tuple of tuples that get shorter from left to right.
Adding joins the last runs while the one before is not longer, so n items cost O(n log n) in all and
a state handed out earlier stays what it was. The order of items is kept.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar, TypeAlias

from terascope.functions.base import FIRST, AggregateFunction, Decomposition, State, Value, single
from terascope.functions.signatures import ANYTHING, Want, expect
from terascope.types import Type

Runs: TypeAlias = tuple[tuple[Any, ...], ...]


class PlainAggregate(AggregateFunction):
    """Says by attributes what it takes and gives. Its state is its value, NULL at first, and the
    state of one value is that value, unless it says otherwise.
    """

    takes: ClassVar[tuple[Want, ...]] = (ANYTHING,)
    returns: ClassVar[Type | None] = None
    """The type of the result; None: that of the first argument."""

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        first, *_ = expect(self.name, args[: self.arity], *self.takes)
        return first if self.returns is None else self.returns

    def zero(self, *parameters: Value) -> State:
        return None

    def reduce(self, state: State, *args: Value) -> State:
        return self.merge(state, args[0])

    def finish(self, state: State, *parameters: Value) -> Value:
        return state


class Folding(PlainAggregate):
    """Says by `combine` what two values make, in any order; nothing makes NULL."""

    keeps_one = True

    @abstractmethod
    def combine(self, left: Value, right: Value) -> Value: ...

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return self.combine(left, right)

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """Partial values are merged as values are."""
        return Decomposition((single(self, self, FIRST),))


class Collecting(PlainAggregate):
    """Keeps all values of a group, in stream order."""

    kind = "holistic"
    cheap = False

    def zero(self, *parameters: Value) -> Runs:
        return ()

    def reduce(self, state: Runs, *args: Value) -> Runs:
        return join(state, ((args[0] if len(args) == 1 else args,),))

    def merge(self, left: Runs, right: Runs) -> Runs:
        return join(left, right)


def join(left: Runs, right: Runs) -> Runs:
    for run in right:
        while left and len(left[-1]) <= len(run):
            run = left[-1] + run
            left = left[:-1]
        left = (*left, run)
    return left


def items(runs: Runs) -> Iterator[Any]:
    return chain.from_iterable(runs)
