"""Every aggregate that can be merged splits: the registry is asked, no function by its name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from terascope.diagnostic import Source
from terascope.functions.base import AggregateFunction, TypeMistake
from terascope.functions.registry import Functions
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import Bindings, compile_set
from terascope.plan.rel import Aggregate
from terascope.types import Type

COLUMNS = {
    Type.LLONG: "n",
    Type.UINT: "u",
    Type.FLOAT: "f",
    Type.BOOL: "b",
    Type.STRING: "s",
    Type.IP: "a",
}
PROTOCOL = """PROTOCOL P
    (time UINT increasing clock(s), k UINT, n LLONG, u UINT, f FLOAT, b BOOL, s STRING, a IP);
"""
AGGREGATES = {function.name: function for function in Functions.builtin().aggregates.values()}


def calls(function: AggregateFunction) -> Iterator[str]:
    """Calls of a function with every combination of types that it takes."""
    for types in itertools.product(COLUMNS, repeat=function.arity):
        try:
            function.type_rule(types)
        except TypeMistake:
            continue
        constants = [repr(v) for v in function.example_parameters if v != ""]
        yield f"{function.name}({', '.join([*(COLUMNS[t] for t in types), *constants])})"


def kept_high(text: str, live: bool) -> list[str]:
    """The parts of a query that stay above, with the reasons."""
    split = split_plan(
        compile_set(Source(PROTOCOL + text, "q.gsql"), Bindings()).optimized, live=live
    )
    whole = [low.name for low in split.low if not isinstance(low.rel, Aggregate)]
    return [*whole, *(f"{part.text}: {part.reason}" for part in split.kept_high)]


WHERE = {
    "epochs": "FROM i.P GROUP BY time/60 AS tb, k",
    "running": "FROM i.P GROUP BY time/60 AS tb, k CLOSING_WHEN COUNT(*) = 0",
    "windows": "FROM i.P [RANGE 60 SLIDE 20] GROUP BY k",
}


@pytest.mark.parametrize("live", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_every_aggregate_that_merges_splits(name: str, live: bool) -> None:
    written = list(calls(AGGREGATES[name]))
    assert written, "the columns of this test have no type that it takes"
    for grouped, call in itertools.product(WHERE.values(), written):
        text = f"QUERY q: SELECT k, {call} AS x {grouped};"
        assert not kept_high(text, live), text
