"""Answers to the examples of the documentation, as the pages print them.

In: a block of GSQL. Out: the rows of its visible queries as text, computed by the reference
interpreter over the files of docs/examples, or the diagnostics of its mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from terascope.analysis.order import plan_orders
from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source, render
from terascope.functions.base import Value
from terascope.functions.registry import Functions
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.rel import Field
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row, Rows, sort_key
from terascope.reference.sources import ConnectorSources
from terascope.types import format_ip
from tests.docs.blocks import EXAMPLES, Block

SOURCES = {
    "eth0": "pcap:tiny.pcap",
    "eth1": "pcap:second.pcap",
    "logins": "csv:logins.csv",
    "digits": "csv:digits.csv",
}
USUAL = ("eth0", "logins", "digits")


@cache
def interface(name: str) -> Interface:
    kind, _, file = SOURCES[name].partition(":")
    return parse_interface(f"{name}={kind}:{EXAMPLES / file}")


def bindings(
    block: Block | None = None, functions: Functions | None = None, names: Sequence[str] = USUAL
) -> Bindings:
    """What an example is bound to; `sources=`, `set=` and `param=` after its fence say more."""
    given = block.option("sources") if block else None
    chosen = given.split(",") if given else names
    sets, parameters = {}, {}
    if block and (group := block.option("set")):
        name, _, members = group.partition(":")
        sets[name] = tuple(members.split(","))
    if block and (value := block.option("param")):
        name, _, text = value.partition(":")
        parameters[name] = text
    return Bindings(
        {name: interface(name) for name in chosen},
        sets,
        parameters,
        functions or Functions.builtin(),
    )


def compiled(text: str, bound: Bindings) -> Compiled:
    return compile_set(Source(text, "query.gsql"), bound)


def results(query_set: Compiled, in_order: bool = False) -> dict[str, Rows]:
    """The rows of every visible query, in the order of its ordered columns, then of their values or
    as they came: those of the plan as written, which the rules must not change.
    """
    sources = ConnectorSources(query_set.bindings.interfaces)
    written = evaluate(query_set.plan, sources)
    optimized = evaluate(query_set.optimized, sources)
    orders = plan_orders(query_set.plan)
    answers = {}
    for stream in query_set.plan.visible:
        rows = written[stream.name].visible()
        assert rows.canonical() == optimized[stream.name].visible().canonical(), stream.name
        places = [i for i, name in enumerate(rows.names) if name in orders[stream.name]]
        answers[stream.name] = in_time(rows if in_order else rows.canonical(), places)
    return answers


def in_time(rows: Rows, places: list[int]) -> Rows:
    return Rows(
        rows.fields, sorted(rows.tuples, key=lambda row: [sort_key(row[i]) for i in places])
    )


def shown_results(answers: dict[str, Rows]) -> str:
    """All tables; each under its query's name when there are several."""
    tables = {name: shown_rows(rows) for name, rows in answers.items()}
    if len(tables) == 1:
        return next(iter(tables.values()))
    return "\n\n".join(f"{name}\n{table}" for name, table in tables.items())


def shown_rows(rows: Rows) -> str:
    lines = [rows.names, *(shown_row(row, rows.fields) for row in rows.tuples)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(rows.fields))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (lines[0], rule, *lines[1:])
    )


def shown_row(row: Row, fields: Sequence[Field]) -> tuple[str, ...]:
    return tuple(shown_value(v, f.type.is_address) for v, f in zip(row, fields, strict=True))


def shown_value(value: Value, address: bool = False) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return format_ip(value) if address else f"X'{value.hex()}'"
        case _:
            return str(value)


def shown_warnings(query_set: Compiled) -> str:
    return render(query_set.warnings, query_set.source)
