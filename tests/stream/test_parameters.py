"""Parameters as functions of time: the old value before an edge, the new one after it."""

from __future__ import annotations

from pathlib import Path

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.optimize.driver import optimize
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.plan import Plan
from terascope.reference.interpreter import evaluate
from terascope.streaming.parameters import (
    Change,
    decides_time,
    next_edge,
    slice_lengths,
    with_changes,
)
from tests.reference.connector_sources import ConnectorSources

QUERIES = """
PROTOCOL T (time UINT increasing clock(s), k INT, v INT);
PARAM { low INT; }
QUERY counts: SELECT tb, k, COUNT(*) AS n, SUM(v) AS s FROM x.T WHERE v > $low
  GROUP BY time/10 AS tb, k HAVING COUNT(*) > $low - 2;
QUERY few: SELECT tb, n FROM counts WHERE n < 3 + $low;
QUERY slides: SELECT COUNT(*) AS c FROM x.T [RANGE '20 sec' SLIDE '10 sec'] WHERE v > $low;
"""
EDGE = 50


def compiled(folder: Path, low: int) -> Compiled:
    path = folder / "x.csv"
    if not path.exists():
        rows = [f"{t},{t % 3},{t % 7}" for t in range(100)]
        path.write_text("\n".join(["time,k,v", *rows]) + "\n", encoding="utf-8")
    bindings = Bindings({"x": parse_interface(f"x=csv:{path}")}, parameters={"low": str(low)})
    return compile_set(Source(QUERIES, "q"), bindings)


def rows(plan: Plan, made: Compiled, query: str) -> list[tuple[object, ...]]:
    found = evaluate(plan, ConnectorSources(made.bindings.interfaces))[query]
    visible = [place for place, f in enumerate(found.fields) if not f.hidden]
    return sorted(tuple(row[place] for place in visible) for row in found.tuples)


def test_slices_before_the_edge_have_the_old_value(tmp_path: Path) -> None:
    old, new = compiled(tmp_path, 1), compiled(tmp_path, 3)
    changed = with_changes(old.plan, [Change("low", 1, 3, EDGE * 10**9)])
    for query in ("counts", "few"):
        before = [r for r in rows(old.plan, old, query) if int(str(r[0])) < EDGE // 10]
        after = [r for r in rows(new.plan, new, query) if int(str(r[0])) >= EDGE // 10]
        assert before
        assert after
        assert rows(changed, old, query) == sorted([*before, *after])
        assert rows(optimize(changed), old, query) == sorted([*before, *after])


def test_tuples_of_a_window_have_the_value_of_their_time(tmp_path: Path) -> None:
    made = compiled(tmp_path, 1)
    changed = with_changes(made.plan, [Change("low", 1, 3, EDGE * 10**9)])
    counted = {end: n for n, _, end in rows(changed, made, "slides")}
    assert counted[EDGE] == sum(t % 7 > 1 for t in range(EDGE - 20, EDGE))
    assert counted[EDGE + 10] == sum(
        t % 7 > (1 if t < EDGE else 3) for t in range(EDGE - 10, EDGE + 10)
    )


def test_several_changes_of_one_parameter(tmp_path: Path) -> None:
    made = compiled(tmp_path, 0)
    changes = [Change("low", 0, 2, 30 * 10**9), Change("low", 2, 5, 60 * 10**9)]
    plan = with_changes(made.plan, changes)
    by_epoch = {low: set(rows(compiled(tmp_path, low).plan, made, "counts")) for low in (0, 2, 5)}
    want = {
        row
        for low, low_edge, high_edge in ((0, 0, 3), (2, 3, 6), (5, 6, 10))
        for row in by_epoch[low]
        if low_edge <= int(str(row[0])) < high_edge
    }
    assert set(rows(plan, made, "counts")) == want


def test_edge_is_one_of_all_slices(tmp_path: Path) -> None:
    made = compiled(tmp_path, 1)
    assert set(slice_lengths(made.plan)) == {10 * 10**9}
    assert next_edge(made.plan, 41 * 10**9) == 50 * 10**9
    assert next_edge(made.plan, 50 * 10**9) == 60 * 10**9


def test_parameter_that_cuts_slices_is_told() -> None:
    text = """
    PROTOCOL T (time UINT increasing clock(s), v INT);
    PARAM { w INT; }
    SELECT tb, COUNT(*) AS n FROM x.T WHERE v > $w GROUP BY time/10 + $w AS tb
    """
    bindings = Bindings({"x": parse_interface("x=csv:x.csv")}, parameters={"w": "5"})
    plan = compile_set(Source(text, "q"), bindings).plan
    assert decides_time(plan, "w")
