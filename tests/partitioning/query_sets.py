"""Query sets of the papers, and searches over them with rates given by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from terascope.diagnostic import Source
from terascope.partitioning.basic_queries import BasicQuery, basic_queries
from terascope.partitioning.capability import SplitterCapability
from terascope.partitioning.compatible import OperatorSet, compatible_sets
from terascope.partitioning.cost import CostModel, QueryNode, Rate
from terascope.partitioning.search import Candidate, Search
from terascope.pipeline import compile_set
from terascope.plan.rel import Scan, walk

FLOW_PAIRS = """
QUERY flows: SELECT tb, srcIP, destIP, COUNT(*) AS cnt FROM TCP
GROUP BY time/60 AS tb, srcIP, destIP;
QUERY heavy_flows: SELECT tb, srcIP, max(cnt) AS max_cnt FROM flows GROUP BY tb, srcIP;
QUERY flow_pairs: SELECT S1.tb, S1.srcIP, S1.max_cnt AS now, S2.max_cnt AS before
FROM heavy_flows S1, heavy_flows S2 WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1;
"""
"""P2 3.2."""
FLOW_COUNT = """
QUERY tcp_flows: SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS n, SUM(len) AS bytes
FROM TCP GROUP BY time/60 AS tb, srcIP, destIP, srcPort, destPort;
QUERY flow_cnt: SELECT tb, srcIP, destIP, count(*) AS n FROM tcp_flows GROUP BY tb, srcIP, destIP;
"""
"""P2 4."""
SUBNETS_AND_DELAYS = """
QUERY subnets: SELECT tb, net, destIP, COUNT(*) AS n FROM TCP
GROUP BY time/60 AS tb, srcIP & 0xFFFFFFF0 AS net, destIP;
QUERY delays: SELECT S1.time, S1.srcIP, S1.destIP, S2.timestamp - S1.timestamp AS delay
FROM TCP S1, TCP S2 WHERE S1.time = S2.time AND S1.srcIP = S2.srcIP AND S1.destIP = S2.destIP
AND S1.srcPort = S2.srcPort AND S1.destPort = S2.destPort;
"""
"""P2 6.2."""

Outcome = tuple[float, float]
"""Selectivity and size of output tuples."""


def nodes_of(text: str) -> tuple[BasicQuery, ...]:
    return basic_queries(compile_set(Source(text, "set")).optimized)


def search_of(
    text: str,
    outcomes: Mapping[str, Outcome] | None = None,
    splitter: SplitterCapability | None = None,
    change: Callable[[OperatorSet], OperatorSet] = lambda one: one,
    weights: Mapping[str, float] | None = None,
) -> Search:
    """A search over 1000 tuples of 10 bytes a second; other nodes make one tuple of ten, of 10
    bytes.
    """
    nodes = nodes_of(text)
    operators = tuple(map(change, compatible_sets({node.name: node.rel for node in nodes})))
    raw = {name for node in nodes for name in node.inputs if name.startswith("<")}
    made = []
    for node in nodes:
        selectivity, size = (outcomes or {}).get(node.name, (0.1, 10.0))
        one = QueryNode(node.name, node.query, node.inputs, selectivity, size, node.delivered)
        made.append(one)
    model = CostModel(dict.fromkeys(raw, Rate(1000.0, 10.0)), made, weights)
    return Search(nodes, operators, model, splitter)


def best(search: Search) -> Candidate:
    return search.run().candidates[0]


def sets(candidate: Candidate) -> dict[str, set[str]]:
    return {source: set(texts) for source, texts in candidate.texts}


def central(one: OperatorSet, kind: str) -> OperatorSet:
    """The operator, compatible with nothing where it is of a kind."""
    return replace(one, entries=(), reason="forced") if one.operator == kind else one


def scans_of(text: str) -> list[Scan]:
    return [rel for node in nodes_of(text) for rel in walk(node.rel) if isinstance(rel, Scan)]
