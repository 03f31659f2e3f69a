"""The keys of low-level groups: as few expressions as all keys of a query follow from.

In: the keys of an aggregation, over the columns of a scan. Out: the expressions that the low level
groups by, and each key made of them again. `time/60*60` and `wend` follow from `time/60`,
`prefix(srcIP, 24)` from `srcIP`: such keys are computed above, once for each group, so that they
need be neither cheap nor known to the host; and queries that differ in them only share groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from terascope.functions.base import Slope, Trend
from terascope.plan.expr import Call, Col, Expr, Lit, children, is_constant, rebuild

RISING = Slope(Trend.INCREASING, strict=True)


def fewest(exprs: Iterable[Expr]) -> list[Expr]:
    """Expressions that all of these follow from, and no more."""
    bases = list(dict.fromkeys(unscaled(e) for e in exprs if not is_constant(e)))
    return [e for e in bases if follows(e, {b: b for b in bases if b != e}) is None]


def follows(expr: Expr, known: Mapping[Expr, Expr]) -> Expr | None:
    """The expression made of known ones; None when it needs more."""
    if expr in known:
        return known[expr]
    if isinstance(expr, Col):
        return None
    parts = [follows(part, known) for part in children(expr)]
    found = tuple(part for part in parts if part is not None)
    return rebuild(expr, found) if len(found) == len(parts) else None


@lru_cache(maxsize=4096)
def unscaled(expr: Expr) -> Expr:
    """Without the outer functions that keep different integers different: x of 60 * x + 7."""
    while isinstance(expr, Call) and expr.type.is_integer:
        varying = [a for a in expr.args if not is_constant(a)]
        if len(varying) != 1 or not varying[0].type.is_integer or not keeps_apart(expr):
            return expr
        expr = varying[0]
    return expr


def keeps_apart(call: Call) -> bool:
    """Whether a larger argument always gives a larger, or always a smaller value."""
    slopes: list[Slope] = []
    for arg in call.args:
        if not is_constant(arg):
            slopes.append(RISING)
        elif isinstance(arg, Lit) and arg.value is not None:
            slopes.append(Slope(Trend.CONSTANT, value=arg.value))
        else:
            return False
    slope = call.function.slope(slopes)
    return slope.is_ordered and slope.strict
