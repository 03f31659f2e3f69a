"""Answers to the examples of the documentation, as the pages print them.

In: a block of GSQL. Out: the rows of its visible queries as text, computed by the reference
interpreter over the files of docs/examples, or the diagnostics of its mistakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source, render
from terascope.functions.base import Value
from terascope.functions.registry import Functions
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.rel import Field
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from terascope.types import format_ip
from tests.agreement import Answer, Answers, assert_same_answers, delivered
from tests.docs.blocks import EXAMPLES, Block
from tests.reference.connector_sources import ConnectorSources

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


def results(query_set: Compiled) -> Answers:
    """What the visible queries deliver, of the plan as written; the rules must not change it."""
    sources = ConnectorSources(query_set.bindings.interfaces)
    answers = delivered(query_set.plan, evaluate(query_set.plan, sources))
    optimized = delivered(query_set.optimized, evaluate(query_set.optimized, sources))
    assert_same_answers(answers, optimized)
    return answers


def shown_results(answers: Answers) -> str:
    """All tables; each under its query's name when there are several."""
    tables = {name: shown_rows(answer) for name, answer in answers.items()}
    if len(tables) == 1:
        return next(iter(tables.values()))
    return "\n\n".join(f"{name}\n{table}" for name, table in tables.items())


def shown_rows(answer: Answer) -> str:
    names = tuple(field.name for field in answer.fields)
    lines = [names, *(shown_row(row, answer.fields) for row in answer.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
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
