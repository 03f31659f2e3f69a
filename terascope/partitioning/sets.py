"""Partitioning sets: the expressions whose values say which partition a tuple is in (P2 3.1).

In: the text of a set and the columns of a source. Out: a `PartitionSet` of typed expressions over
these columns, which prints as the text of a set again; or a `QueryError` that shows the mistake.

The text goes through the parser and the binder of GSQL as the list of a SELECT, so that an
expression means what it means in a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from terascope.bind.catalog import Catalog
from terascope.bind.context import BindContext
from terascope.bind.expressions import ExprBinder
from terascope.bind.scope import Scope, ScopeInput
from terascope.connectors.base import HIDDEN_PREFIX, INTERFACE, Column
from terascope.diagnostic import Diagnostic, Mistake, QueryError, Source, Span, each, mistake
from terascope.functions.registry import Functions
from terascope.functions.roles import AddressMask, BitOperation
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, is_constant, transform, walk
from terascope.plan.rel import Field
from terascope.plan.show import show_expr
from terascope.syntax import ast
from terascope.syntax.parser import parse_recovering
from terascope.types import Type, format_ip

BEFORE: Final = "SELECT "
BEHIND: Final = "\nFROM partitions"
SMALL: Final = 10
"""Masks below this number are written in decimal."""


@dataclass(frozen=True)
class PartitionSet:
    """Deterministic expressions over the columns of one source. Tuples for which all of them have
    the same values are in the same partition.
    """

    expressions: tuple[Expr, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source that the expressions read, in order of their names."""
        return tuple(sorted(frozenset().union(*map(columns_of, self.expressions))))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Each expression as GSQL."""
        return tuple(map(expression_text, self.expressions))

    def __str__(self) -> str:
        return ", ".join(self.texts)


Placement: TypeAlias = Mapping[str, PartitionSet]
"""The partitioning sets of the partitioned sources, by the name of the interface."""


def expression_text(expr: Expr) -> str:
    """An expression as GSQL that reads as the same expression again; masks are hexadecimal."""

    def spelled(part: Expr) -> Expr:
        match part:
            case Lit(bytes() as value, type) if type.is_address:
                return Col(f"IP '{format_ip(value)}'", type)
            case Call() if isinstance(part.function.role, AddressMask | BitOperation):
                return replace(part, args=tuple(map(as_mask, part.args)))
            case _:
                return part

    return show_expr(transform(expr, spelled))


def as_mask(expr: Expr) -> Expr:
    match expr:
        case Lit(int() as value, type) if value >= SMALL and type.is_integer:
            return Col(f"0x{value:X}", type)
        case _:
            return expr


# ---- from text -----------------------------------------------------------------------------------


def parse_set(
    text: str, columns: Sequence[Column], functions: Functions | None = None
) -> PartitionSet:
    """The partitioning set that a text such as `srcIP & 0xFFFFFFF0, destIP` means.

    Raises:
        QueryError: the text is no partitioning set over these columns.
    """
    context = BindContext(Catalog(), functions or Functions.builtin(), {})
    binder = ExprBinder(context, Scope((scope_input(columns),)), clause="in a partitioning set")
    try:
        bound = each(lambda item: bound_item(binder, item), parsed_items(text))
    except Mistake as wrong:
        found = (*context.diagnostics, *wrong.diagnostics)
        source = Source(text, "partitioning set")
        raise QueryError([placed(one, text) for one in found], source) from None
    return PartitionSet(tuple(dict.fromkeys(bound)))


def scope_input(columns: Sequence[Column]) -> ScopeInput:
    named = [(c.name, Field(c.name, c.type)) for c in columns]
    return ScopeInput("", tuple(pair for pair in named if not pair[1].hidden))


def parsed_items(text: str) -> tuple[ast.Item, ...]:
    if not text.strip():
        help = "write expressions over columns of the source, such as srcIP & 0xFFFFFFF0, destIP"
        raise mistake(
            "empty-set", "a partitioning set has an expression at least", Span(0, 0), help
        )
    script, found = parse_recovering(Source(f"{BEFORE}{text}{BEHIND}"))
    if found:
        raise Mistake(*found)
    match script.statements:
        case (ast.QueryStatement(ast.Select() as select, None, (), ()),) if is_bare(select):
            items = [item for item in select.items if isinstance(item, ast.Item)]
            if len(items) == len(select.items):
                return tuple(items)
    whole = Span(len(BEFORE), len(BEFORE) + len(text))
    raise mistake("bad-set", "a partitioning set is a list of expressions and nothing else", whole)


def is_bare(select: ast.Select) -> bool:
    """Whether a SELECT has nothing but its list."""
    nothing_else = ast.Select(select.items, select.source, span=select.span)
    return select == nothing_else and all(
        item.alias is None for item in select.items if isinstance(item, ast.Item)
    )


def bound_item(binder: ExprBinder, item: ast.Item) -> Expr:
    for node in ast.walk(item.expr):
        if isinstance(node, ast.ParameterRef):
            message = f"'${node.name}' may change while a set runs; a partitioning stays"
            raise mistake("bad-set", message, node.span, "write the number itself")
    expr, span = binder.expr(item.expr), item.expr.span
    for part in walk(expr):
        if isinstance(part, Col) and is_refused(part.name):
            message = f"'{part.name}' is no value of the tuple itself"
            raise mistake("bad-set", message, span, "take columns that the source stores")
        if isinstance(part, Call) and part.function.user_defined:
            message = f"'{part.function.name}' may give another value for the same tuple"
            help = "functions of users are not known to be deterministic; take built-in ones"
            raise mistake("not-deterministic", message, span, help)
    if is_constant(expr):
        message = "the expression is the same for all tuples, so it splits nothing"
        raise mistake("bad-set", message, span, "take columns of the source")
    if expr.type is Type.FLOAT:
        message = "a FLOAT is rounded, so equal values may be written in different ways"
        raise mistake("bad-set", message, span, "write CAST(... AS LLONG)")
    return expr


def is_refused(name: str) -> bool:
    """Whether a column says where or when a tuple was read, not what it is."""
    return name == INTERFACE or name.startswith(HIDDEN_PREFIX)


def placed(diagnostic: Diagnostic, text: str) -> Diagnostic:
    """A mistake of the query that holds the text, as a mistake of the text."""

    def inside(offset: int) -> int:
        return min(max(offset - len(BEFORE), 0), len(text))

    span = Span(inside(diagnostic.span.start), inside(diagnostic.span.end))
    message = diagnostic.message
    if diagnostic.span.start > len(BEFORE) + len(text):  # the clause behind the set
        message = message.replace("found 'FROM'", "found the end of the set")
    return replace(diagnostic, span=span, message=message)
