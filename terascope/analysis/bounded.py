"""The conditions under which an operator may drop state: the key that closes a group, the predicate
that bounds a join (dissertation 3.1.1, 3.1.3).

In: an operator and how expressions over its inputs move. Out: the closing key, or the temporal
condition, or None, which is the mistake `unbounded-group-by` or `unbounded-join`; and, for a join,
which side can be missing, and which columns hold the time in rows whose side is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from terascope.analysis.slopes import Orders, expression_slope
from terascope.functions.base import Scalar, Trend
from terascope.functions.roles import Addition, Comparator, Magnitude, Multiplication
from terascope.plan.expr import (
    Call,
    Cast,
    Col,
    Expr,
    Lit,
    columns_of,
    conjuncts,
    substitute,
    transform,
)
from terascope.plan.rel import Join, Lookup, Named, Rel, inputs
from terascope.plan.show import show_expr


def closing_key(keys: tuple[Named, ...], orders: Orders) -> str | None:
    """The key whose progress closes groups: the first one that is ordered."""
    return next((name for name, expr in keys if expression_slope(expr, orders).is_ordered), None)


def is_timeless(rel: Rel) -> bool:
    """Whether a relation is a table and no stream: a join with it needs no bound."""
    return isinstance(rel, Lookup) or (bool(inputs(rel)) and all(map(is_timeless, inputs(rel))))


@dataclass(frozen=True)
class JoinBound:
    """The temporal condition of a join."""

    left: Expr
    right: Expr
    band: tuple[int | float, int | float] | None = None
    """None for an equality; else the range of right - left (a band join)."""

    def __str__(self) -> str:
        left, right = show_expr(self.left, 5), show_expr(self.right, 5)
        if self.band is None:
            return f"{left} = {right}"
        low, high = self.band
        return f"{right} - {left} in [{low}, {high}]"


def join_bound(join: Join, left: Orders, right: Orders) -> JoinBound | None:
    """The predicate that bounds a join: an equality of ordered expressions, or a band."""
    for a, b in ordered_equalities(join, left, right):
        return JoinBound(a, b)
    return band_bound(join, left, right)


def ordered_equalities(join: Join, left: Orders, right: Orders) -> Iterator[tuple[Expr, Expr]]:
    """The equalities of expressions that move with time in the same direction."""
    for a, b in join.equalities:
        slope = expression_slope(a, left)
        if slope.is_ordered and slope.trend is expression_slope(b, right).trend:
            yield a, b


def temporal_columns(join: Join, left: Orders, right: Orders) -> frozenset[str]:
    """The columns of every temporal condition of a join, which stay ordered after it. Rows that
    match because both sides fall into the same epoch (x.ts/60 = y.ts/60) are in the order of the
    left side only: every tuple of the epoch matches every other.
    """
    kept: set[str] = set()
    for a, b in ordered_equalities(join, left, right):
        kept |= columns_of(a)
        kept |= columns_of(b) if tells_column(a) or tells_column(b) else set()
    if not kept and (band := band_bound(join, left, right)):
        kept = set(columns_of(band.left))
    return frozenset(kept)


# ---- bands: y.ts BETWEEN x.ts - a AND x.ts + b ---------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """sum of coefficient * column, plus a constant."""

    terms: Mapping[str, int | float]
    constant: int | float


def linear(expr: Expr) -> Linear | None:
    """An expression as a linear form of its columns, or None when it is not one."""
    match expr:
        case Lit(int() | float() as value) if not isinstance(value, bool):
            return Linear({}, value)
        case Col(name, type) if type.is_numeric:
            return Linear({name: 1}, 0)
        case Cast(operand, type) if type.is_numeric and operand.type.is_integer:
            return linear(operand)
        case Call(Scalar(role=Addition(signs)), args):
            return total(*((sign, linear(arg)) for sign, arg in zip(signs, args, strict=True)))
        case Call(Scalar(role=Multiplication()), (a, b)):
            one, other = linear(a), linear(b)
            if one is not None and not one.terms:
                return total((one.constant, other))
            return None if other is None or other.terms else total((other.constant, one))
        case _:
            return None


def total(*parts: tuple[int | float, Linear | None]) -> Linear | None:
    """The sum of linear forms, each times a factor; None when one of them is missing."""
    terms: dict[str, int | float] = {}
    constant: int | float = 0
    for factor, form in parts:
        if form is None:
            return None
        constant += factor * form.constant
        for name, coefficient in form.terms.items():
            terms[name] = terms.get(name, 0) + factor * coefficient
    return Linear({n: c for n, c in terms.items() if c}, constant)


def tells_column(expr: Expr) -> bool:
    """Whether an expression determines the value of its column: it is one-to-one."""
    form = linear(expr)
    return form is not None and len(form.terms) == 1


def band_bound(join: Join, left: Orders, right: Orders) -> JoinBound | None:
    """Two-sided comparison of one increasing column of each side, from the residual condition."""
    columns = {f.name: Col(f.name, f.type) for f in (*join.left.fields, *join.right.fields)}
    for (x, y), (lows, highs) in compared_columns(join).items():
        trends = expression_slope(columns[x], left).trend, expression_slope(columns[y], right).trend
        if lows and highs and trends == (Trend.INCREASING, Trend.INCREASING):
            return JoinBound(columns[x], columns[y], (tidy(max(lows)), tidy(min(highs))))
    return None


Limits: TypeAlias = tuple[list[int | float], list[int | float]]
"""Numbers that a difference is not below, and numbers that it is not above."""


def compared_columns(join: Join) -> dict[tuple[str, str], Limits]:
    """By a column x of the left side and y of the right one: the limits that the residual condition
    sets to y - x.
    """
    limits: dict[tuple[str, str], Limits] = {}
    parts = () if join.residual is None else conjuncts(join.residual)
    for form in (form for part in parts for form in upper_forms(part)):
        pair = compared_pair(form, join)
        if pair is not None:
            x, y, scale = pair
            lows, highs = limits.setdefault((x, y), ([], []))
            # scale * (y - x) <= -constant
            (highs if scale > 0 else lows).append(exact_ratio(-form.constant, scale))
    return limits


def exact_ratio(number: int | float, by: int | float) -> int | float:
    """The quotient, as an integer where it is one: nanoseconds do not fit a FLOAT."""
    if isinstance(number, int) and isinstance(by, int) and number % by == 0:
        return number // by
    return number / by


def tidy(number: int | float) -> int | float:
    return int(number) if float(number).is_integer() else number


def upper_forms(part: Expr) -> list[Linear]:
    """Linear forms f with `part` implying f <= 0."""
    match part:
        case Call(Scalar(role=Comparator() as role), (a, b)):
            above = [] if role.greater else bounds(a, b)
            below = [] if role.less else bounds(b, a)
            return [form for form in (*above, *below) if form is not None]
        case _:
            return []


def bounds(a: Expr, b: Expr) -> list[Linear | None]:
    """Linear forms that are at most 0 where a <= b: |d| <= n is d <= n and -d <= n."""
    match a:
        case Call(Scalar(role=Magnitude()), (distance,)):
            size = linear(distance)
            return [total((sign, size), (-1, linear(b))) for sign in (1, -1)]
        case _:
            return [total((1, linear(a)), (-1, linear(b)))]


def compared_pair(form: Linear, join: Join) -> tuple[str, str, int | float] | None:
    """(left column, right column, factor of the right one) of a form of their difference."""
    if len(form.terms) != 2 or sum(form.terms.values()) != 0:
        return None
    x, y = sorted(form.terms, key=lambda n: n not in join.left.names)
    if x not in join.left.names or y not in join.right.names:
        return None
    return x, y, form.terms[y]


def stream_side(join: Join) -> Rel | None:
    """The side that has time when the other is a table; None when both have."""
    if is_timeless(join.right):
        return join.left
    return join.right if is_timeless(join.left) else None


def is_true_always(join: Join, side: Rel, mine: Expr, other: Expr) -> bool:
    """Whether `mine`, over one side, equals `other` also in rows in which that side is missing."""
    if not join.may_miss(side):
        return True
    fills = dict(join.fills)
    if not columns_of(mine) <= fills.keys():
        return False
    # Whatever `other` computes, it is one number here; the filled columns are made of it.
    number = Col("#other", other.type)
    made = transform(substitute(mine, fills), lambda e: number if e == other else e)
    return linear(made) == linear(number)


def only_column(expr: Expr, rel: Rel) -> Col | None:
    """The column of an expression that names just one."""
    names = columns_of(expr)
    if len(names) != 1:
        return None
    (name,) = names
    return Col(name, rel.type_of(name))
