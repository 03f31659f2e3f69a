"""What a partitioning costs: the data that one node receives over the network (P2 4.2.1).

In: the nodes of a query set with their selectivities and tuple sizes, the rates of the raw streams,
and the nodes that a partitioning lets the partitions finish. Out: the cost of every node, of the
whole plan and of each query, in bytes per second of data.

    output_rate(Q) = input_rate(Q) / in_tuple_size(Q) * selectivity(Q) * out_tuple_size(Q)

    cost(Q) = 0                 it processes local data only
              input_rate(Q)     it is incompatible with the partitioning
              output_rate(Q)    it is compatible, and its rows are sent

The cost of a plan is the largest cost of a node. Data are local for a node above central nodes, and
for one whose readers are all in the partitions and that nobody else asks for. The dissertation's
copy of the formula lacks the division by the size of the input tuples; without it a rate of bytes
is multiplied by a size, and wide inputs count twice.

A rate per second and a rate per epoch order the partitionings alike, if all queries have the same
epochs. They may have different ones here, so rates are per second.

The formula charges an incompatible aggregation with its whole input. Terascope sends partial groups
for one that it can split (P2 5.2.2): at most all groups from every partition. This bound can be had
beside the cost (`into`); it decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Rate:
    """The tuples of a stream."""

    tuples: float
    """Per second."""
    tuple_bytes: float

    @property
    def bytes(self) -> float:
        """Per second."""
        return self.tuples * self.tuple_bytes


@dataclass(frozen=True)
class QueryNode:
    """A basic query, as the cost model sees it."""

    name: str
    query: str
    """The query of the set that it belongs to."""
    inputs: tuple[str, ...]
    """The nodes and raw streams that it reads."""
    selectivity: float
    """Output tuples for each input tuple."""
    tuple_bytes: float
    """The size of an output tuple."""
    delivered: bool = True
    """Whether its rows are sent even if no central node reads them."""
    groups: float | None = None
    """For an aggregation: groups for each input tuple, before any condition on groups."""
    group_bytes: float = 0.0
    """The size of a group."""


@dataclass(frozen=True, order=True)
class PlanCost:
    """The cost of a plan under a partitioning; the smaller one is better."""

    largest: float
    """The most that one node receives, or the weighted sum over the queries."""
    total: float
    """The sum over all nodes: it decides between plans with the same largest node."""


@dataclass(frozen=True)
class CostModel:
    """The nodes of a query set, each behind those it reads, and the rates of its raw streams."""

    raw: Mapping[str, Rate]
    nodes: Sequence[QueryNode]
    weights: Mapping[str, float] | None = None
    """The frequencies of queries over stored data (dissertation 7.2(6)). The cost of a plan is then
    their weighted sum; a query that is not among them counts once."""

    @cached_property
    def rates(self) -> Mapping[str, Rate]:
        """The output of every node and raw stream."""
        found = dict(self.raw)
        for node in self.nodes:
            tuples = sum(found[name].tuples for name in node.inputs)
            size = self._in_tuple_size(node, found, tuples)
            output = self._input_rate(node, found) / size * node.selectivity if size else 0.0
            found[node.name] = Rate(output, node.tuple_bytes)
        return found

    def _input_rate(self, node: QueryNode, rates: Mapping[str, Rate]) -> float:
        return sum(rates[name].bytes for name in node.inputs)

    def _in_tuple_size(self, node: QueryNode, rates: Mapping[str, Rate], tuples: float) -> float:
        """The mean over its inputs."""
        return self._input_rate(node, rates) / tuples if tuples else 0.0

    @cached_property
    def _by_name(self) -> Mapping[str, QueryNode]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The queries whose rows are delivered."""
        return tuple(node.name for node in self.nodes if node.delivered)

    def input_rate(self, name: str) -> float:
        """Bytes per second that a node would receive with nothing in partitions."""
        return self._input_rate(self._by_name[name], self.rates)

    def output_rate(self, name: str) -> float:
        return self.rates[name].bytes

    def node_costs(self, kept: Collection[str]) -> dict[str, float]:
        """The cost of every node. `kept`: the nodes that each partition finishes by itself."""
        return self._costs(self.nodes, kept, None)

    def _costs(
        self,
        nodes: Iterable[QueryNode],
        kept: Collection[str],
        only: str | None,
        into: int | None = None,
    ) -> dict[str, float]:
        """The costs of nodes. `only`: the one whose rows are delivered, if not all are. `into`: the
        number of partitions that send partial groups.
        """
        rates = self.rates
        arrived: set[str] = set()
        costs: dict[str, float] = {}
        for node in nodes:
            cost = 0.0
            if node.name in kept:
                if node.name == only or (only is None and node.delivered):
                    cost = rates[node.name].bytes
            else:
                for below in node.inputs:
                    if below in self.raw:
                        cost += self._sent(node, rates[below], into)
                    elif below in kept and below not in arrived:
                        cost += rates[below].bytes
                        if only is not None:  # the whole query is one reader
                            arrived.add(below)
            costs[node.name] = cost
        return costs

    def _sent(self, node: QueryNode, raw: Rate, into: int | None) -> float:
        """The bytes per second of a raw stream that a central node receives."""
        if into is None or node.groups is None:
            return raw.bytes
        partial = raw.tuples * min(1.0, into * node.groups) * node.group_bytes
        return min(raw.bytes, partial)

    def plan_cost(self, kept: Collection[str]) -> PlanCost:
        """The cost of the whole plan."""
        costs = self.node_costs(kept)
        total = sum(costs.values())
        if self.weights is None:
            return PlanCost(max(costs.values(), default=0.0), total)
        weighted = sum(
            self.weights.get(name, 1.0) * self.query_cost(name, kept) for name in self.queries
        )
        return PlanCost(weighted, total)

    def query_cost(self, query: str, kept: Collection[str], into: int | None = None) -> float:
        """The bytes per second that are moved for one query alone; with `into`, at most, where so
        many partitions send partial groups instead of tuples.
        """
        return sum(self._costs(self._below[query], kept, query, into).values())

    @cached_property
    def _below(self) -> Mapping[str, tuple[QueryNode, ...]]:
        """The nodes that each query is computed by, in order."""
        needed: dict[str, frozenset[str]] = {}
        for node in self.nodes:
            below = (needed.get(name, frozenset()) for name in node.inputs)
            needed[node.name] = frozenset((node.name,)).union(*below)
        places = {node.name: place for place, node in enumerate(self.nodes)}
        return {
            name: tuple(self._by_name[n] for n in sorted(needed[name], key=places.__getitem__))
            for name in self.queries
        }
