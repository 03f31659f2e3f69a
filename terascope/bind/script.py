"""A whole script: a set of queries becomes a Plan.

In: a Script, the catalog, the functions and `--param name=value`. Out: a `Plan` whose streams stand
in the order they can be computed in, a typed value for each parameter, and every mistake and
warning found on the way. A query that fails does not stop the others from being checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from terascope.bind.catalog import Catalog
from terascope.bind.context import BindContext
from terascope.bind.protocols import UNPACKING, declared_type
from terascope.bind.query import QueryBinder, streams_read
from terascope.bind.strategies import checked_strategies, read_strategies
from terascope.bind.udafs import bind_declarations
from terascope.diagnostic import NOWHERE, Diagnostic, Span
from terascope.files import name_problem
from terascope.functions.base import AggregateFunction, Value
from terascope.functions.casts import cast_value
from terascope.functions.registry import Functions
from terascope.plan.expr import Lit, Param
from terascope.plan.plan import Parameter, Plan, Stream
from terascope.syntax import ast
from terascope.syntax.ast import walk
from terascope.syntax.printer import print_query
from terascope.types import Type, parse_ip
from terascope.units import seconds_or_never

MOST_SHOWN = 40
"""Characters of a name that a message repeats."""

HONOURED = frozenset(
    {
        "query_name", "visibility", "comment", "empty", "outer_fill", "filename",
        "refresh_interval", "liveness_timeout", "strategy",
    }
)  # fmt: skip
NOT_YET = frozenset(
    {
        "aggregate_slots", "slow_flush", "lfta_aggregation", "select_lfta", "algorithm",
        "max_lfta_disorder", "max_hfta_disorder",
    }
)  # fmt: skip
"""Hints of GS-Lite that steer how a query runs, never what it answers."""
CHOICES = {
    "visibility": ("external", "internal"),
    "empty": ("emit", "omit"),
    "outer_fill": ("null", "default"),
}
"""Hints with a choice of values."""


@dataclass(frozen=True)
class BoundScript:
    """The result of binding. `plan` is None when there was any error."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")


def bind_script(
    script: ast.Script,
    catalog: Catalog,
    functions: Functions,
    parameters: Mapping[str, str] | None = None,
    folder_of: Callable[[Span], Path] = lambda _: Path(),
    folders: tuple[Path, ...] | None = None,
    strategies: Mapping[str, str] | None = None,
) -> BoundScript:
    """Bind every statement. Mistakes are returned, not raised. `strategies`: those of the settings,
    by the names of aggregates.
    """
    context = BindContext(catalog, functions, {}, folder_of, folders)
    context.settings, wrong = checked_strategies(functions, strategies or {}, NOWHERE)
    context.diagnostics += wrong
    context.failed |= script.unread
    values = bind_parameters(context, script, parameters or {})
    for statement in script.statements:
        declare(context, statement)
    bind_declarations(context)
    queries = named_queries(context, script)
    streams: list[Stream] = []
    for name in computable_order(context, queries):
        streams += bind_query(context, name, queries[name])
    for name in sorted(set(parameters or {}) - context.used_parameters):
        context.warning(
            "unused-parameter", f"parameter '${name}' is given, but no query uses it", NOWHERE
        )
    plan = None if context.errors else Plan(tuple(streams), values)
    return BoundScript(plan, tuple(context.diagnostics))


def declare(context: BindContext, statement: ast.Statement) -> None:
    match statement:
        case ast.ProtocolStatement():
            known = context.protocols.setdefault(statement.name, statement)
            if known is statement:
                context.diagnostics += context.catalog.declare(statement)
            elif known != statement:
                message = f"'{statement.name}' is declared before, and differently"
                help = "declare it once; all queries of the set can read it"
                context.error("duplicate-name", message, statement.span, help=help)
        case ast.WatchlistStatement():
            if not statement.name:
                message = "a watch list needs a name"
                help = "add query_name 'name'; to its DEFINE"
                context.error("missing-name", message, statement.span, help=help)
            else:
                context.watchlists[statement.name] = statement
        case ast.UdafDeclaration(name=name):
            context.udafs[name.lower()] = statement
        case ast.ExtractorDeclaration(name=name):
            context.extractors[name.lower()] = statement
        case ast.UnpackStatement():
            context.warning(
                "hint-without-effect", f"UNPACK_FCNS has no effect: {UNPACKING}", statement.span
            )
        case ast.QueryStatement():
            pass


def named_queries(context: BindContext, script: ast.Script) -> dict[str, ast.QueryStatement]:
    """Every query under its name; unnamed ones are query1, query2, ..."""
    found: dict[str, ast.QueryStatement] = {}
    unnamed = 0
    for statement in script.statements:
        if not isinstance(statement, ast.QueryStatement):
            continue
        name = statement.name
        if name is None:
            unnamed += 1
            name = f"query{unnamed}"
        problem = name_problem(name)
        if problem is not None:
            shown = name if len(name) <= MOST_SHOWN else name[:MOST_SHOWN] + "..."
            message = f"no query can be called '{shown}': {problem}"
            help = "the files of its results are called like the query; give it another name"
            context.error("bad-name", message, statement.span, help=help)
            continue
        if name in found or name in context.watchlists:
            context.error("duplicate-name", f"two queries are called '{name}'", statement.span)
            continue
        found[name] = statement
    return found


def computable_order(context: BindContext, queries: Mapping[str, ast.QueryStatement]) -> list[str]:
    """Sort queries so that each stands after those it reads. A cycle is reported and left out."""
    done: dict[str, None] = {}
    visiting: list[str] = []

    def visit(name: str) -> None:
        if name in done or name in context.failed:
            return
        if name in visiting:
            path = " -> ".join([*visiting[visiting.index(name) :], name])
            message = f"queries read each other in a circle: {path}"
            help = "a query may read only what does not depend on it"
            context.error("query-cycle", message, queries[name].span, help=help)
            context.failed.update(visiting[visiting.index(name) :])
            return
        visiting.append(name)
        for read in streams_read(queries[name].query):
            if read in queries:
                visit(read)
        visiting.pop()
        if name not in context.failed:
            done[name] = None

    for name in queries:
        visit(name)
    return list(done)


def bind_query(context: BindContext, name: str, statement: ast.QueryStatement) -> list[Stream]:
    """The streams a statement makes: the tables of its WITH, then its own."""
    define = {p.key.lower(): p for p in statement.define}
    constants = read_define(context, define, statement.query)
    context.strategies = context.settings | forced_strategies(context, define.get("strategy"))
    said = {key: p.value for key, p in define.items()}
    emit_empty = said.get("empty", "omit").lower() == "emit"
    outer_fill = said.get("outer_fill", "null").lower()
    binder = QueryBinder(context, name, constants, outer_fill, emit_empty)
    rel = binder.bind(statement.query)
    if rel is None:
        context.failed.add(name)
        return []
    context.add_stream(name, rel)
    visible = said.get("visibility", "external").lower() == "external"
    text, comment = print_query(statement.query), said.get("comment", "")
    liveness = bind_liveness(context, define.get("liveness_timeout"))
    return [*binder.streams, Stream(name, rel, visible, text, comment, liveness)]


def forced_strategies(
    context: BindContext, told: ast.Property | None
) -> dict[AggregateFunction, str]:
    """The strategies of a DEFINE block."""
    if told is None:
        return {}
    found, wrong = read_strategies(context.functions, told.value, told.span)
    context.diagnostics += wrong
    return found


def bind_liveness(context: BindContext, told: ast.Property | None) -> float | None:
    """The time that a query waits for a source that is gone, if its DEFINE says so."""
    if told is None:
        return None
    is_bare = not told.value[-1:].isalpha()
    try:
        return seconds_or_never(told.value + "s" if is_bare else told.value)
    except ValueError:
        message = f"'{told.value}' is not a value of liveness_timeout"
        help = "it takes seconds (30), a length of time ('5m') or 'off': wait for ever"
        context.error("bad-hint", message, told.span, help=help)
        return None


def read_define(
    context: BindContext, define: Mapping[str, ast.Property], query: ast.Query
) -> dict[str, Lit]:
    """The constants of a DEFINE block. Values of hints are checked, and others warned about."""
    for key, values in CHOICES.items():
        if key in define and define[key].value.lower() not in values:
            message = f"'{define[key].value}' is not a value of {key}"
            help = f"it takes {' or '.join(repr(v) for v in values)}"
            context.error("bad-hint", message, define[key].span, help=help)
    used = {node.name.lower() for node in walk(query) if isinstance(node, ast.ConstantRef)}
    for key, prop in define.items():
        if key in NOT_YET - used:
            message = f"hint '{prop.key}' has no effect yet"
            context.warning("hint-without-effect", message, prop.span)
        elif key not in HONOURED | NOT_YET | used:
            message = f"unknown hint '{prop.key}'"
            help = f"a constant is used as #{prop.key} in the query"
            context.warning("unknown-hint", message, prop.span, help=help)
    return {key: constant_value(prop.value) for key, prop in define.items() if key in used}


def constant_value(text: str) -> Lit:
    """The value of a DEFINE constant: a number, an address, TRUE, FALSE, or the text itself."""
    with suppress(ValueError):
        return Lit(int(text, 0), Type.INT)
    with suppress(ValueError):
        return Lit(float(text), Type.FLOAT)
    if text.upper() in ("TRUE", "FALSE"):
        return Lit(text.upper() == "TRUE", Type.BOOL)
    address = parse_ip(text)
    return Lit(text, Type.STRING) if address is None else Lit(address, Type.IP)


# ---- parameters ----------------------------------------------------------------------------------


def bind_parameters(
    context: BindContext, script: ast.Script, given: Mapping[str, str]
) -> tuple[Parameter, ...]:
    """All parameters of the set; fills `context.parameters`."""
    found: dict[str, Parameter] = {}
    for statement in script.statements:
        if not isinstance(statement, ast.QueryStatement):
            continue
        for declared in statement.params:
            type = declared_type(declared.type_name)
            if type is None:
                context.error("unknown-type", f"unknown type '{declared.type_name}'", declared.span)
                continue
            known = found.get(declared.name)
            if known is not None and known.type.label != type.label:
                message = f"parameter '${declared.name}' is declared {known.type.label} elsewhere"
                context.error("type-mismatch", message, declared.span)
                continue
            found[declared.name] = parameter(context, declared, type, given)
    for name, text in given.items():
        if name not in found:
            value, type = guess(text)
            found[name] = Parameter(name, type, value)
    context.parameters.update({p.name: Param(p.name, p.type) for p in found.values()})
    return tuple(found.values())


def parameter(
    context: BindContext, declared: ast.ParamDeclaration, type: Type, given: Mapping[str, str]
) -> Parameter:
    name = declared.name
    if name not in given:
        if not context.catalog.open_world:
            message = f"parameter '${name}' has no value"
            help = f"give it with --param {name}=..."
            context.error("missing-parameter", message, declared.span, help=help)
        return Parameter(name, type, None)
    value = cast_value(given[name], Type.STRING, type)
    if value is None and type is Type.ULLONG:
        type, value = Type.WIDE, cast_value(given[name], Type.STRING, Type.WIDE)
    if value is None:
        context.error(
            "bad-parameter", f"'{given[name]}' is not a value of type {type.label}", declared.span
        )
    return Parameter(name, type, value)


def guess(text: str) -> tuple[Value, Type]:
    """The value of a parameter that no PARAM declares: a number if it looks like one."""
    for type in (Type.INT, Type.WIDE, Type.FLOAT):
        value = cast_value(text, Type.STRING, type)
        if value is not None:
            return value, type
    return text, Type.STRING
