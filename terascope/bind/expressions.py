"""Expressions: names resolved, functions found, types checked.

In: an expression of the Script and the scope it stands in. Out: a typed expression of the Plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from terascope.bind.aggregates import Aggregates, bind_aggregate, typed_at
from terascope.bind.coerce import (
    coerce_alike,
    compared,
    computable,
    full_cast,
    member,
    needs_care,
    of_type,
    to_type,
    wide_literal,
)
from terascope.bind.context import BindContext
from terascope.bind.extractors import bind_declared, bind_extractor
from terascope.bind.scope import Scope, with_common_values
from terascope.diagnostic import Mistake, Span, each, mistake
from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.casts import cast_value, check_cast, is_within
from terascope.functions.members import SHORT_LIST
from terascope.functions.operators import operators
from terascope.plan.build import call, list_call
from terascope.plan.evaluate import constant_value
from terascope.plan.expr import Call, Case, Cast, Expr, Lit, Param, is_constant, walk
from terascope.syntax import ast
from terascope.types import INT_MAX, UINT_MAX, WIDE_MAX, Type, type_names, unified, value_range

BITS = frozenset({"&", "|", "^"})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


@dataclass(frozen=True)
class ExprBinder:
    """Binds expressions of one clause.

    `aliases`: names that stand for an expression already bound (keys of GROUP BY).
    `select_aliases`: names given in SELECT, seen by HAVING, ORDER BY and CLOSING_WHEN.
    `aggregates`: where aggregate calls go; None where none may stand.
    `constants`: those of the DEFINE block, by name in lower case.
    """

    context: BindContext
    scope: Scope
    aliases: Mapping[str, Expr] = field(default_factory=dict)
    select_aliases: Mapping[str, ast.Expr] = field(default_factory=dict)
    aggregates: Aggregates | None = None
    constants: Mapping[str, Lit] = field(default_factory=dict)
    clause: str = "here"

    def within_aggregate(self) -> ExprBinder:
        """The binder of an aggregate's arguments, which see no aggregate and no SELECT alias."""
        return replace(self, select_aliases={}, aggregates=None, clause="inside an aggregate")

    def bind_condition(self, node: ast.Expr) -> Expr | None:
        return self.context.attempt(self.condition, node)

    def expr(self, node: ast.Expr) -> Expr:
        """Bind an expression."""
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
                message = f"'@{name}': properties of an interface are parsed but not executed yet"
                help = "compare the column 'interface' with the interface's name"
                raise mistake("not-executable", message, node.span, help=help)
            case ast.Unary(op=op, operand=operand):
                return self.bind_unary(op, operand, node.span)
            case ast.Binary(op=op, left=left, right=right):
                return self.bind_binary(op, left, right, node.span)
            case ast.Between():
                return self.bind_between(node)
            case ast.InList(operand=operand, items=items, negated=negated):
                return self.negate(self.bind_in(operand, items, node.span), negated)
            case ast.Like(operand=operand, pattern=pattern, negated=negated):
                args = self.exprs((operand, pattern))
                return self.negate(self.apply("like", args, node.span), negated)
            case ast.IsNull(operand=operand, negated=negated):
                return self.negate(self.apply("is_null", (self.expr(operand),), node.span), negated)
            case ast.CaseExpr():
                return self.bind_case(node)
            case ast.CastExpr(operand=operand, type_name=type_name):
                return self.bind_cast(operand, type_name, node.span)
            case ast.CallExpr():
                return self.bind_call(node)
            case _:
                assert_never(node)

    def condition(self, node: ast.Expr) -> Expr:
        """A predicate: must be BOOL."""
        bound = self.expr(node)
        if bound.type not in (Type.BOOL, Type.NULL):
            message = f"a condition must be BOOL, this is {bound.type.label}"
            help = "compare it with something, such as = 0"
            raise mistake("type-mismatch", message, node.span, help=help)
        return bound

    # ---- leaves

    def bind_name(self, node: ast.Name) -> Expr:
        if node.qualifier is None:
            if node.name in self.aliases:
                return self.aliases[node.name]
            if node.name in self.select_aliases:
                return replace(self, select_aliases={}).expr(self.select_aliases[node.name])
        try:
            return self.scope.find(node)
        except Mistake as unknown:
            absent = self.context.catalog.absent.get(node.name)
            if absent is None or unknown.diagnostics[0].code != "unknown-column":
                raise
            raise Mistake(replace(absent, span=node.span)) from None

    def bind_literal(self, node: ast.Literal_) -> Expr:
        type = type_names[node.type_name] if node.type_name else Type[node.kind.upper()]
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            if type is Type.INT and node.value >= 0:
                type = Type.UINT if node.value <= UINT_MAX else Type.ULLONG
            if type is Type.ULLONG and INT_MAX < node.value <= WIDE_MAX:
                return wide_literal(node.value)
            if not is_within(node.value, type):
                raise out_of_range(node.value, type, node.span)
        return Lit(node.value, type)

    def bind_parameter(self, name: str, span: Span) -> Expr:
        if name not in self.context.parameters:
            message = f"parameter '${name}' is neither declared nor given"
            help = f"declare it with PARAM {{ {name} INT; }} or give it with --param {name}=..."
            raise mistake("unknown-parameter", message, span, help=help)
        self.context.used_parameters.add(name)
        return self.context.parameters[name]

    def bind_constant(self, name: str, span: Span) -> Expr:
        if name.lower() not in self.constants:
            message = f"'#{name}' has no value"
            help = f"give it one with DEFINE {{ {name} '...'; }} before the query"
            raise mistake("unknown-constant", message, span, help=help)
        return self.constants[name.lower()]

    # ---- operators

    def exprs(self, nodes: Iterable[ast.Expr]) -> tuple[Expr, ...]:
        return each(self.expr, nodes)

    def apply(self, operator: str, args: tuple[Expr, ...], span: Span) -> Expr:
        """An operator applied. Values that are compared are brought to one type."""
        with typed_at(span):
            if operator not in COMPARISONS and operator != "in":
                return call(operator, *computable(operators[operator], args))
            coerced = coerce_alike(args)
            if not needs_care(coerced):
                return call(operator, *coerced)
            if operator == "in":
                return member(coerced[0], coerced[1:])
            return compared(operators[operator], *coerced)

    def bind_in(self, operand: ast.Expr, items: Sequence[ast.Expr], span: Span) -> Expr:
        """A long list of constants is one constant."""
        made = self.apply("in", self.exprs((operand, *items)), span)
        if len(items) <= SHORT_LIST or not isinstance(made, Call):
            return made
        tested, *listed = made.args
        known = [value for item in listed if (value := constant_in_list(item)) is not None]
        if len(known) < len(listed):
            return made
        return list_call(tested, (value.value for value in known))

    def negate(self, expr: Expr, negated: bool) -> Expr:
        return call("not", expr) if negated else expr

    def bind_unary(self, op: str, operand: ast.Expr, span: Span) -> Expr:
        if op == "NOT":
            return call("not", self.condition(operand))
        if op == "-" and isinstance(operand, ast.Literal_) and operand.kind in ("int", "float"):
            value = operand.value
            assert isinstance(value, int | float)
            if isinstance(value, int) and not is_within(-value, Type.LLONG):
                raise out_of_range(-value, Type.LLONG, span)
            return Lit(-value, Type[operand.kind.upper()])
        bound = self.expr(operand)
        if op == "~" and bound.type.is_address:
            return self.bind_bits("^", (bound, Lit(UINT_MAX, Type.UINT)), span)
        return self.apply({"-": "neg", "~": "~"}[op], (bound,), span)

    def bind_binary(self, op: ast.BinaryOp, left: ast.Expr, right: ast.Expr, span: Span) -> Expr:
        if op in ("AND", "OR"):
            return call(op.lower(), *each(self.condition, flatten(op, left, right)))
        args = self.exprs((left, right))
        if op in BITS:
            return self.bind_bits(op, args, span)
        if op in ("/", "DIV"):
            # Between integers, `/` by a constant is integer division; by a column it is a ratio.
            integers = args[0].type.is_whole and args[1].type.is_whole
            whole = op == "DIV" or (integers and is_constant(args[1]))
            return self.apply("div" if whole else "/", args, span)
        return self.apply(op, args, span)

    def bind_bits(self, op: str, args: tuple[Expr, ...], span: Span) -> Expr:
        """Bits of integers; of an IPv4 address and an integer, or of two, they are an address."""
        address, other = args
        if other.type.is_address and (is_constant(address) or not address.type.is_address):
            address, other = other, address  # a mask is the same for all tuples
        if not address.type.is_address:
            return self.apply(op, args, span)
        if other.type.is_address:
            other = Cast(other, Type.ULLONG)
        elif op != "&" and (other.type.is_whole or other.type is Type.NULL):
            other = self.apply("&", (other, Lit(UINT_MAX, Type.UINT)), span)
        masked = self.apply("mask", (address, other), span)
        if op == "&":
            return masked
        return Cast(call(op, Cast(address, Type.ULLONG), other), Type.IP)

    def bind_between(self, node: ast.Between) -> Expr:
        above = self.apply(">=", self.exprs((node.operand, node.low)), node.span)
        below = self.apply("<=", self.exprs((node.operand, node.high)), node.span)
        return self.negate(call("and", above, below), node.negated)

    def bind_case(self, node: ast.CaseExpr) -> Expr:
        steps = [partial(self.branch_condition, node.operand, c) for c, _ in node.branches]
        results = [
            *(value for _, value in node.branches),
            node.otherwise or ast.Literal_("null", None),
        ]
        steps += [partial(self.expr, value) for value in results]
        bound = each(lambda step: step(), steps)
        conditions, values = bound[: len(node.branches)], bound[len(node.branches) :]
        type = unified(value.type for value in values)
        if type is None:
            kinds = ", ".join(sorted({value.type.label for value in values}))
            raise mistake(
                "type-mismatch", f"the branches of CASE give different types: {kinds}", node.span
            )
        typed = [of_type(value, type) for value in values]
        return Case(tuple(zip(conditions, typed, strict=False)), typed[-1], type)

    def branch_condition(self, operand: ast.Expr | None, condition: ast.Expr) -> Expr:
        if operand is None:
            return self.condition(condition)
        return self.apply("=", self.exprs((operand, condition)), condition.span)

    def bind_cast(self, operand: ast.Expr, type_name: str, span: Span) -> Expr:
        bound = self.expr(operand)
        type = type_names.get(type_name.split("(")[0].strip().upper())
        if type is None:
            raise mistake("unknown-type", f"unknown type '{type_name}'", span)
        with typed_at(span):
            check_cast(bound.type, type)
        made = full_cast(bound, type)
        check_range(made, span)
        return made

    # ---- functions

    def bind_call(self, node: ast.CallExpr) -> Expr:
        functions = self.context.functions
        if node.super_:
            message = (
                f"superaggregate '{node.name}$' belongs to the sampling operator, "
                "which is parsed but not executed yet"
            )
            raise mistake("not-executable", message, node.span)
        declared = self.context.extractors.get(node.name.lower())
        if declared is not None:
            return bind_declared(self, declared, node)
        extractor = functions.extractor(node.name)
        if extractor is not None:
            return bind_extractor(self, extractor, node)
        scalar = functions.scalar(node.name)
        if scalar is not None and not node.star and not node.distinct:
            return with_common_values(self.bind_scalar(scalar, node), self.scope.equated)
        target = functions.cast(node.name)
        if target is not None:
            return self.bind_cast_call(node, target)
        if self.context.aggregate(node.name) is not None:
            return bind_aggregate(self.context, self.aggregates, self, node)
        reason = functions.deferred(node.name)
        if reason is not None:
            raise mistake("not-executable", f"'{node.name}': {reason}", node.span)
        if node.name.lower() in self.context.udafs:
            message = f"'{node.name}' is declared, but no aggregate of that name is registered"
            help = "register a Python class of that name, see docs/extending"
            raise mistake("not-executable", message, node.span, help=help)
        close = functions.suggest(node.name)
        message = f"unknown function '{node.name}'"
        hint = f"did you mean {' or '.join(close)}?" if close else None
        self.context.error("unknown-function", message, node.span, help=hint)
        self.exprs(node.args)
        raise Mistake

    def bind_scalar(self, scalar: Scalar, node: ast.CallExpr) -> Expr:
        if node.strategy:
            message = f"'{node.name}' is no aggregate, so it has no strategies"
            raise mistake("unknown-strategy", message, node.span)
        return self.applied_scalar(scalar, self.exprs(node.args), node.span)

    def applied_scalar(self, scalar: Scalar, args: tuple[Expr, ...], span: Span) -> Expr:
        with typed_at(span):
            args = computable(scalar, args)
            type = scalar.type_rule(tuple(a.type for a in args))
            if scalar.unified_from is not None:
                fixed, free = args[: scalar.unified_from], args[scalar.unified_from :]
                args = (*fixed, *(to_type(a, type) for a in free))
            args = self.with_file(scalar, args, span)
            if scalar.check_constants is not None:
                scalar.check_constants([a.value if isinstance(a, Lit) else None for a in args])
        return Call(scalar, args, type)

    def with_file(self, scalar: Scalar, args: tuple[Expr, ...], span: Span) -> tuple[Expr, ...]:
        """The arguments, with the full name of the file that a function reads."""
        place = scalar.file_argument
        if place is None:
            return args
        match args[place]:
            case Lit(str() as name, type):
                path = self.context.find_file(name, span)
                return (*args[:place], Lit(str(path), type), *args[place + 1 :])
            case _ if self.context.folders is not None:
                message = f"'{scalar.name}' must name its file here, because query_files is limited"
                raise mistake("forbidden-file", message, span)
            case _:
                return args

    def bind_cast_call(self, node: ast.CallExpr, type: Type) -> Expr:
        """`UINT(x)` is `CAST(x AS UINT)`."""
        if len(node.args) != 1 or node.star or node.distinct:
            raise mistake(
                "wrong-arguments", f"'{node.name}' converts one value, such as UINT(x)", node.span
            )
        return self.bind_cast(node.args[0], type.label, node.span)


def check_range(cast: Expr, span: Span) -> None:
    """Raise a mistake when a constant is outside of the range of the type it is cast to."""
    if not isinstance(cast, Cast) or not is_fixed(cast):
        return
    checks = cast.checks_range or cast.type is Type.WIDE
    if not (checks and cast.operand.type.is_numeric):
        return
    try:
        value = constant_value(cast.operand, {})
    except ValueMistake:
        return  # reported where it is computed
    if value is not None and constant_value(cast, {}) is None:
        raise out_of_range(value, cast.type, span)


def out_of_range(value: Value, type: Type, span: Span) -> Mistake:
    least, most = value_range(type)
    message = f"{value} is no {type.label}, which goes from {least} to {most}"
    help = "take LLONG for numbers with a sign, ULLONG for large ones"
    return mistake("bad-literal", message, span, help=help)


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
