"""What a block of GSQL in the documentation gives: its answer as text, checked as its fence asks.

```gsql run``` must give rows, ```gsql check``` must compile, ```gsql error=code``` and
```gsql warning=code``` must be told exactly that.
"""

from __future__ import annotations

from terascope.diagnostic import QueryError
from terascope.functions.registry import Functions
from terascope.pipeline import Bindings
from tests.docs.answers import bindings, compiled, results, shown_results, shown_warnings
from tests.docs.blocks import Block, blocks

KINDS = frozenset({"run", "check", "error", "warning"})


def kind_of(block: Block) -> str | None:
    """The kind of an example, or None for a block that is no GSQL."""
    if block.kind != "gsql":
        return None
    kinds = [word.partition("=")[0] for word in block.words[1:]]
    return next((k for k in kinds if k in KINDS), None)


def outcome(block: Block, functions: Functions | None = None) -> str:
    """The text that an answer below the block must be equal to."""
    bound = bindings(block, functions)
    match kind_of(block):
        case "error":
            return refused(block, functions)
        case "warning":
            query_set = compiled(block.text, bound)
            assert {w.code for w in query_set.warnings} == {block.option("warning")}
            return shown_warnings(query_set)
        case "run":
            query_set = compiled(block.text, bound)
            assert not query_set.warnings, shown_warnings(query_set)
            answers = results(query_set)
            empty = [name for name, answer in answers.items() if not answer.rows]
            assert answers, "no query is visible"
            assert not empty, f"no rows: {empty}"
            return shown_results(answers)
        case _:
            query_set = compiled(block.text, bound)
            assert not query_set.warnings, shown_warnings(query_set)
            return ""


def refused(block: Block, functions: Functions | None = None) -> str:
    told = mistakes_of(block.text, bindings(block, functions))
    assert told, "the example has no mistake"
    wanted = (block.option("error") or "").split(",")
    assert sorted(set(told.codes)) == sorted(wanted), str(told)
    return str(told)


def mistakes_of(text: str, bound: Bindings) -> QueryError | None:
    try:
        compiled(text, bound)
    except QueryError as mistake:
        return mistake
    return None


def blessed(text: str) -> str:
    """A page with all the answers below its examples written anew."""
    lines = text.split("\n")
    for block in reversed(blocks(text)):
        if kind_of(block) and block.answer:
            lines[block.answer.line : block.answer.end - 1] = outcome(block).split("\n")
    return "\n".join(lines)
