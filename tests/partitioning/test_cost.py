"""The cost model of P2 4.2.1 against numbers computed by hand."""

from __future__ import annotations

import pytest

from terascope.partitioning.cost import CostModel, PlanCost, QueryNode, Rate
from tests.partitioning.query_sets import FLOW_PAIRS, nodes_of

RAW = "<eth0.TCP"
FLOWS = QueryNode("flows", "flows", (RAW,), 0.2, 20.0, groups=0.5, group_bytes=16.0)
HEAVY = QueryNode("heavy_flows", "heavy_flows", ("flows",), 0.5, 12.0)
PAIRS = QueryNode("flow_pairs", "flow_pairs", ("heavy_flows",), 0.25, 16.0)
MODEL = CostModel({RAW: Rate(1000.0, 40.0)}, (FLOWS, HEAVY, PAIRS))
ALL = {"flows", "heavy_flows", "flow_pairs"}


def test_output_rates_are_divided_by_the_size_of_the_input_tuples() -> None:
    assert MODEL.input_rate("flows") == 40_000.0
    assert MODEL.output_rate("flows") == 40_000.0 / 40.0 * 0.2 * 20.0 == 4000.0
    assert MODEL.input_rate("heavy_flows") == 4000.0
    assert MODEL.output_rate("heavy_flows") == 4000.0 / 20.0 * 0.5 * 12.0 == 1200.0
    assert MODEL.output_rate("flow_pairs") == 1200.0 / 12.0 * 0.25 * 16.0 == 400.0


@pytest.mark.parametrize(
    ("kept", "costs"),
    [
        (ALL, (4000.0, 1200.0, 400.0)),
        ({"flows"}, (4000.0, 4000.0, 0.0)),  # flow_pairs reads what is central already
        (set(), (40_000.0, 0.0, 0.0)),
    ],
)
def test_costs_of_nodes(kept: set[str], costs: tuple[float, ...]) -> None:
    assert tuple(MODEL.node_costs(kept).values()) == costs
    assert MODEL.plan_cost(kept) == PlanCost(max(costs), sum(costs))


def test_rows_that_nobody_asks_for_are_not_sent() -> None:
    inner = QueryNode("flows", "flows", (RAW,), 0.2, 20.0, delivered=False)
    model = CostModel(MODEL.raw, (inner, HEAVY))
    assert model.node_costs({"flows", "heavy_flows"}) == {"flows": 0.0, "heavy_flows": 1200.0}
    assert model.node_costs({"flows"}) == {"flows": 0.0, "heavy_flows": 4000.0}


def test_the_cost_of_one_query() -> None:
    assert MODEL.query_cost("flow_pairs", ALL) == 400.0
    assert MODEL.query_cost("flow_pairs", {"flows"}) == 4000.0
    assert MODEL.query_cost("flows", set()) == 40_000.0


def test_partial_groups_are_a_bound_and_decide_nothing() -> None:
    # 500 groups of 16 bytes a second from each of two partitions, or every tuple as a group
    assert MODEL.query_cost("flows", set(), into=1) == 500.0 * 16.0
    assert MODEL.query_cost("flows", set(), into=8) == 1000.0 * 16.0
    assert MODEL.plan_cost(set()).largest == 40_000.0


def test_weights_sum_what_queries_move() -> None:
    weighted = CostModel(MODEL.raw, MODEL.nodes, {"flow_pairs": 10.0, "flows": 0.0})
    assert weighted.plan_cost(ALL).largest == 10 * 400.0 + 1200.0
    assert weighted.plan_cost({"flows"}).largest == 10 * 4000.0 + 4000.0


def test_tuples_of_several_inputs_have_a_mean_size() -> None:
    join = QueryNode("join", "join", ("<a", "<b"), 0.5, 10.0)
    model = CostModel({"<a": Rate(100.0, 10.0), "<b": Rate(300.0, 20.0)}, (join,))
    assert model.input_rate("join") == 7000.0
    assert model.output_rate("join") == pytest.approx(400 * 0.5 * 10)


def test_a_source_without_tuples() -> None:
    model = CostModel({RAW: Rate(0.0, 0.0)}, (FLOWS, HEAVY, PAIRS))
    assert model.plan_cost(set()) == PlanCost(0.0, 0.0)


def test_basic_queries_have_one_operator_each() -> None:
    text = """
    QUERY top: SELECT tb, srcIP, MAX(d) AS m FROM (
      SELECT a.time AS t, a.srcIP AS srcIP, b.len AS d FROM TCP a, TCP b
      WHERE a.time = b.time AND a.srcIP = b.srcIP)
    GROUP BY t/60 AS tb, srcIP ORDER BY m DESC LIMIT 3;
    """
    found = nodes_of(text)
    assert [node.query for node in found].count("top") >= 2
    assert found[-1].name == "top"
    assert [node.delivered for node in found] == [False] * (len(found) - 1) + [True]
    assert all(node.inputs for node in found)
    assert [n.inputs for n in nodes_of(FLOW_PAIRS)] == [("<TCP.TCP",), ("flows",), ("heavy_flows",)]
