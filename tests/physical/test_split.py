"""Splitting: what goes next to the source, what stays above, and why (dissertation 3.4.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from terascope.analysis.costs import Costs
from terascope.diagnostic import Source
from terascope.functions.registry import Functions
from terascope.functions.user import aggregate, scalar
from terascope.physical.rules.merged_groups import assume_merged
from terascope.physical.split.host import CAPTURE_FILTER, COMPILED_HOST, PLAIN_DECODER, Host
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.pipeline import Bindings, compile_set
from terascope.plan.rel import Aggregate, Project
from terascope.plan.show import show_rel

HOSTNAMES = """\
QUERY hostnames:
SELECT tb*60 AS t, destIP, destPort,
    str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\\\.: ]*') AS hostheader
FROM (SELECT time/60 AS tb, * FROM TCP)
WHERE ipversion = 4 AND offset = 0 AND protocol = 6 AND str_match_start[TCP_data, 'GET'];
"""
HOSTS = """\
QUERY hosts:
SELECT tb, host, count(*) AS requests FROM TCP
WHERE ipversion = 4 AND offset = 0 AND protocol = 6 AND str_match_start[TCP_data, 'GET']
GROUP BY time/60 AS tb, str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\\\.: ]*') AS host;
"""
REGEX = "str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\\\.: ]*')"
FLOWS = "PROTOCOL F (time UINT increasing clock(s), ip IP, port UINT, len UINT, s STRING, f FLOAT);"


def split_of(
    text: str, host: Host = COMPILED_HOST, costs: Costs | None = None, **parameters: str
) -> SplitPlan:
    functions = Functions.builtin().extended([tripled, product])
    bindings = Bindings(functions=functions, parameters=parameters)
    compiled = compile_set(Source(text, "set.gsql"), bindings)
    return split_plan(compiled.optimized, host, costs or Costs())


def flows(text: str, host: Host = COMPILED_HOST, costs: Costs | None = None) -> SplitPlan:
    return split_of(f"{FLOWS}\n{text}", host, costs)


def shown(split: SplitPlan, name: str) -> list[str]:
    return [line.strip() for line in show_rel(split.plan[name].rel).splitlines()]


def names(split: SplitPlan) -> list[str]:
    return [low.name for low in split.low]


def kept_high(split: SplitPlan) -> list[tuple[str, str]]:
    return [(part.text, part.reason) for part in split.kept_high]


@scalar(takes=("INT",), returns="INT")
def tripled(x: int) -> int:
    return 3 * x


class Product:
    def zero(self) -> float:
        return 1.0

    def reduce(self, state: float, x: float) -> float:
        return state * x

    def merge(self, left: float, right: float) -> float:
        return left * right

    def finish(self, state: float) -> float:
        return state


product = aggregate(name="product", takes=("FLOAT",), returns="FLOAT")(Product)


# ---- the example of 3.4.1 ------------------------------------------------------------------------


def test_selection_of_http_hosts_leaves_the_extraction_above() -> None:
    split = split_of(HOSTNAMES)
    assert shown(split, "hostnames_low") == [
        "Project time DIV 60 * 60 AS t, destIP, destPort, TCP_data, #ts, #if, #pos",
        "Filter ipversion = 4 AND offset = 0 AND protocol = 6 AND str_match_start(TCP_data, 'GET')",
        "Scan TCP [time, ipversion, destIP, protocol, offset, destPort, TCP_data, #ts, #if, #pos]",
    ]
    assert shown(split, "hostnames") == [
        f"Project t, destIP, destPort, {REGEX} AS hostheader, #ts, #if, #pos",
        "Read hostnames_low",
    ]
    (low,) = split.low
    assert isinstance(low.rel, Project)
    assert split.readers(low.name) == ["hostnames"]
    assert kept_high(split) == [(REGEX, "costs 1000 ns, over the budget of 800 ns")]


def test_aggregation_by_http_host_ships_only_its_selection() -> None:
    split = split_of(HOSTS)
    assert shown(split, "hosts_low") == [
        "Project time, TCP_data",
        "Filter ipversion = 4 AND offset = 0 AND protocol = 6 AND str_match_start(TCP_data, 'GET')",
        "Scan TCP [time, ipversion, protocol, offset, TCP_data]",
    ]
    assert shown(split, "hosts") == [
        "Project tb, host, count(*) AS requests",
        f"Aggregate by time DIV 60 AS tb, {REGEX} AS host: count(*)",
        "Read hosts_low",
    ]
    assert isinstance(split.low[0].rel, Project)


def test_an_aggregation_with_safe_keys_goes_low() -> None:
    split = split_of(
        HOSTS.replace("str_extract_regex(TCP_data, ", "non_temporal(destIP) AS host; --")
    )
    assert isinstance(split.low[0].rel, Aggregate)
    assert shown(split, "hosts") == [
        "Project tb, host, count(*) AS requests",
        "Aggregate by tb, host: sum(cnt) AS count(*)",
        "Read hosts_low",
    ]


def test_raising_one_cost_moves_just_that_predicate() -> None:
    before, after = (
        split_of(HOSTNAMES),
        split_of(HOSTNAMES, costs=Costs({"str_match_start": 801})),
    )
    assert "str_match_start" in shown(before, "hostnames_low")[1]
    assert (
        shown(after, "hostnames_low")[1] == "Filter ipversion = 4 AND offset = 0 AND protocol = 6"
    )
    assert shown(after, "hostnames")[1] == "Filter str_match_start(TCP_data, 'GET')"
    start = ("str_match_start(TCP_data, 'GET')", "costs 801 ns, over the budget of 800 ns")
    assert kept_high(after) == [start, *kept_high(before)]


def test_lowering_the_cost_of_the_regex_is_not_enough_where_the_kernels_do_not_know_it() -> None:
    split = split_of(HOSTNAMES, costs=Costs({"str_extract_regex": 10}))
    assert [text for text, _ in kept_high(split)] == [REGEX]
    assert "kernels" in kept_high(split)[0][1]


def test_a_host_with_regular_expressions_takes_all_of_it() -> None:
    """The dissertation's specialised hardware."""
    card = Host("regex_card")
    cheap = Costs({"str_extract_regex": 10})
    assert kept_high(split_of(HOSTNAMES, card, cheap)) == []
    split = split_of(HOSTS, card, cheap)
    assert kept_high(split) == []
    assert isinstance(split.low[0].rel, Aggregate)


def test_changing_the_profile_moves_what_the_host_cannot_do() -> None:
    split = split_of(HOSTNAMES, CAPTURE_FILTER)
    assert shown(split, "hostnames_low") == [
        "Project time, destIP, destPort, TCP_data, #ts, #if, #pos",
        "Filter ipversion = 4 AND offset = 0 AND protocol = 6",
        "Scan TCP [time, ipversion, destIP, protocol, offset, destPort, TCP_data, #ts, #if, #pos]",
    ]
    assert kept_high(split)[0] == (
        "str_match_start(TCP_data, 'GET')",
        "host capture_filter does not know str_match_start",
    )
    plain = split_of(HOSTNAMES, PLAIN_DECODER)
    assert not any(line.startswith("Filter") for line in shown(plain, "hostnames_low"))
    assert ("ipversion = 4", "host plain_decoder evaluates no predicates") in kept_high(plain)


def test_the_budget_decides() -> None:
    text = (
        "QUERY q: SELECT time, len*len*len AS x FROM F WHERE (port + len) * 7 < 100 AND port = 80;"
    )
    assert kept_high(flows(text, costs=Costs(budget_ns=6))) == []
    assert kept_high(flows(text, costs=Costs(budget_ns=5))) == [
        ("(port + len) * 7 < 100", "costs 6 ns, over the budget of 5 ns")
    ]


# ---- selections ----------------------------------------------------------------------------------


def test_what_a_condition_above_may_guard_is_computed_behind_it() -> None:
    costs = Costs({"str_match_start": 1000})
    split = flows(
        "QUERY q: SELECT time, len*len AS x FROM F WHERE str_match_start(s, 'a');", costs=costs
    )
    assert shown(split, "q_low")[0] == "Project time, len, #ts, #if, #pos, s"
    assert shown(split, "q")[0] == "Project time, len * len AS x, #ts, #if, #pos"


def test_users_functions_stay_above() -> None:
    split = flows("QUERY q: SELECT time FROM F WHERE tripled(len) > 9 AND port = 80;")
    assert shown(split, "q_low")[1] == "Filter port = 80"
    assert kept_high(split) == [("tripled(len) > 9", "tripled is a user's Python function")]


def test_same_selections_are_one_stream_with_all_their_columns() -> None:
    split = flows(
        "QUERY a: SELECT time, len FROM F WHERE port = 80 AND len > 9;"
        "QUERY b: SELECT time, ip, len + 1 AS more FROM F WHERE len > 9 AND port = 80;"
        "QUERY c: SELECT time, ip FROM F WHERE port = 443;"
    )
    assert names(split) == ["a_low", "c_low"]
    assert shown(split, "a_low")[0] == "Project time, len, #ts, #if, #pos, ip, len + 1 AS more"
    assert split.readers(split.low[0].name) == ["a", "b"]


def test_both_sides_of_a_join_read_low_level_streams() -> None:
    split = flows(
        "QUERY q: SELECT a.time, b.len FROM F a, F b "
        "WHERE a.time = b.time AND a.ip = b.ip AND a.port = 80 AND b.port = 443;"
        "QUERY same: SELECT a.time, b.len FROM F a, F b WHERE a.time = b.time AND a.ip = b.ip;"
    )
    assert names(split) == ["q_low", "q_low2", "same_low"]
    assert [split.readers(low.name) for low in split.low] == [["q"], ["q"], ["same"]]


def test_names_never_collide() -> None:
    split = flows(
        "QUERY q_low: SELECT time, len FROM F WHERE port = 1;"
        "QUERY q: SELECT time, len FROM F WHERE port = 2;"
    )
    assert names(split) == ["q_low_low", "q_low2"]


def test_parameters_become_constants_next_to_the_source() -> None:
    split = split_of(f"{FLOWS} QUERY q: SELECT time FROM F WHERE port = $p AND len = 1;", p="53")
    assert shown(split, "q_low")[1] == "Filter port = 53 AND len = 1"


# ---- named selections are looked through ---------------------------------------------------------

WEB = "SELECT time, ip, len AS size FROM F WHERE port = 80"


def test_an_aggregation_over_a_named_selection_goes_low_and_the_selection_vanishes() -> None:
    split = flows(
        f"DEFINE {{ query_name 'web'; visibility 'internal'; }} {WEB};"
        "QUERY q: SELECT tb, ip, sum(size) AS bytes FROM web WHERE size > 9 "
        "GROUP BY time/60 AS tb, ip;"
    )
    assert [s.name for s in split.plan] == ["q_low", "q"]
    assert shown(split, "q_low") == [
        "Aggregate by time DIV 60 AS tb, ip: sum(len) AS sum_len",
        "Filter port = 80 AND len > 9",
        "Scan F [time, ip, port, len]",
    ]


def test_a_selection_that_is_delivered_is_read_not_repeated() -> None:
    split = flows(f"QUERY web: {WEB}; QUERY large: SELECT time, size FROM web WHERE size > 9;")
    assert names(split) == ["web_low"]
    assert shown(split, "large")[-1] == "Read web"


def test_a_selection_with_an_expensive_column_is_computed_once() -> None:
    web = "SELECT time, ip, str_regex_match(s, 'a+') AS odd FROM F WHERE port = 80"
    split = flows(
        f"DEFINE {{ query_name 'web'; visibility 'internal'; }} {web};"
        "QUERY a: SELECT time, ip FROM web WHERE odd;"
        "QUERY b: SELECT tb, odd, count(*) AS n FROM web GROUP BY time/60 AS tb, odd;"
    )
    assert names(split) == ["web_low"]
    assert shown(split, "b")[-1] == "Read web"


# ---- aggregations --------------------------------------------------------------------------------


def test_queries_with_the_same_keys_share_one_stream() -> None:
    split = flows(
        "QUERY a: SELECT tb, ip, count(*) AS n, sum(len) AS l FROM F GROUP BY time/60 AS tb, ip;"
        "QUERY b: SELECT m, max(len) AS top, sum(len) AS l FROM F GROUP BY ip, time/60 AS m;"
        "QUERY c: SELECT tb, count(*) AS n FROM F GROUP BY time/60 AS tb;"
    )
    assert names(split) == ["a_low", "c_low"]
    assert shown(split, "a_low")[0] == (
        "Aggregate by time DIV 60 AS tb, ip: count(*) AS cnt, sum(len) AS sum_len, "
        "max(len) AS max_len"
    )
    assert split.readers(split.low[0].name) == ["a", "b"]
    assert (
        shown(split, "b")[1]
        == "Aggregate by ip, tb AS m: max(max_len) AS max(len), sum(sum_len) AS sum(len)"
    )


def test_a_stream_takes_no_more_sub_aggregates_than_a_table_has_slots() -> None:
    queries = "".join(
        f"QUERY q{i}: SELECT tb, sum(len + {i}) AS x FROM F GROUP BY time/60 AS tb;"
        for i in range(3)
    )
    assert names(flows(queries, replace(COMPILED_HOST, most_slots=2))) == ["q0_low", "q2_low"]


def test_average_is_a_sum_and_a_count() -> None:
    split = flows(
        "QUERY q: SELECT tb, avg(len) AS x, count(len) AS n FROM F GROUP BY time/60 AS tb;"
    )
    assert "sum(len) AS sum_len, count(len) AS count_len" in shown(split, "q_low")[0]
    assert shown(split, "q")[0] == "Project tb, sum_len / count_len AS x, count_len AS n"


def test_average_of_64_bit_values_is_summed_in_halves() -> None:
    split = split_of("QUERY q: SELECT tb, avg(timestamp) AS x FROM TCP GROUP BY time/60 AS tb;")
    low = shown(split, "q_low")[0]
    assert "sum(timestamp >> 32)" in low
    assert "sum(timestamp & 4294967295)" in low


def test_different_values_become_keys() -> None:
    split = flows(
        "QUERY q: SELECT tb, count(DISTINCT ip) AS hosts, sum(len) AS l FROM F "
        "GROUP BY time/60 AS tb;"
    )
    assert shown(split, "q_low")[0] == "Aggregate by time DIV 60 AS tb, ip: sum(len) AS sum_len"
    assert "count(DISTINCT ip)" in shown(split, "q")[1]


def test_grouping_sets_stay_above_the_finest_groups() -> None:
    split = flows(
        "QUERY q: SELECT tb, ip, port, count(*) AS n FROM F GROUP BY time/60 AS tb, CUBE(ip, port);"
    )
    assert shown(split, "q_low")[0] == "Aggregate by time DIV 60 AS tb, ip, port: count(*) AS cnt"
    assert "sets (tb, ip, port), (tb, ip), (tb, port), (tb)" in shown(split, "q")[1]


def test_select_distinct_goes_low() -> None:
    split = flows("QUERY q: SELECT DISTINCT time/60 AS tb, ip FROM F;")
    assert shown(split, "q_low")[0] == "Aggregate by time DIV 60 AS tb, ip: distinct"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("median(tripled(len))", "tripled is a user's Python function"),
        ("sum(tripled(len))", "tripled is a user's Python function"),
    ],
)
def test_an_aggregate_that_does_not_split_stays_above_with_its_groups(
    call: str, reason: str
) -> None:
    split = flows(
        f"QUERY q: SELECT tb, ip, {call} AS x, count(*) AS n FROM F WHERE port = 80 "
        "GROUP BY time/60 AS tb, ip;"
    )
    assert isinstance(split.low[0].rel, Project)
    assert shown(split, "q_low")[1] == "Filter port = 80"
    assert [r for _, r in kept_high(split)] == [reason]


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("median(len)", "state[values(integer)](len)"),
        ("stddev(len)", "state[moments(integer)](len)"),
        ("product(f)", "state[objects of product(FLOAT)](f)"),
        ("min(s)", "state[min(text)](s)"),
        ("max(ip)", "state[max(bytes)](ip)"),
        ("approx_percentile(len, 99)", "state[quantile(0.01)](len)"),
    ],
)
def test_states_are_kept_next_to_the_source(call: str, state: str) -> None:
    split = flows(
        f"QUERY q: SELECT tb, ip, {call} AS x, count(*) AS n FROM F WHERE port = 80 "
        "GROUP BY time/60 AS tb, ip;"
    )
    assert isinstance(split.low[0].rel, Aggregate)
    assert state in shown(split, "q_low")[0]
    assert kept_high(split) == []


def test_calls_with_the_same_state_share_it() -> None:
    split = flows(
        "QUERY q: SELECT tb, median(len) AS m, percentile(len, 9) AS p, stddev(len) AS d, "
        "variance(len) AS v FROM F GROUP BY time/60 AS tb;"
    )
    low = split.low[0].rel
    assert isinstance(low, Aggregate)
    assert [name for name, _ in low.aggs] == ["values_len", "moments_len"]


def test_floats_are_summed_in_states_beside_others() -> None:
    split = flows(
        "QUERY q: SELECT tb, sum(f) AS s, median(len) AS m FROM F GROUP BY time/60 AS tb;"
    )
    assert "state[sum(float)](f)" in shown(split, "q_low")[0]


def test_two_things_are_counted_apart_in_sets() -> None:
    split = flows(
        "QUERY q: SELECT tb, count(DISTINCT ip) AS a, count(DISTINCT port) AS b, count(ip) AS n "
        "FROM F GROUP BY time/60 AS tb;"
    )
    low = shown(split, "q_low")[0]
    assert "state[different values(bytes)](ip)" in low
    assert "state[different values(integer)](port)" in low
    assert kept_high(split) == []


def test_keys_that_follow_from_others_are_computed_above() -> None:
    split = flows(
        "QUERY a: SELECT t, net, ip, count(*) AS n FROM F "
        "GROUP BY time/60*60 AS t, prefix(ip, 24) AS net, ip;"
        "QUERY b: SELECT tb, ip, odd, sum(len) AS l FROM F "
        "GROUP BY time/60 AS tb, ip, str_regex_match(CAST(ip AS STRING), '7$') AS odd;"
    )
    assert names(split) == ["a_low"]
    assert shown(split, "a_low")[0] == (
        "Aggregate by time DIV 60 AS t_key, ip: count(*) AS cnt, sum(len) AS sum_len"
    )
    assert shown(split, "a")[1] == (
        "Aggregate by t_key * 60 AS t, prefix(ip, 24) AS net, ip: sum(cnt) AS count(*)"
    )
    assert kept_high(split) == []


def test_windows_that_do_not_overlap_are_keys() -> None:
    split = flows(
        "QUERY a: SELECT ip, count(*) AS n FROM F GROUP BY ip EVERY 1 minute;"
        "QUERY b: SELECT tb, ip, sum(len) AS l FROM F WHERE NOT time IS NULL "
        "GROUP BY time/60 AS tb, ip;"
    )
    assert [type(low.rel) for low in split.low] == [Aggregate]
    assert shown(split, "a_low")[0] == (
        "Aggregate by ip, time DIV 60 AS wstart_key: count(*) AS cnt, sum(len) AS sum_len"
    )
    assert shown(split, "a")[1] == (
        "Aggregate by ip, wstart_key * 60 AS wstart, wstart_key * 60 + 60 AS wend: "
        "sum(cnt) AS count(*)"
    )
    assert "Aggregate" not in show_rel(assume_merged(split.plan["a"].rel, split.low_keys))


def test_windows_stay_above_where_running_groups_ask_how_far_time_is() -> None:
    windowed = "QUERY a: SELECT ip, count(*) AS n FROM F GROUP BY ip EVERY 1 minute;"
    running = (
        "QUERY b: SELECT tb, sum(n) AS n FROM a GROUP BY wend/300 AS tb CLOSING_WHEN count(*) = 0;"
    )
    assert isinstance(flows(windowed).low[0].rel, Aggregate)
    assert isinstance(flows(windowed + running).low[0].rel, Project)


def test_running_groups_are_made_of_the_groups_of_epochs() -> None:
    split = flows(
        "QUERY q: SELECT tb, ip, count(*) AS n, moving_avg(len, 2) AS m FROM F WHERE port = 80 "
        "GROUP BY time/60 AS tb, ip CLOSING_WHEN count(*) = 0;"
    )
    low, below = shown(split, "q_low")[:2]
    subs = "count(*) AS cnt, sum(len) AS sum_len, count(len) AS count_len"
    assert low == f"Aggregate by time DIV 60 AS tb, ip: {subs}"
    assert below == "Filter port = 80"
    assert "closing coalesce(cnt, 0) = 0" in shown(split, "q")[1]


def test_running_groups_over_unsafe_arguments_ship_their_selection() -> None:
    split = flows(
        "QUERY q: SELECT tb, ip, sum(tripled(len)) AS n FROM F WHERE port = 80 "
        "GROUP BY time/60 AS tb, ip CLOSING_WHEN count(*) = 0;"
    )
    assert isinstance(split.low[0].rel, Project)
    assert shown(split, "q_low")[1] == "Filter port = 80"
