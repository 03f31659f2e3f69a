"""The capability profile of the host of a source (dissertation 3.4.1).

In: nothing. Out: `Host`s, declared as data: a plain decoder that only delivers columns, the
compiled host that runs the kernels, a capture filter that compares header fields with constants.
Splitting reads the profile, never a function's name: `LowSafety` decides by it, and by costs, which
expressions may move next to the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from terascope.analysis.costs import Costs
from terascope.functions import roles
from terascope.functions.base import Value
from terascope.functions.partial_states import PartialState
from terascope.kernels.tables.slots import MOST_SLOTS
from terascope.physical.split.selection import Selection
from terascope.plan.expr import (
    AggCall,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    Param,
    children,
    is_constant,
    transform,
    walk,
)
from terascope.types import INTEGERS, Type

Refusal: TypeAlias = Callable[[Expr], str | None]
"""The reason why an evaluator cannot compute an expression; None when it can."""

EVERYTHING: Final = frozenset(Type)
NUMBERS: Final = INTEGERS | {Type.FLOAT, Type.WIDE}


def knows_all(expr: Expr) -> str | None:
    """The evaluator of a host without limits: it has a form for every expression."""
    return None


def kernels_know(expr: Expr) -> str | None:
    """The reason why the compiled kernels have no form for an expression, or None."""
    # Imported late: numba takes a moment, and not every host has kernels.
    from terascope.kernels.codegen.expressions import unsupported

    why = unsupported(expr)
    return None if why is None else f"the kernels do not know {why}"


@dataclass(frozen=True)
class Host:
    """The capabilities of the host of a source. The defaults are those of a host without limits."""

    name: str
    filters: bool = True
    """Whether it evaluates predicates."""
    computes: bool = True
    """Whether it delivers computed columns, not only those of the source."""
    aggregates: bool = True
    known_roles: frozenset[type[roles.Role]] | None = None
    """The roles of functions and operators that it evaluates; None: all roles."""
    column_types: frozenset[Type] = EVERYTHING
    """The types of columns in its expressions."""
    one_column: bool = False
    """Whether a comparison may have only one column: all other operands are constants."""
    key_types: frozenset[Type] = EVERYTHING
    """The types of grouping keys."""
    value_types: frozenset[Type] = EVERYTHING
    """The types of values that a sub-aggregate may hold."""
    most_slots: int = MOST_SLOTS
    """The most sub-aggregates of one low-level aggregation."""
    knows: Refusal = field(default=knows_all, compare=False, repr=False)
    """The reason why its evaluator has no form for an expression, or None."""

    def refuses(self, expr: Expr) -> str | None:
        """The reason why the profile excludes an expression; None when it does not."""
        reason = self.own_refusal(expr)
        if reason is not None:
            return f"host {self.name} {reason}"
        return next((r for e in children(expr) if (r := self.refuses(e)) is not None), None)

    def own_refusal(self, expr: Expr) -> str | None:
        match expr:
            case Col(name, kind) if kind not in self.column_types:
                return f"does not look into {name}, which is {kind.label}"
            case Call(function) if (
                self.known_roles is not None and type(function.role) not in self.known_roles
            ):
                return f"does not know {function.name}"
            case Cast() if is_renaming(expr):
                return None
            case Case() | Cast() if self.known_roles is not None:
                return f"does not know {type(expr).__name__.upper()}"
            case Call(args=args) if self.one_column and compares_columns(args):
                return "compares a column with constants only"
            case _:
                return None


def is_renaming(cast: Cast) -> bool:
    """Whether a cast changes no value: integer types differ only in name and range."""
    return cast.operand.type.is_integer and cast.type.is_integer and not cast.checks_range


def compares_columns(args: tuple[Expr, ...]) -> bool:
    """Whether several operands vary. Operands that are conditions themselves are judged by their
    own operands.
    """
    varying = [a for a in args if not is_constant(a) and a.type is not Type.BOOL]
    return len(varying) > 1


PLAIN_DECODER: Final = Host("plain_decoder", filters=False, computes=False, aggregates=False)
"""A host that delivers requested columns and does nothing else."""

COMPILED_HOST: Final = Host(
    "compiled_host",
    key_types=NUMBERS | {Type.BOOL, Type.STRING, Type.IP, Type.IPV6},
    value_types=NUMBERS,
    knows=kernels_know,
)
"""A host that runs compiled kernels: groups hold numbers, keys are numbers or dictionary codes."""

CAPTURE_FILTER: Final = Host(
    "capture_filter",
    computes=False,
    aggregates=False,
    known_roles=frozenset(
        {
            roles.Conjunction,
            roles.Disjunction,
            roles.Negation,
            roles.Comparator,
            roles.Membership,
            roles.ListMembership,
            roles.BitOperation,
            roles.AddressMask,
        }
    ),
    column_types=INTEGERS | {Type.BOOL, Type.IP, Type.IPV6},
    one_column=True,
)
"""A packet filter in the kernel or on the card: header fields against constants."""

HOSTS: Final[Mapping[str, Host]] = {
    host.name: host for host in (PLAIN_DECODER, COMPILED_HOST, CAPTURE_FILTER)
}


@dataclass(frozen=True)
class LowSafety:
    """Decides which expressions may move into the low part: gives a reason against it, or None."""

    host: Host
    costs: Costs
    values: Mapping[str, Value]
    """The values of parameters; a parameter without a value stays a parameter."""

    def with_value(self, expr: Expr) -> Expr:
        if not self.values:
            return expr

        def bound(e: Expr) -> Expr:
            value = self.values.get(e.name) if isinstance(e, Param) else None
            return e if value is None or not isinstance(e, Param) else Lit(value, e.type, e.name)

        return transform(expr, bound)

    def with_values(self, chosen: Selection) -> Selection:
        if not self.values:
            return chosen
        conditions = tuple(map(self.with_value, chosen.conditions))
        items = tuple((name, self.with_value(expr)) for name, expr in chosen.items)
        return replace(chosen, conditions=conditions, items=items)

    def unsafe(self, expr: Expr, unable: str = "") -> str | None:
        """The reason why an expression must stay above the source; None when it is low-level safe.
        `unable`: what the host cannot do with any such expression. Whether its evaluator has a form
        for the expression is asked last.
        """
        for part in walk(expr):
            if isinstance(part, Call) and part.function.user_defined:
                return f"{part.function.name} is a user's Python function"
        refused = f"host {self.host.name} {unable}" if unable else self.host.refuses(expr)
        if refused is not None:
            return refused
        cost, budget = self.costs.of(expr), self.costs.budget_ns
        if cost > budget:
            return f"costs {cost:.0f} ns, over the budget of {budget:.0f} ns"
        return self.host.knows(expr)

    def condition(self, expr: Expr) -> str | None:
        return self.unsafe(expr, "" if self.host.filters else "evaluates no predicates")

    def column(self, expr: Expr) -> str | None:
        return self.unsafe(expr, "" if self.host.computes else "computes no columns")

    def key(self, expr: Expr) -> str | None:
        if expr.type not in self.host.key_types:
            return f"host {self.host.name} does not group by {expr.type.label}"
        return self.unsafe(expr)

    def sub_aggregate(self, call: AggCall) -> str | None:
        if not call.function.cheap:
            return f"aggregate {call.function.name} is not for the low level"
        if isinstance(call.function, PartialState):
            unable = next((a for a in call.args if a.type not in self.host.key_types), None)
            if unable is not None:
                return f"host {self.host.name} keeps no {unable.type.label} in a state"
        elif call.type not in self.host.value_types:
            return f"host {self.host.name} holds no {call.type.label} in a group"
        return next(filter(None, map(self.unsafe, call.args)), None)

    def is_safe(self, chosen: Selection) -> bool:
        """Whether a whole selection can run next to the source."""
        computed = [e for _, e in chosen.items if not isinstance(e, Col) and not is_constant(e)]
        return all(self.condition(c) is None for c in chosen.conditions) and all(
            self.column(e) is None for e in computed
        )
