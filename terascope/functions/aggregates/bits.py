"""OR_AGGR, AND_AGGR and XOR_AGGR: bit by bit over integers, or over BOOLs."""

from __future__ import annotations

from typing import Final

from terascope.functions.base import Aggregate, Value
from terascope.functions.decomposition import FIRST, Decomposition, Part
from terascope.functions.signatures import CONDITION, expect, known
from terascope.types import Type

Bits = int
"""An integer, or a BOOL, whose operators | & ^ give BOOLs again."""


class OrAggregate(Aggregate):
    name = "or_aggr"
    keeps_one = True
    doc = "the bits set in any value; for BOOL, whether any is TRUE"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return known(expect(self.name, args[: self.arity], CONDITION)[0], Type.INT)

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left | right

    def zero(self, *parameters: Value) -> Bits | None:
        return None

    def reduce(self, state: Bits | None, *args: Value) -> Bits:
        (value,) = args
        result: Bits = value if state is None else self.combine(state, value)
        return result

    def merge(self, left: Bits | None, right: Bits | None) -> Bits | None:
        if left is None or right is None:
            return right if left is None else left
        return self.combine(left, right)

    def finish(self, state: Bits | None, *parameters: Value) -> Bits | None:
        return state

    def split(self, args: tuple[Type, ...], finer: bool) -> Decomposition | None:
        return Decomposition((Part(self, (FIRST,), self),))


class AndAggregate(OrAggregate):
    name = "and_aggr"
    doc = "the bits set in every value; for BOOL, whether all are TRUE"

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left & right


class XorAggregate(OrAggregate):
    name = "xor_aggr"
    doc = "the bits set in an odd number of values; for BOOL, whether an odd number is TRUE"

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left ^ right


AGGREGATES: Final = (OrAggregate(), AndAggregate(), XorAggregate())
SYNONYMS: Final = {
    "bit_or": "or_aggr",
    "bit_and": "and_aggr",
    "bit_xor": "xor_aggr",
    "bool_or": "or_aggr",
    "bool_and": "and_aggr",
}
