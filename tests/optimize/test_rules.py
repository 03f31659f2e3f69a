"""Each rule: before, after. That answers stay the same is in tests/properties."""

from __future__ import annotations

from terascope.diagnostic import Source
from terascope.optimize.driver import optimize, rule_names
from terascope.pipeline import compile_set
from terascope.plan.plan import Plan
from terascope.plan.show import show_plan, show_rel

PROTOCOL = "PROTOCOL S (ts UINT increasing clock(s), a INT, b INT, c INT, s STRING);"


def plan_of(query: str) -> Plan:
    return compile_set(Source(f"{PROTOCOL}\n{query}")).plan


def only(rule: str, query: str, name: str = "q") -> str:
    """The stream after one rule alone."""
    others = frozenset(rule_names()) - {rule}
    return show_rel(optimize(plan_of(query), disabled=others)[name].rel)


def test_fold_constants() -> None:
    after = only("fold_constants", "QUERY q: SELECT ts FROM S WHERE a > 2 + 3 * 2 AND TRUE;")
    assert "Filter a > 8\n" in after
    gone = only("fold_constants", "QUERY q: SELECT ts FROM S WHERE 1 = 1 OR a > 2;")
    assert "Filter" not in gone


def test_an_overflow_is_left_for_the_run_to_tell() -> None:
    after = only("fold_constants", "QUERY q: SELECT ts FROM S WHERE a > 9223372036854775807 + 1;")
    assert "9223372036854775807 + 1" in after


def test_merge_filters() -> None:
    text = "QUERY q: SELECT ts FROM (SELECT * FROM S WHERE a > 1) x WHERE b > 2;"
    both = frozenset(rule_names()) - {"merge_filters", "push_filters"}
    after = show_rel(optimize(plan_of(text), disabled=both)["q"].rel)
    assert after.count("Filter") == 1
    assert "Filter a > 1 AND b > 2" in after


def test_merge_projects_unless_it_repeats_work() -> None:
    text = "QUERY q: SELECT x + 1 AS y, ts FROM (SELECT ts, a * b AS x FROM S) z;"
    assert only("merge_projects", text).count("Project") == 1
    twice = "QUERY q: SELECT x + x AS y, ts FROM (SELECT ts, a * b AS x FROM S) z;"
    assert only("merge_projects", twice).count("Project") == 2


def test_drop_identities() -> None:
    text = "QUERY p: SELECT ts, a FROM S; QUERY q: SELECT * FROM p;"
    assert only("drop_identities", text) == "Read p"


def test_push_filters_below_aggregation_by_key_only() -> None:
    text = (
        "QUERY q: SELECT * FROM (SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a) x "
        "WHERE a = 3 AND n > 5;"
    )
    lines = only("push_filters", text).split("\n")
    kinds = [line.split()[0] for line in lines]
    assert kinds == ["Project", "Project", "Filter", "Aggregate", "Filter", "Scan"]
    assert "count(*) > 5" in lines[2]
    assert "a = 3" in lines[4]


def test_push_filters_on_the_kept_side_of_an_outer_join() -> None:
    text = (
        "QUERY x: SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a;"
        "QUERY q: SELECT l.tb, l.n FROM x l LEFT JOIN x r ON l.tb = r.tb WHERE l.a = 1 AND r.a = 2;"
    )
    after = optimize(plan_of(text))["q"].rel
    shown = show_rel(after).split("\n")
    above = next(i for i, line in enumerate(shown) if "Join left" in line)
    assert any("r.a = 2" in line for line in shown[:above])
    assert any("a = 1" in line for line in shown[above:])


def test_absorb_conditions() -> None:
    text = (
        "QUERY x: SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a;"
        "QUERY q: SELECT l.tb FROM x l JOIN x r ON l.tb = r.tb WHERE l.a = r.a AND l.n < r.n;"
    )
    after = only("absorb_conditions", text)
    assert "Join inner on l.tb = r.tb AND l.a = r.a AND l.n < r.n" in after


def test_order_joins_starts_with_the_smallest_input() -> None:
    text = (
        "QUERY big: SELECT tb, a, b, c, count(*) AS n FROM S GROUP BY ts/10 AS tb, a, b, c;"
        "QUERY small: SELECT tb, count(*) AS n FROM S WHERE a = 1 GROUP BY ts/10 AS tb;"
        "QUERY q: SELECT x.tb, x.n, y.n, z.n FROM big x, big y, small z "
        "WHERE x.tb = y.tb AND y.tb = z.tb AND x.tb = z.tb AND x.a = y.a;"
    )
    after = show_rel(optimize(plan_of(text))["q"].rel)
    reads = [line.strip() for line in after.split("\n") if "Read" in line]
    assert reads[0] == "Read small"
    assert reads[1:] == ["Read big", "Read big"]


def test_share_subqueries() -> None:
    text = (
        "QUERY p: SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a;"
        "QUERY q: SELECT tb, a, count(*) AS m FROM S GROUP BY ts/10 AS tb, a HAVING count(*) > 2;"
    )
    shown = show_plan(optimize(plan_of(text)))
    assert shown.count("Aggregate") == 1
    assert shown.count("Read shared1") == 2


def test_a_window_alone_is_not_shared() -> None:
    """Its tuples would be kept once for each window; aggregations of it share slices."""
    text = (
        "QUERY p: SELECT a, count(*) AS n FROM S [RANGE 60 SLIDE 5] GROUP BY a;"
        "QUERY q: SELECT a, max(b) AS m FROM S [RANGE 60 SLIDE 5] GROUP BY a;"
    )
    shown = show_plan(optimize(plan_of(text)))
    assert shown.count("Window") == shown.count("Aggregate") == 2
    assert "shared" not in shown


def test_two_equal_queries_are_one() -> None:
    query = "SELECT tb, a, count(*) AS n FROM S GROUP BY ts/10 AS tb, a;"
    shown = show_plan(optimize(plan_of(f"QUERY p: {query} QUERY q: {query}")))
    assert "q:\n  Read p" in shown


def test_prune_columns() -> None:
    text = (
        "DEFINE { query_name 'p'; visibility 'internal'; } "
        "SELECT ts, a, b, c, s FROM S; QUERY q: SELECT tb, sum(a) FROM p GROUP BY ts/10 AS tb;"
    )
    after = optimize(plan_of(text))
    assert after["p"].rel.names == ("ts", "a")
    assert "Scan S [ts, a]" in show_rel(after["p"].rel)


def test_rules_are_told_to_an_observer() -> None:
    seen: list[str] = []
    optimize(
        plan_of("QUERY q: SELECT ts FROM S WHERE a > 1 + 1;"),
        observer=lambda name, before, after: seen.append(name),
    )
    assert "fold_constants" in seen
    assert "prune_columns" in seen
