"""Plans by hand: short ways to write expressions, scans and streams in tests.

In: names, Python values and relations. Out: nodes of a Plan, typed as the binder would.
"""

from __future__ import annotations

from collections.abc import Sequence

from terascope.functions.base import Value
from terascope.functions.operators import operators
from terascope.functions.registry import Functions
from terascope.plan.expr import AggCall, Call, Case, Cast, Col, Expr, Lit, Param
from terascope.plan.plan import Parameter, Plan, Stream
from terascope.plan.rel import (
    IFACE,
    POS,
    TS,
    Field,
    Named,
    NamedAgg,
    Project,
    Read,
    Rel,
    Scan,
    SourceField,
)
from terascope.types import Type, parse_ip, unify

FUNCTIONS = Functions.builtin()
ORDER = (TS, IFACE, POS)
"""The columns that put the tuples of a scan in stream order."""


# ---- expressions ---------------------------------------------------------------------------------


def col(name: str, type: Type = Type.INT) -> Col:
    return Col(name, type)


def lit(value: Value, type: Type | None = None) -> Lit:
    """A constant; its type is told from the value."""
    return Lit(value, type or type_of_value(value))


def ip(text: str) -> Lit:
    return Lit(parse_ip(text), Type.IP)


def type_of_value(value: Value) -> Type:
    match value:
        case None:
            return Type.NULL
        case bool():
            return Type.BOOL
        case int():
            return Type.INT
        case float():
            return Type.FLOAT
        case str():
            return Type.STRING
        case bytes():
            return Type.BINARY
        case _:
            raise TypeError(f"no literal: {value!r}")


def call(name: str, *args: Expr | Value) -> Call:
    """An operator or a scalar of the registry; plain Python values stand for constants."""
    function = operators.get(name) or FUNCTIONS.scalar(name)
    assert function is not None, f"no scalar {name}"
    exprs = tuple(as_expr(a) for a in args)
    if function.unified_from is not None:
        exprs = exprs[: function.unified_from] + unified(exprs[function.unified_from :])
    return Call(function, exprs, function.type_rule(tuple(e.type for e in exprs)))


def case(*branches: tuple[Expr, Expr | Value], otherwise: Expr | Value = None) -> Case:
    values = unified((*(as_expr(then) for _, then in branches), as_expr(otherwise)))
    pairs = tuple((when, then) for (when, _), then in zip(branches, values, strict=False))
    return Case(pairs, values[-1], values[-1].type)


def unified(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """All of them cast to the one type that holds them."""
    common = Type.NULL
    for expr in exprs:
        common = unify(common, expr.type) or common
    return tuple(e if e.type is common else Cast(e, common) for e in exprs)


def as_expr(value: Expr | Value) -> Expr:
    return value if isinstance(value, Col | Lit | Param | Call | Case | Cast) else lit(value)


def agg(
    name: str,
    *args: Expr,
    parameters: Sequence[Value] = (),
    distinct: bool = False,
    order: Sequence[str] = (),
) -> AggCall:
    """An aggregate of the registry. An ordered one takes the order of a scan unless told."""
    function = FUNCTIONS.aggregate(name)
    assert function is not None, f"no aggregate {name}"
    return AggCall(
        function,
        args,
        function.type_rule(tuple(a.type for a in args)),
        tuple(p if isinstance(p, Param) else lit(p) for p in parameters),
        distinct,
        tuple(order) or (ORDER if function.ordered else ()),
    )


# ---- relations -----------------------------------------------------------------------------------


def scan(*interfaces: str, clock: str = "ts", layer: int | None = None, **columns: Type) -> Scan:
    """A tiny protocol with these columns, in stream order by `clock`."""
    fields = [SourceField(name, type) for name, type in columns.items()]
    fields += [
        SourceField(TS, Type.LLONG, column=clock),
        SourceField(IFACE, Type.STRING),
        SourceField(POS, Type.LLONG),
    ]
    return Scan(interfaces, "TINY", tuple(fields), layer)


def ints(*interfaces: str, names: str) -> Scan:
    """A scan of integer columns, without hidden ones."""
    return Scan(interfaces, "TINY", tuple(SourceField(n, Type.INT) for n in names.split()))


def keep(source: Rel, names: str) -> Project:
    """Just these columns."""
    return Project(source, columns(source, names))


def rename(source: Rel, prefix: str) -> Project:
    """All columns with a prefix, as a join needs them."""
    return Project(source, tuple((prefix + f.name, Col(f.name, f.type)) for f in source.fields))


def columns(source: Rel, names: str) -> tuple[Named, ...]:
    return tuple((name, Col(name, source.type_of(name))) for name in names.split())


def named(**exprs: Expr) -> tuple[Named, ...]:
    return tuple(exprs.items())


def aggs(**calls: AggCall) -> tuple[NamedAgg, ...]:
    return tuple(calls.items())


def fields(**types: Type) -> tuple[Field, ...]:
    return tuple(Field(name, type) for name, type in types.items())


def read(name: str, rel: Rel) -> Read:
    return Read(name, rel.fields)


def plan(parameters: Sequence[Parameter] = (), /, **streams: Rel) -> Plan:
    return Plan(tuple(Stream(name, rel) for name, rel in streams.items()), tuple(parameters))


def records(names: str, *rows: Sequence[Value]) -> list[dict[str, Value]]:
    """Rows of a table in memory."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]
