"""CAT_aggr(separator, text): the texts of a group joined in stream order."""

from __future__ import annotations

from typing import Final

from terascope.functions.aggregates.runs import EMPTY, Runs, add, items, join
from terascope.functions.base import AggregateFunction, Value
from terascope.functions.signatures import TEXT, expect
from terascope.functions.values import as_text
from terascope.types import Type


class Concatenation(AggregateFunction):
    name = "cat_aggr"
    arity = 2
    kind = "holistic"
    ordered = True
    cheap = False
    doc = "cat_aggr(separator, text): the texts in stream order, each after its separator"

    def type_rule(self, args: tuple[Type, ...]) -> Type:
        expect(self.name, args[: self.arity], TEXT, TEXT)
        return Type.STRING

    def zero(self, *parameters: Value) -> Runs:
        return EMPTY

    def reduce(self, state: Runs, *args: Value) -> Runs:
        separator, text = args
        return add(state, (as_text(separator), as_text(text)))

    def merge(self, left: Runs, right: Runs) -> Runs:
        return join(left, right)

    def finish(self, state: Runs, *parameters: Value) -> str | None:
        if not state:
            return None
        pieces = [piece for pair in items(state) for piece in pair]
        return "".join(pieces[1:])


AGGREGATES: Final = (Concatenation(),)
