"""Typed expressions of the Plan: every name resolved, every function an object.

In: the results of binding. Out: immutable trees that engines translate and analyses read. Columns
are named, and mean the column of that name of the relation the expression stands over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from terascope.functions.base import AggregateFunction, Scalar, Value
from terascope.functions.casts import may_be_outside
from terascope.functions.roles import Comparator, Conjunction
from terascope.plan.hashing import PlanNode
from terascope.types import Type


class Col(PlanNode):
    """A column of the relation below."""

    name: str
    type: Type


class Lit(PlanNode):
    """A constant in held form."""

    value: Value
    type: Type
    of: str = field(default="", compare=False, repr=False)
    """The parameter whose value it is, if there is one."""


class Bound(Lit):
    """A constant that differs in every run of the plan: the value up to which rows are released. It
    should not be compiled into code.
    """


class Param(PlanNode):
    """A `$parameter`; its value is given when the plan runs."""

    name: str
    type: Type


class Call(PlanNode):
    """A scalar function or operator applied to arguments."""

    function: Scalar
    args: tuple[Expr, ...]
    type: Type


class Case(PlanNode):
    """The value of the first branch whose condition is TRUE."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: Type


class Cast(PlanNode):
    """A value converted to another type; a value that cannot be converted is NULL."""

    operand: Expr
    type: Type
    renames: bool = False
    """Whether an integer is only called otherwise, whatever the range of its type is."""

    @property
    def checks_range(self) -> bool:
        return not self.renames and may_be_outside(self.operand.type, self.type)


Expr: TypeAlias = Col | Lit | Param | Call | Case | Cast


class AggCall(PlanNode):
    """An aggregate over the tuples of a group. `args` are expressions over the source, `parameters`
    constants.

    `order`: for an order-dependent aggregate, the columns of the source that put its tuples in
    stream order.
    """

    function: AggregateFunction
    args: tuple[Expr, ...]
    type: Type
    parameters: tuple[Lit | Param, ...] = ()
    distinct: bool = False
    order: tuple[str, ...] = ()

    @property
    def state_parameters(self) -> tuple[Lit | Param, ...]:
        return self.parameters[: self.function.state_parameters]

    @property
    def finish_parameters(self) -> tuple[Lit | Param, ...]:
        return self.parameters[self.function.state_parameters :]

    @property
    def strategy(self) -> str:
        """The strategy that the query or a setting forces; empty: the optimiser chooses."""
        if not self.function.strategies:
            return ""
        chosen = self.state_parameters[-1]
        return chosen.value if isinstance(chosen, Lit) else ""

    @property
    def written_parameters(self) -> tuple[Lit | Param, ...]:
        """The constants that a query writes among the arguments: all but the strategy."""
        if not self.function.strategies:
            return self.parameters
        return (*self.state_parameters[:-1], *self.finish_parameters)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call():
            return expr.args
        case Col() | Lit() | Param():
            return ()
        case Case(branches, otherwise):
            return (*(e for branch in branches for e in branch), otherwise)
        case Cast(operand):
            return (operand,)
        case _:
            assert_never(expr)


def rebuild(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The same node over other children."""
    match expr:
        case Col() | Lit() | Param():
            return expr
        case Call():
            return replace(expr, args=parts)
        case Case():
            pairs = tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True))
            return replace(expr, branches=pairs, otherwise=parts[-1])
        case Cast():
            return replace(expr, operand=parts[0])
        case _:
            assert_never(expr)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Apply `change` to every node, children first."""
    parts = children(expr)
    if not parts:
        return change(expr)
    changed = tuple([transform(p, change) for p in parts])
    return change(expr if changed == parts else rebuild(expr, changed))


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, each before its children, these from left to right."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def columns_of(expr: Expr) -> frozenset[str]:
    """The names of the columns in an expression, which remembers them."""
    known: frozenset[str] | None = expr.__dict__.get("_columns")
    if known is None:
        parts = (expr.name,) if isinstance(expr, Col) else ()
        known = frozenset(parts).union(*map(columns_of, children(expr)))
        expr.__dict__["_columns"] = known
    return known


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Put expressions in the place of columns."""
    if columns_of(expr).isdisjoint(values):
        return expr
    return transform(expr, lambda e: values.get(e.name, e) if isinstance(e, Col) else e)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of an AND, from left to right."""
    if isinstance(expr, Call) and isinstance(expr.function.role, Conjunction):
        return tuple(c for arg in expr.args for c in conjuncts(arg))
    return (expr,)


def equated_sides(
    condition: Expr, left: frozenset[str], right: frozenset[str]
) -> tuple[Expr, Expr] | None:
    """(over left, over right) of an equality between columns of two sides; None for all else."""
    match condition:
        case Call(Scalar(role=Comparator() as role), (a, b)) if role.is_equality and (
            columns_of(a) and columns_of(b)
        ):
            if columns_of(a) <= left and columns_of(b) <= right:
                return a, b
            if columns_of(b) <= left and columns_of(a) <= right:
                return b, a
    return None


def is_constant(expr: Expr) -> bool:
    """Whether the value is the same for every tuple (a parameter counts)."""
    return not columns_of(expr)


def where_present(column: Col, marker: Col) -> Expr:
    """The column in rows in which its input is there, NULL in others."""
    return Case(((marker, column),), Lit(None, column.type), column.type)


def marked_column(expr: Expr) -> tuple[Col, Col] | None:
    """The marker and the column that `where_present` made the expression of; None: it is another
    one.
    """
    match expr:
        case Case(((Col(type=Type.BOOL) as marker, Col() as column),), Lit(None)):
            return marker, column
    return None
