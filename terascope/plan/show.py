"""Plans as text: the form golden tests hold and `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from terascope.connectors.base import interface_of
from terascope.functions.aggregates.total import LOW_HALF
from terascope.functions.base import Scalar, Value
from terascope.functions.members import Members
from terascope.functions.overflow import SUM
from terascope.functions.roles import BitOperation, Narrowing, ShiftLeft
from terascope.plan.expr import AggCall, Call, Case, Cast, Col, Expr, Lit, Param, transform
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import (
    Aggregate,
    Filter,
    Join,
    Lookup,
    Merge,
    Named,
    NamedAgg,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Sliding,
    Window,
    WindowSpec,
    inputs,
)
from terascope.types import BIAS, Type, format_ip

INFIX: Mapping[str, int] = {
    "or": 1, "and": 2, "=": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "mask": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "||": 9, "*": 10, "/": 10, "div": 10, "%": 10,
}  # fmt: skip
"""Operators shown between their operands, with how tightly each binds."""


SHOWN_MEMBERS = 3


def show_value(value: Value, type: Type) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return format_ip(value) if type.is_address else f"HEX'{value.hex()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case int() if type is Type.WIDE:
            return str(value + BIAS)
        case _:
            return repr(value)


def show_expr(expr: Expr, outer: int = 0) -> str:
    """An expression as GSQL would have it."""
    match expr:
        case Col(name):
            return name
        case Lit(value, type):
            return show_value(value, type)
        case Param(name):
            return f"${name}"
        case Cast(operand, Type.WIDE) if operand.type.is_integer:
            return show_expr(operand, outer)  # as it was written
        case Cast(operand, type):
            return f"CAST({show_expr(operand)} AS {type.label})"
        case Case(branches, otherwise):
            arms = " ".join(f"WHEN {show_expr(c)} THEN {show_expr(v)}" for c, v in branches)
            return f"CASE {arms} ELSE {show_expr(otherwise)} END"
        case Call(Scalar(role=Narrowing()), (operand,)):
            return show_expr(operand, outer)
        case Call(function, args):
            return show_call(function.name, args, outer)
        case _:
            assert_never(expr)


def show_call(name: str, args: tuple[Expr, ...], outer: int) -> str:
    if name in INFIX and len(args) >= 2:
        binding = INFIX[name]
        word = {"mask": "&"}.get(name, name.upper())
        text = f" {word} ".join(
            [show_expr(args[0], binding), *(show_expr(a, binding + 1) for a in args[1:])]
        )
        return f"({text})" if binding < outer else text
    match name, args:
        case "not", (operand,):
            text = f"NOT {show_expr(operand, 3)}"
            return f"({text})" if outer > 3 else text
        case "neg", (operand,):
            return f"-{show_expr(operand, 11)}"
        case "~", (operand,):
            return f"~{show_expr(operand, 11)}"
        case "is_null", (operand,):
            return f"{show_expr(operand, 5)} IS NULL"
        case "in", (operand, *items):
            return f"{show_expr(operand, 5)} IN ({', '.join(map(show_expr, items))})"
        case "in_list", (operand, Lit(value=Members() as members, type=type)):
            return f"{show_expr(operand, 5)} IN ({show_members(members, type)})"
        case "like", (operand, pattern):
            return f"{show_expr(operand, 5)} LIKE {show_expr(pattern)}"
        case _:
            return f"{name}({', '.join(map(show_expr, args))})"


def show_members(members: Members, type: Type) -> str:
    """The first few members, and a digest that distinguishes lists with the same beginning."""
    first = [show_expr(Lit(value, type)) for value in members.values[:SHOWN_MEMBERS]]
    more = len(members.values) - len(first)
    rest = [f"... {more} more: list {members.digest}"] if more else []
    return ", ".join([*first, *rest, *(["NULL"] if members.has_null else [])])


def show_agg(agg: AggCall) -> str:
    args = ", ".join(map(show_expr, (*agg.args, *agg.written_parameters)))
    distinct = "DISTINCT " if agg.distinct else ""
    strategy = f" WITH strategy '{agg.strategy}'" if agg.strategy else ""
    return f"{agg.function.name}({distinct}{args or '*'}){strategy}"


def written(expr: Expr) -> str:
    """An expression as one writes it, for messages: a sum that was computed in two halves, to judge
    it as a whole, is a sum.
    """
    return show_expr(transform(expr, lambda part: Col(SUM, part.type) if is_halves(part) else part))


def is_halves(expr: Expr) -> bool:
    match expr:
        case Call(
            Scalar(role=BitOperation("|")),
            (
                Call(Scalar(role=ShiftLeft()), (_, Lit(value=32))),
                Call(Scalar(role=BitOperation("&")), (Col(), Lit(value=low))),
            ),
        ):
            return bool(low == LOW_HALF)
    return False


def written_agg(agg: AggCall, column: str = "") -> str:
    """An aggregate as one writes it, for messages. `column`: what its value is called, which is how
    it was written if partial groups are merged here.
    """
    name = agg.function.name
    text = column if column.startswith(f"{name}(") else show_agg(agg)
    return name.upper() + text.removeprefix(name)


def show_named(items: tuple[Named, ...]) -> str:
    return ", ".join(show_as(show_expr(e), n) for n, e in items)


def show_aggs(aggs: tuple[NamedAgg, ...]) -> str:
    return ", ".join(show_as(show_agg(a), n) for n, a in aggs)


def show_as(text: str, name: str) -> str:
    return name if text == name else f"{text} AS {name}"


def show_spec(spec: WindowSpec) -> str:
    if isinstance(spec, Sliding):
        return f"RANGE {spec.range} SLIDE {spec.slide}"
    return "SLICES " + ", ".join(map(str, spec.lengths))


def show_node(rel: Rel) -> str:
    """One operator on one line, without its inputs."""
    match rel:
        case Scan(interfaces=interfaces, protocol=protocol, columns=columns):
            sources = dict.fromkeys(map(interface_of, interfaces))
            where = f"{'+'.join(sources)}." if interfaces else ""
            return f"Scan {where}{protocol} [{', '.join(c.name for c in columns)}]"
        case Read(stream=stream):
            return f"Read {stream}"
        case Lookup(name=name, path=path):
            return f"Lookup {name} '{path}'"
        case Filter(predicate=predicate):
            return f"Filter {show_expr(predicate)}"
        case Project(items=items):
            return f"Project {show_named(items)}"
        case Window(spec=spec, on=on, elements=elements):
            return f"Window {show_spec(spec)} ON {on}{' OF windows' if elements else ''}"
        case Aggregate(keys=keys, aggs=aggs, sets=sets, emit_empty=empty):
            text = f"Aggregate by {show_named(keys) or 'nothing'}: {show_aggs(aggs) or 'distinct'}"
            if sets is not None:
                text += " sets " + ", ".join(f"({', '.join(s)})" for s in sets)
            return text + (" emitting empty windows" if empty else "")
        case Running(keys=keys, aggs=aggs, closing=closing):
            return f"Running by {show_named(keys)}: {show_aggs(aggs)} closing {show_expr(closing)}"
        case Rank(per=per, order=order, limit=limit):
            by = ", ".join(show_expr(e) + (" DESC" if d else "") for e, d in order)
            top = "" if limit is None else f" top {limit}"
            return f"Rank{top} per ({', '.join(per)}) by {by}"
        case Join(kind=kind):
            parts = [f"{show_expr(a, 5)} = {show_expr(b, 5)}" for a, b in rel.equalities]
            if rel.residual is not None:
                parts.append(show_expr(rel.residual, 2))
            return f"Join {kind} on {' AND '.join(parts) or 'TRUE'}"
        case Merge(on=on, slack=slack):
            return f"Merge on {on}" + (f" slack {slack}" if slack else "")
        case _:
            assert_never(rel)


def show_rel(rel: Rel, depth: int = 0) -> str:
    """A relation, one operator on each line, inputs indented below."""
    lines = ["  " * depth + show_node(rel)]
    lines += [show_rel(part, depth + 1) for part in inputs(rel)]
    return "\n".join(lines)


def show_plan(plan: Plan) -> str:
    """All streams, in the order they are computed."""
    blocks = []
    for stream in plan:
        mark = "" if stream.visible else " (internal)"
        blocks.append(f"{stream.name}{mark}:\n{show_rel(stream.rel, 1)}")
    return "\n".join(blocks)


def spelled(expr: Expr) -> Expr:
    """An expression with its parameters as they were written, whatever their values."""

    def changed(e: Expr) -> Expr:
        match e:
            case Lit(of=str(name)) if name:
                return Param(name, e.type)
            case Case(branches=branches, otherwise=Param(name=name)):
                if all(isinstance(v, Param) and v.name == name for _, v in branches):
                    return Param(name, e.type)
                return e
            case _:
                return e

    return transform(expr, changed)


def full_text(rel: Rel, streams: Mapping[str, Rel]) -> str:
    """The text of a relation with all streams that it reads."""
    below = (full_text(streams[read.stream], streams) for read in reads(rel))
    return "\n".join([show_rel(rel), *below])


def is_hidden(name: str) -> bool:
    """Hidden columns of a join's input have its alias before them: `S1.#ts`."""
    return name.startswith("#") or ".#" in name


def order_in_words(order: Sequence[tuple[str, bool]]) -> str:
    """The order of rows; the place of a tuple is one word for its hidden columns."""
    shown: dict[str, str] = {}
    for name, descending in order:
        word = "place" if is_hidden(name) else name
        shown.setdefault(word, f"{word} descending" if descending else word)
    return ", ".join(shown.values())
