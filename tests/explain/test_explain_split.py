"""explain --stage split: low and high parts as GSQL that can be run, with costs and reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.analysis.costs import Costs
from terascope.diagnostic import Source
from terascope.explain import explain
from terascope.explain.from_plan import picture_of_split
from terascope.explain.gsql import gsql, query_of
from terascope.explain.to_text import as_text
from terascope.functions.base import AggregateFunction, Scalar
from terascope.physical.split.host import CAPTURE_FILTER, COMPILED_HOST, Host
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.expr import Call
from terascope.plan.expr import walk as walk_expr
from terascope.plan.plan import Plan
from terascope.plan.rel import Aggregate, Join, Project, Running, walk
from terascope.reference.interpreter import evaluate
from terascope.syntax.ast import QueryStatement, Script
from terascope.syntax.parser import parse_recovering
from terascope.syntax.printer import print_script
from tests.oracle.build import call, col, ints, plan, rename
from tests.oracle.compare import assert_same_rows
from tests.properties.engines import make_case
from tests.properties.random_sets import PROTOCOL
from tests.reference.memory_sources import MemorySources

HTTP = """\
QUERY hostnames:
SELECT time/60*60 AS t, destIP, str_extract_regex(TCP_data, 'Host:.*') AS host FROM TCP
WHERE offset = 0 AND protocol = 6 AND str_match_start[TCP_data, 'GET'];

QUERY requests:
SELECT tb, destIP, count(*) AS n, avg(len) AS size FROM TCP
WHERE destPort IN (80, 8080) AND NOT SYN
GROUP BY time/60 AS tb, destIP
HAVING count(*) > 9;
"""

SHOWN = """\
-- next to the sources: host compiled_host, a part may cost 800 ns a tuple

-- low: selection, 31 ns a tuple at most, read by hostnames
--   2 ns  offset = 0
--   2 ns  protocol = 6
--   20 ns  str_match_start(TCP_data, 'GET')
--   7 ns  time DIV 60 * 60
DEFINE {
    query_name 'hostnames_low';
    visibility 'internal';
}
SELECT time DIV 60 * 60 AS t, destIP, TCP_data
FROM TCP
WHERE offset = 0 AND protocol = 6 AND str_match_start(TCP_data, 'GET');

-- low: aggregation, 16 ns a tuple at most, read by requests
--   10 ns  destPort IN (80, 8080)
--   1 ns  NOT SYN
--   5 ns  time DIV 60
DEFINE {
    query_name 'requests_low';
    visibility 'internal';
}
SELECT tb, destIP, count(*) AS cnt, sum(len) AS sum_len, count(len) AS count_len
FROM TCP
WHERE destPort IN (80, 8080) AND NOT SYN
GROUP BY time DIV 60 AS tb, destIP;

-- high
--   str_extract_regex(TCP_data, 'Host:.*') stays here: costs 1000 ns, over the budget of 800 ns
QUERY hostnames:
SELECT t, destIP, str_extract_regex(TCP_data, 'Host:.*') AS host
FROM hostnames_low;

-- high
QUERY requests:
SELECT tb, destIP, sum(cnt) AS n, sum(sum_len) / sum(count_len) AS size
FROM requests_low
GROUP BY tb, destIP
HAVING sum(cnt) > 9;
"""


def compiled(text: str) -> Compiled:
    return compile_set(Source(text, "http.gsql"))


def test_both_parts_are_shown_with_costs_and_reasons() -> None:
    assert explain(compiled(HTTP), "split") == SHOWN


def test_the_text_is_a_script_that_parses() -> None:
    script, mistakes = parse_recovering(Source(SHOWN, "split.gsql"))
    assert not mistakes
    assert [s.name for s in script.statements if isinstance(s, QueryStatement)] == [
        "hostnames_low",
        "requests_low",
        "hostnames",
        "requests",
    ]


def test_json_has_both_parts() -> None:
    found = json.loads(explain(compiled(HTTP), "split", "json"))
    boxes = {box["name"]: box for box in found["boxes"]}
    assert boxes["requests_low"]["marks"] == ["low", "aggregation"]
    assert boxes["requests_low"]["facts"]["read by"] == "requests"
    assert boxes["requests_low"]["query"].startswith("DEFINE {")
    assert boxes["hostnames"]["notes"][0].endswith("over the budget of 800 ns")
    assert ["stream:requests_low", "stream:requests"] in found["arrows"]


@pytest.mark.parametrize("format", ["dot", "html"])
def test_pictures_have_both_parts(format: str) -> None:
    shown = explain(compiled(HTTP), "split", format)  # type: ignore[arg-type]
    assert "hostnames_low" in shown
    assert "requests" in shown


# ---- plans as GSQL -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(300, 312), ids=lambda s: f"seed-{s}")
def test_the_text_of_any_plan_means_the_plan(seed: int, tmp_path: Path) -> None:
    """Splits of random sets as GSQL, bound again: the same columns, the same rows."""
    case = make_case(seed, tmp_path, queries=12, rows=40)
    whole, sources = case.compiled.optimized, MemorySources(case.tables)
    host = COMPILED_HOST if seed % 2 else CAPTURE_FILTER
    check_text(whole, case.compiled.bindings, sources, host)


def check_text(whole: Plan, given: Bindings, sources: MemorySources, host: Host) -> None:
    split = split_plan(whole, host, Costs()).plan
    texts = [gsql(s.name, s.rel, s.visible) for s in split]
    sets = {**given.sets, "left+right": ("left", "right")}
    both = replace(given, sets=sets, functions=given.functions.extended(functions_of_states(split)))
    again = compile_set(Source("\n\n".join([PROTOCOL, *texts]), "split.gsql"), both)
    expected, found = evaluate(whole, sources), evaluate(again.optimized, sources)
    for stream in whole.visible:
        rows, others = expected[stream.name].visible(), found[stream.name].visible()
        assert rows.fields == others.fields
        assert_same_rows(rows.tuples, others.tuples, rows.fields)
        assert parsed_back(whole, stream.name)


def functions_of_states(plan: Plan) -> list[AggregateFunction | Scalar]:
    """The functions of a split plan that no query of a user has."""
    found: dict[str, AggregateFunction | Scalar] = {}
    for stream in plan:
        for rel in walk(stream.rel):
            if isinstance(rel, Aggregate | Running):
                found |= {agg.function.name: agg.function for _, agg in rel.aggs}
            for expr in (e for _, e in rel.items) if isinstance(rel, Project) else ():
                calls = [e for e in walk_expr(expr) if isinstance(e, Call)]
                found |= {call.function.name: call.function for call in calls}
    return [function for name, function in found.items() if "[" in name]


def test_the_text_of_windows_means_them(tmp_path: Path) -> None:
    case = make_case(1, tmp_path, queries=1, rows=60)
    text = f"""{PROTOCOL}
    QUERY every: SELECT a, count(*) AS n, max(b) AS m FROM S GROUP BY a EVERY 10 sec;
    QUERY top: SELECT s, count(*) AS n FROM left.S [RANGE 7 SLIDE 7] GROUP BY s
        ORDER BY n DESC LIMIT 2;
    DEFINE {{ query_name 'epochs'; empty 'emit'; }} SELECT tb, count(*) AS n FROM left.S WHERE a > 2
        GROUP BY ts/3 AS tb;
    DEFINE {{ query_name 'hopping'; empty 'emit'; }}
        SELECT count(*) AS n, max(b) AS m FROM left.S [RANGE 4 SLIDE 3] WHERE a > 2;
    DEFINE {{ query_name 'tumbling'; empty 'emit'; }}
        SELECT count(*) AS n FROM left.S [RANGE 3 SLIDE 3] WHERE a > 2;"""
    whole = compile_set(Source(text, "windows.gsql"), case.compiled.bindings).optimized
    check_text(whole, case.compiled.bindings, MemorySources(case.tables), COMPILED_HOST)


def parsed_back(whole: Plan, name: str) -> bool:
    statement = QueryStatement(query_of(whole[name].rel), name)
    script, mistakes = parse_recovering(Source(print_script(Script((statement,))), "back.gsql"))
    return not mistakes and script.statements == (statement,)


def test_what_has_no_words_is_shown_as_operators() -> None:
    left, right = rename(ints("l", names="ts a"), "x."), rename(ints("r", names="ts a"), "y.")
    semi = Join(left, right, "semi", ((col("x.ts"), col("y.ts")),), call("<", col("x.a"), 3))
    split = split_plan(plan(q=semi))
    assert gsql("q", semi) == ""
    shown = as_text(picture_of_split(split, "semi"))
    assert "-- q has no words in GSQL:\n--   Join semi on x.ts = y.ts AND x.a < 3" in shown
