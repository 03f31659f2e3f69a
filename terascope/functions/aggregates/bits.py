"""OR_AGGR, AND_AGGR and XOR_AGGR: bit by bit over integers, or over BOOLs."""

from __future__ import annotations

from typing import ClassVar, Final

from terascope.functions.aggregates.folding import Folding
from terascope.functions.signatures import CONDITION, known
from terascope.functions.slots import SlotKind
from terascope.functions.spark_form import SparkCall, SparkForm
from terascope.types import Type

OR_INT: Final = SlotKind("or_int", ("{slot} |= {value}",), numpy="bitwise_or")
AND_INT: Final = SlotKind(
    "and_int",
    ("if {seen}:", "    {slot} &= {value}", "else:", "    {slot} = {value}"),
    identity=-1,
    started=("{slot} &= {value}",),
    numpy="bitwise_and",
)
XOR_INT: Final = SlotKind(
    "xor_int", ("{slot} ^= {value}",), take_back=("{slot} ^= {value}",), numpy="bitwise_xor"
)

Bits = int
"""An integer, or a BOOL, whose operators | & ^ give BOOLs again."""


class OrAggregate(Folding):
    name = "or_aggr"
    takes = (CONDITION,)
    doc = "the bits set in any value; for BOOL, whether any is TRUE"
    kept_in: ClassVar[SlotKind] = OR_INT

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        return known(super().type_rule(args), Type.INT)

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left | right

    def slot(self, args: tuple[Type, ...]) -> SlotKind | None:
        return self.kept_in

    def spark(self, call: SparkCall) -> SparkForm | None:
        of_bools = call.type is Type.BOOL
        return SparkForm(((call.F.bool_or if of_bools else call.F.bit_or)(call.value),))


class AndAggregate(OrAggregate):
    name = "and_aggr"
    doc = "the bits set in every value; for BOOL, whether all are TRUE"
    kept_in = AND_INT

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left & right

    def spark(self, call: SparkCall) -> SparkForm | None:
        of_bools = call.type is Type.BOOL
        return SparkForm(((call.F.bool_and if of_bools else call.F.bit_and)(call.value),))


class XorAggregate(OrAggregate):
    name = "xor_aggr"
    doc = "the bits set in an odd number of values; for BOOL, whether an odd number is TRUE"
    kept_in = XOR_INT

    def combine(self, left: Bits, right: Bits) -> Bits:
        return left ^ right

    def spark(self, call: SparkCall) -> SparkForm | None:
        F = call.F
        if call.distinct:
            return None
        if call.type is Type.BOOL:
            return SparkForm((F.bit_xor(call.value.cast("int")),), lambda p: p[0] != F.lit(0))
        return SparkForm((F.bit_xor(call.value),))


AGGREGATES: Final = (OrAggregate(), AndAggregate(), XorAggregate())
SYNONYMS: Final = {
    "bit_or": "or_aggr",
    "bit_and": "and_aggr",
    "bit_xor": "xor_aggr",
    "bool_or": "or_aggr",
    "bool_and": "and_aggr",
}
