"""Aggregates whose state is a value: what all values make when they are combined two by two."""

from __future__ import annotations

from abc import abstractmethod

from terascope.functions.base import AggregateFunction, Value
from terascope.functions.decomposition import FIRST, Decomposition, SinglePart
from terascope.types import Type


class Folding(AggregateFunction):
    """Says by `combine` what two values make, in any order; nothing makes NULL."""

    keeps_one = True

    @abstractmethod
    def combine(self, left: Value, right: Value) -> Value: ...

    def zero(self, *parameters: Value) -> Value:
        return None

    def reduce(self, state: Value, *args: Value) -> Value:
        return self.merge(state, args[0])

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return self.combine(left, right)

    def finish(self, state: Value, *parameters: Value) -> Value:
        return state

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        """Partial values are merged as values are."""
        return Decomposition((SinglePart(self, (FIRST,), self),))
