"""What a splitter can do: the partitioning sets that it can be set up for (P2 3.2).

In: the words of the user. Out: a `SplitterCapability`: which values it can compute of a tuple.

    srcIP, destIP     only sets of these expressions
    masks             attributes, and bits of one that a mask selects
    (nothing)         any expression
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from terascope.connectors.base import Column
from terascope.diagnostic import QueryError
from terascope.partitioning.digits import AddressPrefix, Digits, NormalForm, bits_of
from terascope.partitioning.normal import form_expr, normal_form
from terascope.partitioning.sets import parse_set
from terascope.plan.expr import Col, Expr

MASKS: Final = "masks"
MOST_PAIRS: Final = 256
"""Combinations of listed expressions over linked sources that are looked at."""


@dataclass(frozen=True)
class SplitterCapability:
    """The capability of a splitter."""

    text: str = ""
    """As the user wrote it; empty: it can compute every expression."""
    listed: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    """By source: the only expressions that it can compute. Empty: it is not limited so."""

    @property
    def is_limited(self) -> bool:
        return bool(self.text)

    @property
    def only_masks(self) -> bool:
        return self.text.strip().lower() == MASKS

    def values(self, sources: Sequence[str]) -> Iterator[dict[str, Expr]]:
        """The listed expressions for linked sources: one for each of them."""
        choices = [self.listed.get(source, ()) for source in sources]
        for number, chosen in enumerate(product(*choices)):
            if number == MOST_PAIRS:
                return
            yield dict(zip(sources, chosen, strict=True))

    def adapted(self, values: Mapping[str, Expr]) -> Mapping[str, Expr] | None:
        """The same value, written as the splitter can compute it; None: it cannot."""
        if not self.only_masks:
            return values
        made = {source: as_mask(expr) for source, expr in values.items()}
        steps = {one[1] for one in made.values() if one is not None}
        if None in made.values() or len(steps) > 1:
            return None
        return {source: one[0] for source, one in made.items() if one is not None}


def capability_of(text: str, columns: Mapping[str, Sequence[Column]]) -> SplitterCapability:
    """The capability that a text describes. `columns`: those of each source.

    Raises:
        QueryError: the text is a list of expressions that no source has.
    """
    if not text.strip() or text.strip().lower() == MASKS:
        return SplitterCapability(text.strip())
    listed: dict[str, tuple[Expr, ...]] = {}
    problem: QueryError | None = None
    for source, some in columns.items():
        try:
            listed[source] = parse_set(text, some).expressions
        except QueryError as mistake:
            problem = mistake
    if not listed and problem is not None:
        raise problem
    return SplitterCapability(text, listed)


def as_mask(expr: Expr) -> tuple[Expr, int] | None:
    """The expression as an attribute or as some of its bits, and the factor by which the value
    differs; None: it is neither.
    """
    if isinstance(expr, Col):
        return expr, 1
    form = normal_form(expr)
    core = form.core
    if isinstance(core, AddressPrefix):
        return (expr, 1) if isinstance(core.base, Col) else None
    if not is_attribute(core.base):
        return None
    if bits_of(NormalForm(core, form.scale), None) is not None and not form.shift:
        return expr, 1
    if isinstance(core, Digits) and not form.shift and form.scale == 1:
        bits = NormalForm(core, core.step, 0, is_number_of_address(core.base))
        if bits_of(NormalForm(core, core.step), None) is not None:
            return form_expr(bits), core.step
    return None


def is_attribute(expr: Expr) -> bool:
    """A column, or the number that an address is."""
    return isinstance(expr, Col) or is_number_of_address(expr)


def is_number_of_address(expr: Expr) -> bool:
    operand = getattr(expr, "operand", None)
    return isinstance(operand, Col) and operand.type.is_address


def masks_only(expressions: Iterable[Expr]) -> bool:
    """Whether a switch can compute all of the expressions: attributes and masks of them."""
    return all(as_mask(expr) is not None for expr in expressions)
