"""Which predicates can be evaluated next to the source, on Arrow columns (dissertation 3.4.1).

In: an expression over the columns of a source. Out: whether the low level understands it and gives
exactly its value; what it cannot stays above.
"""

from __future__ import annotations

from typing import Final

from terascope.plan.expr import Call, Col, Expr, Lit
from terascope.types import Type

COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
ARITHMETIC: Final = frozenset({"+", "-", "*"})
BITS: Final = frozenset({"&", "|", "^"})


def can_evaluate(expr: Expr) -> bool:
    """Whether the low level understands the expression."""
    match expr:
        case Col():
            return True
        case Lit(type=type):
            return type is not Type.NULL
        case Call(function, args):
            name = function.name
            if not all(can_evaluate(a) for a in args) or function.user_defined:
                return False
            types = tuple(a.type for a in args)
            if name in ("and", "or", "not"):
                return all(t is Type.BOOL for t in types)
            if name == "is_null":
                return True
            if name in COMPARISONS or name in ("in", "in_list"):
                return all(comparable(args[0], other) for other in args[1:])
            if name in ARITHMETIC or name in BITS:
                return len(args) == 2 and all(t.is_integer for t in types)
            if name in ("div", "%"):
                return types[0].is_integer and is_positive_int(args[1])
            return False
        case _:
            return False


def comparable(left: Expr, right: Expr) -> bool:
    types = {left.type, right.type}
    return (
        len(types) == 1
        or types <= {Type.IP, Type.IPV6}
        or types <= {Type.STRING, Type.BINARY}
        or all(t.is_numeric for t in types)
    )


def is_positive_int(expr: Expr) -> bool:
    return isinstance(expr, Lit) and expr.type.is_integer and expr.value > 0
