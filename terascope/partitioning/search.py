"""The search for the partitioning that a query set is computed most cheaply under (P2 4.2.2).

In: the basic queries of a set, the compatible set of each operator, and a cost model. Out: the
candidates, the best one first.

The paper starts from the compatible sets of the leaves and reconciles them, step by step, with
those of leaves and of immediate parents of the nodes that a candidate satisfies. What is reconciled
is remembered, so that no candidate is expanded twice. Since a partitioning set is compatible with
an operator when each of its expressions is, a candidate is held as a set of bits: one for each
value of a `Universe`, which has the values of all compatible sets and what pairs of them have in
common. To reconcile is then to intersect: hundreds of queries have few different candidates.

Different sources may get different sets. Sources below one join, or read together by one query, are
searched together, since such an operator needs the same function on all of them; they are also
searched each on its own, with that operator central.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from terascope.partitioning.basic_queries import BasicQuery, is_raw
from terascope.partitioning.capability import SplitterCapability
from terascope.partitioning.compatible import OperatorSet
from terascope.partitioning.cost import CostModel, PlanCost
from terascope.partitioning.lineage import KnownValue, common_entry, without_derivable
from terascope.partitioning.sets import PartitionSet, Placement

MOST_VALUES: Final = 256
"""Values of a universe; pairs beyond them are not looked at for what they have in common."""
MOST_CANDIDATES: Final = 5000
"""Candidates that are expanded."""

Sources: TypeAlias = tuple[str, ...]
Bits: TypeAlias = int


@dataclass(frozen=True)
class Candidate:
    """A partitioning of all sources, and what it does for the set."""

    placement: Placement
    kept: frozenset[str]
    """The nodes that each partition finishes."""
    cost: PlanCost

    @cached_property
    def texts(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple((source, one.texts) for source, one in sorted(self.placement.items()))

    @property
    def quality(self) -> tuple[float, ...]:
        """Cheaper first; then the finer set, which balances better."""
        fineness = sum(len(one.columns) for one in self.placement.values())
        expressions = sum(len(one.expressions) for one in self.placement.values())
        return (*rounded(self.cost), -fineness, -expressions)

    @property
    def rank(self) -> tuple[object, ...]:
        """By quality; then by text, so that the answer is always the same."""
        return (*self.quality, self.texts)


def rounded(cost: PlanCost) -> tuple[float, float]:
    """Costs that differ by the rounding of sums only are the same."""
    return float(f"{cost.largest:.9e}"), float(f"{cost.total:.9e}")


@dataclass(frozen=True)
class Option:
    """A partitioning of some of the sources."""

    placement: Placement
    kept: frozenset[str]
    """The nodes that nothing about these sources keeps from being finished in partitions."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search."""

    candidates: tuple[Candidate, ...]
    """The best first."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a node is compatible with no partitioning at all."""
    is_whole: bool = True
    """Whether every candidate was looked at."""


class Search:
    """A search over the sources of one query set."""

    def __init__(
        self,
        nodes: Sequence[BasicQuery],
        operators: Sequence[OperatorSet],
        model: CostModel,
        splitter: SplitterCapability | None = None,
    ) -> None:
        self.nodes = nodes
        self.model = model
        self.splitter = splitter or SplitterCapability()
        self._of: dict[str, list[OperatorSet]] = {node.name: [] for node in nodes}
        for one in operators:
            self._of[one.stream].append(one)
        self.sources = frozenset().union(*(one.sources for one in operators))
        self._remembered: dict[object, str] = {}

    # ---- compatibility

    def refusals(self, placement: Placement) -> dict[str, str]:
        """Why nodes are not finished in the partitions of a placement, by name; the others are."""
        found: dict[str, str] = {}
        for node in self.nodes:
            operators = self._of[node.name]
            why = next(filter(None, (self._refusal(one, placement) for one in operators)), "")
            central = next((name for name in node.inputs if name in found), "")
            if not why and central:
                why = f"it reads {central}, which is computed above"
            if not why and not any(one.sources for one in operators):
                why = "it reads no partitioned source"
            if why:
                found[node.name] = why
        return found

    def _refusal(self, one: OperatorSet, placement: Placement) -> str:
        own = tuple((s, placement[s]) for s in sorted(one.sources) if s in placement)
        key = (operator_key(one), own)
        if key not in self._remembered:
            self._remembered[key] = one.refusal(dict(own))
        return self._remembered[key]

    def kept(self, placement: Placement) -> frozenset[str]:
        """The nodes that each partition finishes under a placement."""
        refused = self.refusals(placement)
        return frozenset(node.name for node in self.nodes if node.name not in refused)

    def candidate(self, placement: Placement) -> Candidate:
        """A partitioning that is given, with its cost."""
        kept = self.kept(placement)
        return Candidate(placement, kept, self.model.plan_cost(kept))

    # ---- searching

    @cached_property
    def components(self) -> tuple[Sources, ...]:
        """The sources that have to be partitioned by the same function, as far as any have."""
        parts = {source: {source} for source in sorted(self.sources)}
        for operators in self._of.values():
            for one in operators:
                if one.candidates and len(one.sources) > 1:
                    union = set().union(*(parts[source] for source in one.sources))
                    parts |= dict.fromkeys(union, union)
        return tuple(dict.fromkeys(tuple(sorted(part)) for part in parts.values()))

    def run(self) -> SearchResult:
        """Search every component, and put the best sets of all together."""
        per_component: list[list[Option]] = []
        whole = True
        for component in self.components:
            some, complete = self._of_component(component)
            per_component.append(some)
            whole = whole and complete
        best = [some[0] for some in per_component]
        chosen: dict[object, Candidate] = {}
        for place, some in enumerate(per_component):
            for one in some:  # the others are as recommended
                made = self._combined([*best[:place], one, *best[place + 1 :]])
                chosen.setdefault(made.texts, made)
        candidates = tuple(sorted(chosen.values(), key=lambda one: one.rank))
        return SearchResult(candidates, self._hopeless(), whole)

    def _combined(self, options: Sequence[Option]) -> Candidate:
        """The candidate of one option for each of several groups of sources."""
        placement = {s: by for one in options for s, by in one.placement.items()}
        kept = self._reading.intersection(*(one.kept for one in options))
        return Candidate(placement, kept, self.model.plan_cost(kept))

    @cached_property
    def _reading(self) -> frozenset[str]:
        """The nodes above a source."""
        return frozenset(
            name for name, some in self._of.items() if any(one.sources for one in some)
        )

    def _hopeless(self) -> dict[str, str]:
        """Why nodes are compatible with no partitioning."""
        found: dict[str, str] = {}
        for node in self.nodes:
            for one in self._of[node.name]:
                if one.entries is not None and not one.candidates:
                    found.setdefault(node.name, one.reason or "its keys are all temporal")
            for name in node.inputs:
                if name in found:
                    found.setdefault(node.name, f"it reads {name}, which is computed above")
        return found

    def _of_component(self, component: Sources) -> tuple[list[Option], bool]:
        """The options for linked sources, the best first; the last resort is round robin."""
        found, whole = self._together(component)
        if len(component) > 1:
            apart: list[Option] = []
            for source in component:
                some, complete = self._together((source,))
                whole = whole and complete
                apart.append(self._ranked(some)[0])
            placement = {s: by for one in apart for s, by in one.placement.items()}
            found.append(Option(placement, frozenset.intersection(*(o.kept for o in apart))))
        useful = [one for one in found if any(by.expressions for by in one.placement.values())]
        return self._ranked(useful or found), whole

    def _ranked(self, options: Iterable[Option]) -> list[Option]:
        return sorted(options, key=lambda one: self._combined([one]).rank)

    def _together(self, component: Sources) -> tuple[list[Option], bool]:
        """The options that are the same function of all sources, and round robin."""
        universe = Universe(component, self._operators(component), self.splitter)
        masks = self._masks(universe)
        reached = closure((masks[name] for name in self._leaves), masks, self._parents)
        options = [
            Option(
                universe.placement(bits),
                frozenset(name for name, own in masks.items() if bits & own == bits),
            )
            for bits in sorted({bits & universe.everything for bits in reached} - {0})
        ]
        free = frozenset(name for name, own in masks.items() if own & universe.free)
        round_robin = Option(dict.fromkeys(component, PartitionSet(())), free)
        return [*options, round_robin], len(reached) < MOST_CANDIDATES

    def _operators(self, component: Sources) -> list[OperatorSet]:
        inside = frozenset(component)
        found: dict[object, OperatorSet] = {}
        for operators in self._of.values():
            for one in operators:
                if one.entries is not None and one.sources and one.sources <= inside:
                    found.setdefault(operator_key(one), one)
        return list(found.values())

    def _masks(self, universe: Universe) -> dict[str, Bits]:
        """The values that each node is compatible with, together with all it reads. A node that
        reads other sources only is compatible with all.
        """
        inside = frozenset(universe.sources)
        everything = universe.everything | universe.free
        masks: dict[str, Bits] = {}
        for node in self.nodes:
            bits = everything
            for one in self._of[node.name]:
                if one.entries is not None and one.sources & inside:
                    bits &= universe.accepted(one) if one.sources <= inside else 0
            for name in node.inputs:
                bits &= masks.get(name, everything)
            masks[node.name] = bits
        return masks

    @cached_property
    def _leaves(self) -> tuple[str, ...]:
        """The first nodes above the sources that are not compatible with every set."""
        free: set[str] = set()
        leaves: list[str] = []
        for node in self.nodes:
            is_free = all(one.entries is None for one in self._of[node.name])
            if is_free and all(name in free for name in node.inputs if not is_raw(name)):
                free.add(node.name)
            elif node.is_leaf or free.intersection(node.inputs):
                leaves.append(node.name)
        return tuple(leaves)

    @cached_property
    def _parents(self) -> Mapping[str, tuple[str, ...]]:
        parents: dict[str, list[str]] = {}
        for node in self.nodes:
            for name in node.inputs:
                parents.setdefault(name, []).append(node.name)
        return {name: tuple(some) for name, some in parents.items()}


def operator_key(one: OperatorSet) -> object:
    """Equal for operators that are compatible with the same sets, for the same reasons."""
    entries = None
    if one.entries is not None:
        entries = frozenset(KnownValue(e.origins, e.temporal).key for e in one.entries)
    return one.operator, one.sources, entries, one.reason


def closure(
    leaves: Iterable[Bits], masks: Mapping[str, Bits], parents: Mapping[str, Sequence[str]]
) -> set[Bits]:
    """The sets that the paper's search reaches: those of leaves, reconciled with those of leaves
    and of parents of nodes that they are compatible with.
    """
    starts = [bits for bits in dict.fromkeys(leaves) if bits]
    waiting, reached = deque(starts), set(starts)
    above: dict[Bits, set[Bits]] = {}
    """The sets of the parents of the nodes with each set."""
    for name, bits in masks.items():
        above.setdefault(bits, set()).update(masks[p] for p in parents.get(name, ()))
    while waiting and len(reached) < MOST_CANDIDATES:
        bits = waiting.popleft()
        near = set(starts)
        for own, parent_sets in above.items():
            if bits & own == bits:
                near |= parent_sets
        for other in near:
            made = bits & other
            if made and made not in reached:
                reached.add(made)
                waiting.append(made)
    return reached


class Universe:
    """All values by which linked sources may be partitioned, each with the same function for every
    source.
    """

    def __init__(
        self, sources: Sources, operators: Sequence[OperatorSet], splitter: SplitterCapability
    ) -> None:
        self.sources = sources
        self._accepted: dict[object, Bits] = {}
        if splitter.listed:
            listed = splitter.values(sources)
            self.values = [KnownValue(values) for values in listed]
            return
        places = frozenset(sources)
        made = (one for one in closed(seeds(operators)) if one.values.keys() == places)
        adapted = (splitter.adapted(one.values) for one in made)
        found = {one.key: one for one in (KnownValue(v) for v in adapted if v is not None)}
        self.values = list(found.values())

    @property
    def everything(self) -> Bits:
        return (1 << len(self.values)) - 1

    @property
    def free(self) -> Bits:
        """The mark of nodes that are compatible with partitions whatever these hold."""
        return 1 << len(self.values)

    def accepted(self, one: OperatorSet) -> Bits:
        """The values that an operator is compatible with."""
        key = operator_key(one)
        if key not in self._accepted:
            self._accepted[key] = sum(
                1 << place
                for place, value in enumerate(self.values)
                if not one.refusal({s: PartitionSet((value.values[s],)) for s in one.sources})
            )
        return self._accepted[key]

    def placement(self, bits: Bits) -> Placement:
        """The partitioning sets of some values, without those that others determine."""
        chosen = [value for place, value in enumerate(self.values) if bits >> place & 1]
        kept = without_derivable(chosen, self.sources[0])
        return {
            source: PartitionSet(tuple(e.values[source] for e in kept)) for source in self.sources
        }


def seeds(operators: Iterable[OperatorSet]) -> Iterator[KnownValue]:
    """The values of the compatible sets, the largest of each operator; and the other values that
    are tied to one of these: where x.a = y.c and x.a = y.d, y may be partitioned by either.
    """
    for one in operators:
        placement = one.placement()
        if not placement:
            continue
        sources = sorted(placement)
        rows = list(zip(*(placement[s].expressions for s in sources), strict=True))
        for values in rows:
            yield KnownValue(dict(zip(sources, values, strict=True)))
        chosen = {source: set(placement[source].expressions) for source in sources}
        for entry in one.candidates if len(sources) > 1 else ():
            if any(entry.values[s] in chosen[s] for s in sources):
                yield KnownValue({s: entry.values[s] for s in sources})


def closed(values: Iterable[KnownValue]) -> list[KnownValue]:
    """The values, and what pairs of them have in common, again and again."""
    found = {one.key: one for one in values}
    done: list[KnownValue] = []
    waiting = deque(found.values())
    while waiting and len(found) < MOST_VALUES:
        one = waiting.popleft()
        for other in done:
            made = common_entry(one, other)
            if made is not None and made.key not in found:
                found[made.key] = made
                waiting.append(made)
        done.append(one)
    return list(found.values())
