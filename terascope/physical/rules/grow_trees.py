"""Aggregate trees of a job: intermediate aggregates that serve several queries (paper 4).

In: a read with its low-level plan, and statistics of its tuples. Out: the plan with intermediate
nodes: the aggregations of the same tuples and epochs as a tree, with the memory of each node. The
slice is a key of every node, so that statistics are those of a slice. A query may be computed from
another query that has all of its keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from terascope.config import Config
from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.tables.slots import MOST_SLOTS
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead, TreeDecision
from terascope.physical.low_plan import (
    AdmissionPredicate,
    LowAggregate,
    LowOutput,
    LowPlan,
    Slot,
    TableChoice,
    same_tuples,
)
from terascope.physical.settings import TREE_EPS, TREE_TABLE, tree_accounting, tree_budget
from terascope.physical.split.drafts import Names
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.sharing.cost import EXCHANGE, Accounting, evaluate
from terascope.sharing.curves import Curves
from terascope.sharing.model import Node, Query, RememberedStatistics, Statistics, Tree, flat_tree
from terascope.sharing.plan import Planner
from terascope.sharing.timed import plan_for_time

LEAST_QUERIES: Final = 3
"""The fewest queries of a tree: fewer are not worth a sample."""
LEAST_ADMITTED: Final = 0.5
"""The share of a family's tuples that a query must take to join with an admission predicate."""
LEAST_GAIN: Final = 0.1
"""The share of the cost of the flat plan that a tree must save."""


def grow_trees(draft: JobDraft) -> JobDraft:
    """Before: a table of tuples for each aggregation      After: aggregate trees. The trees of a
    stream are chosen while it runs.
    """
    if not draft.is_native or draft.is_live:
        return draft
    before = {read.name: read for read in draft.unshared}
    counted = Counter(query.name for read in draft.reads for query in read.queries)
    grown = [with_trees(read, before[read.name], draft, counted) for read in draft.reads]
    reads_ = tuple(read for read, _ in grown)
    decisions = tuple(one for _, made in grown for one in made)
    return replace(draft, reads=reads_, low=widened(draft.low, reads_), decisions=decisions)


def with_trees(
    read: SourceRead, sampled: SourceRead, draft: JobDraft, counted: Mapping[str, int]
) -> tuple[SourceRead, list[TreeDecision]]:
    """A read whose aggregations form trees where that saves something. `sampled`: the read before
    aggregations shared tables, of which there is a sample. `counted`: the reads of each
    aggregation; the tables of an aggregation in several reads must be alike.
    """
    low, decisions, config = read.low, list[TreeDecision](), draft.config
    if low is None:
        return read, []
    candidates = [q for q in growing(low) if counted[q.name] == 1]
    as_sampled = {query.name: query for query in sampled.aggregations}

    def shares(queries: Sequence[LowAggregate]) -> Mapping[str, float]:
        return draft.measured.shares(sampled, queries)

    def statistics_of(queries: Sequence[LowAggregate]) -> Statistics | None:
        return draft.measured.statistics(sampled, *(as_sampled[q.name] for q in queries))

    trees = decide_trees(read.name, candidates, shares, statistics_of, config)
    for members, found, statistics in trees:
        graft = partial(Grafting, low, members, leaves=config.tree_leaves, groups=statistics.groups)
        made = graft(tree=found.tree).plan() if found.gain >= LEAST_GAIN else None
        decisions.append(replace(found, used=made is not None))
        if made is None and found.bounded_flat is not None:  # its tables, too, have that memory
            made = graft(tree=found.bounded_flat).plan()
        low = made or low
    return replace(read, low=low), decisions


def decide_trees(
    read: str,
    candidates: Sequence[LowAggregate],
    shares: Callable[[Sequence[LowAggregate]], Mapping[str, float]],
    statistics_of: Callable[[Sequence[LowAggregate]], Statistics | None],
    config: Config,
) -> Iterator[tuple[list[LowAggregate], TreeDecision, Statistics]]:
    """The best tree of every family of aggregations that is large enough, with the statistics
    behind the choice. Batches and streams both use this function. `shares`: by name, the share of
    all tuples of some aggregations that each of them takes. `statistics_of`: the statistics of the
    tuples that any of some aggregations takes; None: unknown.
    """
    largest = max(map(len, families(candidates).values()), default=0)
    if config.share_trees == "never" or largest < LEAST_QUERIES:
        return
    for members in families(candidates, shares(candidates)).values():
        statistics = statistics_of(members) if len(members) >= LEAST_QUERIES else None
        if statistics is not None and statistics.tuples:
            yield members, decided(read, members, statistics, config), statistics


def decided(
    read: str, members: Sequence[LowAggregate], statistics: Statistics, config: Config
) -> TreeDecision:
    queries = tuple(Query(attributes_of(q), len(q.slots)) for q in members)
    names = tuple(q.name for q in members)
    if config.share_trees == "time":
        timed = plan_for_time(queries, statistics)
        found = TreeDecision(
            read, names, timed.tree, "ns", timed.nanoseconds, timed.flat_nanoseconds, timed.seconds
        )
        return accounted(found, queries, Curves(statistics, "uniform"))
    planner = Planner(queries, statistics, TREE_TABLE, tree_accounting(config), TREE_EPS)
    planned = planner.plan(tree_budget(config))
    found = TreeDecision(
        read, names, planned.tree, "hash operations", planned.cost.total, planned.flat_cost.total,
        planned.seconds,
    )  # fmt: skip
    found = accounted(found, queries, Curves(RememberedStatistics(statistics), TREE_TABLE))
    if config.tree_leaves == "bounded":
        # The flat plan within the same memory, not with all it can use.
        found = replace(found, flat_exchanged=planned.flat_cost.total, bounded_flat=planned.flat)
    return found


def accounted(one: TreeDecision, queries: tuple[Query, ...], curves: Curves) -> TreeDecision:
    """The costs of a tree and of the flat plan in both accountings, and their memory."""
    paper = Accounting(curves.model)
    own = Accounting(curves.model, EXCHANGE, bounded_leaves=True)
    flat = flat_tree(queries)
    wanted = flat.with_buckets(tuple(curves.of(node.attributes).most for node in flat.nodes))
    cost = evaluate(one.tree, curves, own)
    nodes = one.tree.nodes
    return replace(
        one,
        operations=evaluate(one.tree, curves, paper).total,
        flat_operations=evaluate(flat, curves, paper).total,
        exchanged=cost.total,
        flat_exchanged=evaluate(wanted, curves, own).total,
        partials=sum(out for node, out in zip(nodes, cost.out, strict=True) if node.is_query),
        memory_bytes=sum(n.buckets * own.bytes_of(n) for n in nodes if not n.is_query),
        query_bytes=sum(n.buckets * own.bytes_of(n) for n in nodes if n.is_query),
    )


def growing(low: LowPlan) -> list[LowAggregate]:
    """The aggregations that could be nodes of a tree: those with epochs and keys, whose groups are
    words.
    """
    timed = [q for q in low.aggregations if q.epoch is not None and q.plain_keys]
    return [q for q in timed if not q.shape.states]


def families(
    queries: Sequence[LowAggregate], shares: Mapping[str, float] | None = None
) -> dict[object, list[LowAggregate]]:
    """Aggregations that could form one tree: of the same tuples, in the same epochs. An aggregation
    whose condition most tuples meet joins with an admission predicate. `shares`: the share of the
    tuples that each takes; None: all of them join.
    """
    found: dict[object, list[LowAggregate]] = {}
    for query in queries:
        plain = not query.anyof and all(slot.where is None for slot in query.slots)
        mixes = plain and (shares is None or shares.get(query.name, 0.0) >= LEAST_ADMITTED)
        # A key must not overflow for tuples that only other queries take.
        mixes = mixes and not any(can_overflow(key) for key in query.plain_keys)
        tuples = frozenset(query.signature), frozenset(query.rest), frozenset(query.anyof)
        same = query.interfaces, query.epoch_expr, query.epoch_in_key, None if mixes else tuples
        found.setdefault(same, []).append(query)
    return found


def attributes_of(query: LowAggregate) -> frozenset[str]:
    return frozenset(show_expr(expr) for expr in query.plain_keys)


@dataclass(frozen=True)
class Grafting:
    """Puts a tree into a low-level plan."""

    low: LowPlan
    members: Sequence[LowAggregate]
    tree: Tree
    leaves: str
    """The setting tree_leaves: bounded or free."""
    groups: Callable[[frozenset[str]], float]

    def plan(self) -> LowPlan | None:
        """The plan with the tree; None when a node would need too many slots."""
        names = Names({q.name for q in (*self.low.queries, *self.low.inner)})
        nodes, below = self.tree.nodes, self.below()
        inner: list[LowAggregate] = []
        changed: dict[str, LowAggregate] = {}
        called: list[str] = []
        for place, node in enumerate(nodes):
            parent = None if node.parent is None else called[node.parent]
            own = [q for q in below[place] if node.is_query and attributes_of(q) == node.attributes]
            if own and (len(own) == len(below[place]) or same_tuples(below[place])):
                # The children read the first of them.
                called.append(own[0].name)
                first = own[0].slots
                more = [s for query in below[place] if query not in own for s in query.slots]
                wide = (*first, *added_slots(first, more, Names({slot.name for slot in first})))
                table = self.table(node, len(own))
                changed[own[0].name] = replace(own[0], slots=wide, parent=parent, table=table)
                for query in own[1:]:
                    changed[query.name] = replace(query, parent=parent, table=table)
                continue
            called.append(names.take(f"tree_{place}"))
            table = self.table(node, 1 + len(own))
            inner.append(self.inner_node(called[place], node, below[place], parent, table))
            for query in own:
                changed[query.name] = replace(query, parent=called[place], table=table)
        made = (*changed.values(), *inner)
        if any(len(query.slots) > MOST_SLOTS for query in made):
            return None
        queries = tuple(changed.get(q.name, q) for q in self.low.queries)
        before = (changed.get(q.name, q) for q in self.low.inner)
        return replace(self.low, queries=queries, inner=(*before, *inner))

    def below(self) -> list[list[LowAggregate]]:
        """For each node the queries that are computed from it, itself included."""
        nodes = self.tree.nodes
        found: list[list[LowAggregate]] = [[] for _ in nodes]
        by_keys: dict[frozenset[str], list[LowAggregate]] = {}
        for query in self.members:
            by_keys.setdefault(attributes_of(query), []).append(query)
        for place, node in enumerate(nodes):
            at: int | None = place if node.is_query else None
            own = by_keys.get(node.attributes, [])
            while at is not None:
                found[at] += own
                at = nodes[at].parent
        return found

    def table(self, node: Node, number: int) -> TableChoice:
        """The table of a node. A node may be several tables, which share its buckets."""
        table = self.members[0].table
        free = node.is_query and self.leaves == "free"
        if free or node.buckets >= self.groups(node.attributes):
            return table
        return replace(table, kind=TREE_TABLE, groups=max(1, int(node.buckets / number)))

    def inner_node(
        self,
        name: str,
        node: Node,
        below: Sequence[LowAggregate],
        parent: str | None,
        table: TableChoice,
    ) -> LowAggregate:
        """An intermediate table that only its children read."""
        first = self.members[0]
        assert first.epoch_expr is not None
        exprs: dict[str, Expr] = {show_expr(e): e for q in self.members for e in q.plain_keys}
        keys = [(f"k{i}", exprs[a]) for i, a in enumerate(sorted(node.attributes))]
        epoch = ("epoch", first.epoch_expr)
        entry = AdmissionPredicate.of(below)
        wanted = [slot for query in below for slot in entry.slots(query)]
        inner = replace(first, name=name, keys=(epoch, *keys), epoch=0, parent=parent, table=table)
        return entry.admitting(inner, added_slots((), wanted, Names()))


def added_slots(known: Sequence[Slot], wanted: Iterable[Slot], names: Names) -> tuple[Slot, ...]:
    """The slots that keep something new, each once."""
    kept = {slot.state for slot in known}
    found: list[Slot] = []
    for slot in wanted:
        if slot.state not in kept:
            kept.add(slot.state)
            found.append(replace(slot, name=names.take(slot.name)))
    return tuple(found)


def widened(outputs: Iterable[LowOutput], reads: Sequence[SourceRead]) -> tuple[LowOutput, ...]:
    """The streams with the slots of their tables: a parent also has the slots of its children."""
    slots = {q.name: q.slots for read in reads for q in read.aggregations}
    return tuple(
        output.with_slots(slots[output.name]) if output.groups and output.name in slots else output
        for output in outputs
    )
