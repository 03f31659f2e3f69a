"""Expressions: names resolved, functions found, types checked.

In: an expression of the Script and the scope it stands in. Out: a typed expression of the Plan, or
None after its mistakes (all of them) were told to the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from terascope.bind.aggregates import Aggregates, bind_aggregate
from terascope.bind.coerce import coerce_alike, to_type
from terascope.bind.context import BindContext
from terascope.bind.missing_side import with_common_values
from terascope.bind.scope import NoSuchColumn, Scope
from terascope.bind.wide import (
    compared,
    computable,
    full_cast,
    member,
    needs_care,
    of_type,
    wide_literal,
)
from terascope.diagnostic import Span
from terascope.functions.base import Scalar, TypeMistake, Value, ValueMistake
from terascope.functions.casts import cast_value, check_cast, is_within
from terascope.functions.members import SHORT_LIST
from terascope.functions.operators import operators
from terascope.plan.build import call, list_call
from terascope.plan.evaluate import constant_value
from terascope.plan.expr import Call, Case, Cast, Expr, Lit, Param, is_constant, walk
from terascope.syntax import ast
from terascope.types import INT_MAX, UINT_MAX, WIDE_MAX, Type, type_names, unify, value_range

LITERAL_TYPES: Mapping[str, Type] = {
    "int": Type.INT,
    "float": Type.FLOAT,
    "string": Type.STRING,
    "bool": Type.BOOL,
    "null": Type.NULL,
    "ip": Type.IP,
    "ipv6": Type.IPV6,
    "binary": Type.BINARY,
}
BITS = frozenset({"&", "|", "^"})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True)
class ExprBinder:
    """Binds expressions of one clause.

    `aliases`: names that stand for an expression already bound (keys of GROUP BY).
    `select_aliases`: names given in SELECT, seen by HAVING, ORDER BY and CLOSING_WHEN.
    `aggregates`: where aggregate calls go; None where none may stand.
    """

    context: BindContext
    scope: Scope
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    select_aliases: Mapping[str, ast.Expr] = field(default_factory=dict)
    aggregates: Aggregates | None = None
    constants: Mapping[str, Lit] = field(default_factory=dict)
    clause: str = "here"

    def within_aggregate(self) -> ExprBinder:
        """For the arguments of an aggregate: no further aggregate, no SELECT alias."""
        return ExprBinder(
            self.context,
            self.scope,
            self.aliases,
            constants=self.constants,
            clause="inside an aggregate",
        )

    def bind(self, node: ast.Expr) -> Expr | None:
        match node:
            case ast.Name():
                return self.bind_name(node)
            case ast.Literal_():
                return self.bind_literal(node)
            case ast.ParameterRef(name=name):
                return self.bind_parameter(name, node.span)
            case ast.ConstantRef(name=name):
                return self.bind_constant(name, node.span)
            case ast.InterfaceProperty(name=name):
                self.context.error(
                    "not-executable",
                    f"'@{name}': properties of an interface are parsed but not executed yet",
                    node.span,
                    help="compare the column 'interface' with the interface's name",
                )
                return None
            case ast.Unary(op=op, operand=operand):
                return self.bind_unary(op, operand, node.span)
            case ast.Binary(op=op, left=left, right=right):
                return self.bind_binary(op, left, right, node.span)
            case ast.Between(operand=operand, low=low, high=high, negated=negated):
                return self.bind_between(operand, low, high, negated, node.span)
            case ast.InList(operand=operand, items=items, negated=negated):
                return self.negate(self.bind_in(operand, items, node.span), negated)
            case ast.Like(operand=operand, pattern=pattern, negated=negated):
                return self.negate(self.apply("like", (operand, pattern), node.span), negated)
            case ast.IsNull(operand=operand, negated=negated):
                return self.negate(self.apply("is_null", (operand,), node.span), negated)
            case ast.CaseExpr():
                return self.bind_case(node)
            case ast.CastExpr(operand=operand, type_name=type_name):
                return self.bind_cast(operand, type_name, node.span)
            case ast.CallExpr():
                return self.bind_call(node)
            case _:
                assert_never(node)

    def bind_condition(self, node: ast.Expr) -> Expr | None:
        """A predicate: must be BOOL."""
        bound = self.bind(node)
        if bound is not None and bound.type not in (Type.BOOL, Type.NULL):
            self.context.error(
                "type-mismatch",
                f"a condition must be BOOL, this is {bound.type.label}",
                node.span,
                help="compare it with something, such as = 0",
            )
            return None
        return bound

    # ---- leaves

    def bind_name(self, node: ast.Name) -> Expr | None:
        if node.qualifier is None:
            if node.name in self.aliases:
                return self.aliases[node.name]
            if node.name in self.select_aliases:
                return self.without_select_aliases().bind(self.select_aliases[node.name])
        try:
            return self.scope.find(node.name, node.qualifier)
        except NoSuchColumn as mistake:
            absent = self.context.catalog.absent.get(node.name)
            told = absent if absent and mistake.code == "unknown-column" else mistake
            self.context.error(told.code, told.message, node.span, help=told.help)
            return None

    def without_select_aliases(self) -> ExprBinder:
        return ExprBinder(
            self.context,
            self.scope,
            self.aliases,
            aggregates=self.aggregates,
            constants=self.constants,
            clause=self.clause,
        )

    def bind_literal(self, node: ast.Literal_) -> Expr | None:
        type = LITERAL_TYPES[node.kind]
        if node.type_name is not None:
            type = type_names[node.type_name]
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            if type is Type.INT and node.value >= 0:
                type = Type.UINT if node.value <= UINT_MAX else Type.ULLONG
            if type is Type.ULLONG and INT_MAX < node.value <= WIDE_MAX:
                return wide_literal(node.value)
            if not is_within(node.value, type):
                self.out_of_range(node.value, type, node.span)
                return None
        return Lit(node.value, type)

    def bind_parameter(self, name: str, span: Span) -> Expr | None:
        if name not in self.context.parameters:
            self.context.error(
                "unknown-parameter",
                f"parameter '${name}' is neither declared nor given",
                span,
                help=f"declare it with PARAM {{ {name} INT; }} or give it with --param {name}=...",
            )
            return None
        self.context.used_parameters.add(name)
        return self.context.parameters[name]

    def bind_constant(self, name: str, span: Span) -> Expr | None:
        lower = {k.lower(): v for k, v in self.constants.items()}
        if name.lower() not in lower:
            self.context.error(
                "unknown-constant",
                f"'#{name}' has no value",
                span,
                help=f"give it one with DEFINE {{ {name} '...'; }} before the query",
            )
            return None
        return lower[name.lower()]

    # ---- operators

    def bind_all(self, nodes: Sequence[ast.Expr]) -> tuple[Expr, ...] | None:
        """All or none, but every mistake of each is told."""
        bound = [self.bind(n) for n in nodes]
        kept = tuple(b for b in bound if b is not None)
        return kept if len(kept) == len(bound) else None

    def apply(
        self, operator: str, nodes: Sequence[ast.Expr], span: Span, *, alike: bool = False
    ) -> Expr | None:
        args = self.bind_all(nodes)
        if args is None:
            return None
        try:
            return self.alike(operator, args) if alike else self.call(operator, args)
        except TypeMistake as mistake:
            self.context.error("type-mismatch", str(mistake), span)
            return None

    def alike(self, operator: str, args: tuple[Expr, ...]) -> Expr:
        """A comparison of values brought to one type."""
        coerced = coerce_alike(args)
        if not needs_care(coerced):
            return call(operator, *coerced)
        if operator == "in":
            return member(coerced[0], coerced[1:])
        return compared(operator, *coerced)

    def call(self, operator: str, args: tuple[Expr, ...]) -> Call:
        return call(operator, *computable(operators[operator], args))

    def bind_in(self, operand: ast.Expr, items: Sequence[ast.Expr], span: Span) -> Expr | None:
        """A long list of constants is one constant."""
        made = self.apply("in", (operand, *items), span, alike=True)
        if len(items) <= SHORT_LIST or not isinstance(made, Call):
            return made
        tested, *listed = made.args
        values = [constant_in_list(item) for item in listed]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return made
        return list_call(tested, (value.value for value in known))

    def negate(self, expr: Expr | None, negated: bool) -> Expr | None:
        return call("not", expr) if expr is not None and negated else expr

    def bind_unary(self, op: str, operand: ast.Expr, span: Span) -> Expr | None:
        if op == "NOT":
            bound = self.bind_condition(operand)
            return None if bound is None else call("not", bound)
        if op == "-" and isinstance(operand, ast.Literal_) and operand.kind in ("int", "float"):
            value = operand.value
            assert isinstance(value, int | float)
            if isinstance(value, int) and not is_within(-value, Type.LLONG):
                self.out_of_range(-value, Type.LLONG, span)
                return None
            return Lit(-value, LITERAL_TYPES[operand.kind])
        args = self.bind_all((operand,))
        if args is None:
            return None
        if op == "~" and args[0].type.is_address:
            return self.bind_bits("^", (*args, Lit(UINT_MAX, Type.UINT)), span)
        return self.checked_call({"-": "neg", "~": "~"}[op], args, span)

    def bind_binary(
        self, op: ast.BinaryOp, left: ast.Expr, right: ast.Expr, span: Span
    ) -> Expr | None:
        if op in ("AND", "OR"):
            parts = [self.bind_condition(p) for p in flatten(op, left, right)]
            kept = [p for p in parts if p is not None]
            return call(op.lower(), *kept) if len(kept) == len(parts) else None
        if op in COMPARISONS:
            return self.apply(op, (left, right), span, alike=True)
        if op in ("/", "DIV"):
            return self.bind_division(op, left, right, span)
        if op in BITS:
            args = self.bind_all((left, right))
            return None if args is None else self.bind_bits(op, args, span)
        return self.apply(op, (left, right), span)

    def bind_bits(self, op: str, args: tuple[Expr, ...], span: Span) -> Expr | None:
        """Bits of integers; of an IPv4 address and an integer, or of two, they are an address."""
        address, other = args
        if other.type.is_address and (is_constant(address) or not address.type.is_address):
            address, other = other, address  # a mask is the same for all tuples
        if not address.type.is_address:
            return self.checked_call(op, args, span)
        if other.type.is_address:
            other = Cast(other, Type.ULLONG)
        elif op != "&" and (other.type.is_whole or other.type is Type.NULL):
            other = self.call("&", (other, Lit(UINT_MAX, Type.UINT)))
        masked = self.checked_call("mask", (address, other), span)
        if op == "&" or masked is None:
            return masked
        return Cast(call(op, Cast(address, Type.ULLONG), other), Type.IP)

    def bind_division(
        self, op: ast.BinaryOp, left: ast.Expr, right: ast.Expr, span: Span
    ) -> Expr | None:
        """`/` by a constant between integers is integer division; between columns it is a ratio."""
        args = self.bind_all((left, right))
        if args is None:
            return None
        integers = args[0].type.is_whole and args[1].type.is_whole
        whole = op == "DIV" or (integers and is_constant(args[1]))
        return self.checked_call("div" if whole else "/", args, span)

    def checked_call(self, operator: str, args: tuple[Expr, ...], span: Span) -> Expr | None:
        try:
            return self.call(operator, args)
        except TypeMistake as mistake:
            self.context.error("type-mismatch", str(mistake), span)
            return None

    def bind_between(
        self, operand: ast.Expr, low: ast.Expr, high: ast.Expr, negated: bool, span: Span
    ) -> Expr | None:
        above = self.apply(">=", (operand, low), span, alike=True)
        below = self.apply("<=", (operand, high), span, alike=True) if above is not None else None
        if above is None or below is None:
            return None
        return self.negate(call("and", above, below), negated)

    def bind_case(self, node: ast.CaseExpr) -> Expr | None:
        conditions: list[Expr | None] = []
        for condition, _ in node.branches:
            if node.operand is None:
                conditions.append(self.bind_condition(condition))
            else:
                conditions.append(
                    self.apply("=", (node.operand, condition), condition.span, alike=True)
                )
        values = [self.bind(v) for _, v in node.branches]
        otherwise = self.bind(node.otherwise) if node.otherwise else Lit(None, Type.NULL)
        if otherwise is None or any(e is None for e in (*conditions, *values)):
            return None
        kept = [v for v in (*values, otherwise) if v is not None]
        type: Type | None = Type.NULL
        for value in kept:
            type = None if type is None else unify(type, value.type)
        if type is None:
            kinds = ", ".join(sorted({v.type.label for v in kept}))
            self.context.error(
                "type-mismatch", f"the branches of CASE give different types: {kinds}", node.span
            )
            return None
        typed = [of_type(v, type) for v in kept]
        pairs = zip((c for c in conditions if c is not None), typed[:-1], strict=True)
        return Case(tuple(pairs), typed[-1], type)

    def bind_cast(self, operand: ast.Expr, type_name: str, span: Span) -> Expr | None:
        bound = self.bind(operand)
        type = type_names.get(type_name.split("(")[0].strip().upper())
        if type is None:
            self.context.error("unknown-type", f"unknown type '{type_name}'", span)
            return None
        return None if bound is None else self.checked_cast(bound, type, span)

    def checked_cast(self, operand: Expr, type: Type, span: Span) -> Expr | None:
        try:
            check_cast(operand.type, type)
        except TypeMistake as mistake:
            self.context.error("type-mismatch", str(mistake), span)
            return None
        made = full_cast(operand, type)
        return made if self.is_possible(made, span) else None

    def is_possible(self, cast: Expr, span: Span) -> bool:
        """Whether a constant number is in the range of the type it is made to be of."""
        if not isinstance(cast, Cast) or not is_fixed(cast):
            return True
        checks = cast.checks_range or cast.type is Type.WIDE
        if not (checks and cast.operand.type.is_numeric):
            return True
        try:
            value = constant_value(cast.operand, {})
        except ValueMistake:
            return True  # said where it is computed
        if value is None or constant_value(cast, {}) is not None:
            return True
        self.out_of_range(value, cast.type, span)
        return False

    def out_of_range(self, value: Value, type: Type, span: Span) -> None:
        least, most = value_range(type)
        self.context.error(
            "bad-literal",
            f"{value} is no {type.label}, which goes from {least} to {most}",
            span,
            help="take LLONG for numbers with a sign, ULLONG for large ones",
        )

    # ---- functions

    def bind_call(self, node: ast.CallExpr) -> Expr | None:
        functions = self.context.functions
        if node.super_:
            self.context.error(
                "not-executable",
                f"superaggregate '{node.name}$' belongs to the sampling operator, "
                "which is parsed but not executed yet",
                node.span,
            )
            return None
        lower = {k.lower(): v for k, v in self.context.extractors.items()}
        extractor = lower.get(node.name.lower())
        if extractor is not None:
            return self.bind_extractor(extractor, node)
        scalar = functions.scalar(node.name)
        if scalar is not None and not node.star and not node.distinct:
            bound = self.bind_scalar(scalar, node)
            return None if bound is None else with_common_values(bound, self.scope.equated)
        target = functions.cast(node.name)
        if target is not None:
            return self.bind_cast_call(node, target)
        if functions.aggregate(node.name) is not None:
            return bind_aggregate(self.context, self.aggregates, self, node)
        reason = functions.deferred(node.name)
        if reason is not None:
            self.context.error("not-executable", f"'{node.name}': {reason}", node.span)
            return None
        if node.name.lower() in {n.lower() for n in self.context.udafs}:
            self.context.error(
                "not-executable",
                f"'{node.name}' is declared, but no aggregate of that name is registered",
                node.span,
                help="register a Python class of that name, see docs/extending",
            )
            return None
        close = functions.suggest(node.name)
        self.context.error(
            "unknown-function",
            f"unknown function '{node.name}'",
            node.span,
            help=f"did you mean {' or '.join(close)}?" if close else None,
        )
        self.bind_all(node.args)
        return None

    def bind_scalar(self, scalar: Scalar, node: ast.CallExpr) -> Expr | None:
        args = self.bind_all(node.args)
        if args is None:
            return None
        try:
            args = computable(scalar, args)
            type = scalar.type_rule(tuple(a.type for a in args))
            if scalar.unified_from is not None:
                fixed, free = args[: scalar.unified_from], args[scalar.unified_from :]
                args = (*fixed, *(to_type(a, type) for a in free))
            found = self.with_file(scalar, args, node.span)
            if found is None:
                return None
            args = found
            if scalar.check_constants is not None:
                scalar.check_constants([a.value if isinstance(a, Lit) else None for a in args])
        except TypeMistake as mistake:
            self.context.error("type-mismatch", str(mistake), node.span)
            return None
        except ValueMistake as mistake:
            self.context.error("bad-constant", str(mistake), node.span)
            return None
        return Call(scalar, args, type)

    def with_file(
        self, scalar: Scalar, args: tuple[Expr, ...], span: Span
    ) -> tuple[Expr, ...] | None:
        """The file a function reads, by its full name; None when it may not."""
        place = scalar.file_argument
        if place is None:
            return args
        match args[place]:
            case Lit(str() as name, type):
                path = self.context.find_file(name, span)
                if path is None:
                    return None
                return (*args[:place], Lit(str(path), type), *args[place + 1 :])
            case _ if self.context.folders is not None:
                self.context.error(
                    "forbidden-file",
                    f"'{scalar.name}' must name its file here, because query_files is limited",
                    span,
                )
                return None
            case _:
                return args

    def bind_cast_call(self, node: ast.CallExpr, type: Type) -> Expr | None:
        """`UINT(x)` is `CAST(x AS UINT)`."""
        if len(node.args) != 1 or node.star or node.distinct:
            self.context.error(
                "wrong-arguments", f"'{node.name}' converts one value, such as UINT(x)", node.span
            )
            return None
        return self.bind_cast(node.args[0], type.label, node.span)

    def bind_extractor(
        self, extractor: ast.ExtractorDeclaration, node: ast.CallExpr
    ) -> Expr | None:
        """`percentile(len, 95)` means `percentile_fcn(approx_quantile(len), 95)` (paper 1, 3.2)."""
        taken = len(extractor.aggregate_parameters)
        wanted = taken + len(extractor.extra_parameters)
        if len(node.args) != wanted:
            self.context.error(
                "wrong-arguments",
                f"'{node.name}' is declared with {wanted} arguments, not {len(node.args)}",
                node.span,
            )
            return None
        inner = ast.CallExpr(extractor.aggregate, node.args[:taken], span=node.span)
        if self.context.functions.deferred(extractor.aggregate) is not None:
            return self.bind_call(inner)
        outer = ast.CallExpr(extractor.function, (inner, *node.args[taken:]), span=node.span)
        return self.bind_call(outer)


def is_fixed(expr: Expr) -> bool:
    """Whether a value is known before anything runs: it is made of constants by our functions."""
    return is_constant(expr) and not any(
        isinstance(e, Param) or (isinstance(e, Call) and e.function.user_defined)
        for e in walk(expr)
    )


def flatten(op: str, left: ast.Expr, right: ast.Expr) -> list[ast.Expr]:
    """The operands of a chain of the same AND or OR."""
    parts: list[ast.Expr] = []
    for side in (left, right):
        if isinstance(side, ast.Binary) and side.op == op:
            parts += flatten(op, side.left, side.right)
        else:
            parts.append(side)
    return parts


def constant_in_list(item: Expr) -> Lit | None:
    """The constant that an item of a list is, of the type it is compared in."""
    match item:
        case Lit():
            return item
        case Cast(Lit(value, source), target):
            return Lit(cast_value(value, source, target), target)
        case _:
            return None
