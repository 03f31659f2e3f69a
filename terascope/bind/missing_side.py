"""SQL's outer joins: a column of the side that is missing is NULL, also when the condition equates
it.

The join itself fills equated columns with the value of the side that is there, as GSQL's own joins
do: that is what keeps time known in every row. What a user calls `b.k` in a join with ON is the
filled column where `b` is there, and NULL elsewhere. A marker that every row of `b` carries tells
which rows these are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from terascope.functions import roles
from terascope.functions.base import Scalar
from terascope.plan.expr import (
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    columns_of,
    marked_column,
    substitute,
    transform,
)
from terascope.plan.expr import walk as walk_expr

STRICT: Final = (
    roles.Comparator, roles.Addition, roles.Multiplication, roles.Quotient, roles.FloorDivision,
    roles.Remainder, roles.BitOperation, roles.BitComplement, roles.ShiftLeft, roles.ShiftRight,
    roles.AddressMask,
)  # fmt: skip
"""Roles of operators that give NULL for a NULL."""


def marker_name(names: Collection[str]) -> str:
    """A name for the marker of an input that has these columns."""
    name = "here"
    while name in names:
        name += "_"
    return name


def as_written(
    condition: Expr, equated: Iterable[frozenset[str]], seen: Mapping[str, Expr]
) -> tuple[Expr, ...]:
    """A condition over what joins gave, as SQL means it, in conjuncts. `equated`: sets of columns
    that the joins equate; `seen`: what a filled column is for the user.

    The value that equated columns have in common is there in every row. It is a filled column that
    stays as it is, so it goes by another name until all other columns have become what is seen.
    """
    common: dict[str, Expr] = {}

    def named_apart(column: Col) -> Col:
        apart = Col(f"common:{column.name}", column.type)
        common[apart.name] = column
        return apart

    named = with_common_values(condition, equated, named_apart)
    return tuple(substitute(part, common) for part in in_rows_with(named, seen))


def in_rows_with(condition: Expr, seen: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """A condition as SQL means it, in conjuncts; `seen`: what a filled column is for the user.

    A comparison of filled columns is kept as it is, so that it still relates times, and the input
    must be there.
    """
    used = sorted(columns_of(condition) & seen.keys())
    if not used:
        return (condition,)
    if not is_strict(condition):
        return (substitute(condition, seen),)
    marked = (marked_column(seen[name]) for name in used)
    return (condition, *dict.fromkeys(pair[0] for pair in marked if pair is not None))


def is_strict(condition: Expr) -> bool:
    """Whether a NULL in any column keeps the condition from being TRUE."""
    return isinstance(condition, Call) and all(
        isinstance(part, Col | Lit | Cast)
        or (isinstance(part, Call) and isinstance(part.function.role, STRICT))
        for part in walk_expr(condition)
    )


def with_common_values(
    expr: Expr,
    equated: Iterable[frozenset[str]],
    named: Callable[[Col], Col] = lambda column: column,
) -> Expr:
    """`coalesce(a.tb, b.tb)` of all columns that a join equates is the value that they have in
    common, in whatever order they stand: one of them is always there. `named`: how the column that
    holds it is called from here on.
    """
    groups = tuple(equated)

    def common(part: Expr) -> Expr:
        match part:
            case Call(Scalar(role=roles.Coalescing()), args, type):
                columns = [c for arg in args if (c := filled_column(arg)) is not None]
                names = frozenset(c.name for c in columns)
                if len(columns) == len(args) and names in groups and columns[0].type is type:
                    return named(columns[0])
        return part

    return transform(expr, common)


def filled_column(expr: Expr) -> Col | None:
    """The column itself, of what a user sees of it."""
    marked = marked_column(expr)
    if marked is not None:
        return marked[1]
    return expr if isinstance(expr, Col) else None
