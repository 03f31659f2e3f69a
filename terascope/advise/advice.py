"""Advice on partitioning a query set: measure, search, judge (P2 4.2; dissertation 7.2(6)).

In: a compiled set with its sources, and what the user says about the splitter, the partitions that
exist, and the frequencies of queries. Out: an `Advice`: the recommended partitioning, the
runners-up, and for each of them the queries that partitions finish and what the others cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from terascope.advise.configuration import split_command
from terascope.advise.measure import MeasuredSet, measured
from terascope.advise.rotation import rotated
from terascope.advise.sample import Limits, read_sample, tuples_for
from terascope.advise.spread import Spreads, ValueSpread
from terascope.connectors.base import Column, interface_of
from terascope.connectors.registry import Interface
from terascope.diagnostic import Diagnostic, QueryError
from terascope.partitioning.basic_queries import BasicQuery, basic_queries, needs_tuples_together
from terascope.partitioning.capability import SplitterCapability, capability_of
from terascope.partitioning.compatible import compatible_sets
from terascope.partitioning.search import Candidate, Search, SearchResult
from terascope.partitioning.sets import PartitionSet, Placement, parse_set
from terascope.physical.ownership import columns_of_source
from terascope.pipeline import Compiled
from terascope.plan.rel import Scan, walk
from terascope.uncollected import uncollected

INTO: Final = 8
"""Partitions: two for each of the four hosts of P2 6."""
SHOWN: Final = 10
"""Candidates that are judged."""
LOOKED_AT: Final = 60
"""Candidates that are looked at for enough values."""


@dataclass(frozen=True)
class Wishes:
    """What the user says."""

    into: int = INTO
    splitter: str = ""
    """The capability of the splitter (terascope.partitioning.capability)."""
    existing: Mapping[str, str] | str = field(default_factory=dict)
    """The partitioning sets that exist, by source; a text is that of every source."""
    weights: Mapping[str, float] | None = None
    """How often each query is asked; None: a stream, whose fullest node counts."""
    rotate: float | None = None
    """The seconds after which groups change their partition."""
    tuples: int | None = None
    """The most tuples on which the queries are measured; None: as many as take a few seconds."""
    seconds: float = 2.0
    """The time for which the sources are read."""


@dataclass(frozen=True)
class JudgedCandidate:
    """A candidate with what it means for the queries."""

    candidate: Candidate
    costs: Mapping[str, float]
    """Bytes per second that are moved for each query alone."""
    partial: Mapping[str, float]
    """The same at most, where partitions send partial groups instead of tuples."""
    reasons: Mapping[str, str]
    """Why a query is not finished in the partitions; those that are, are not in it."""
    refusals: Mapping[str, str]
    """The same for every basic query."""
    spread: Mapping[str, ValueSpread]
    """By source, where there is a sample."""
    into: int

    @property
    def sets(self) -> dict[str, list[str]]:
        """The expressions of each source; none: any partitioning, such as round robin."""
        return {source: list(texts) for source, texts in self.candidate.texts}

    @property
    def has_few_values(self) -> bool:
        """Whether some partitions would be empty."""
        return any(one.values < self.into for one in self.spread.values())

    @property
    def finished(self) -> tuple[str, ...]:
        """The queries that partitions finish."""
        return tuple(name for name in self.costs if name not in self.reasons)


@dataclass(frozen=True)
class Advice:
    """The recommendation for a query set."""

    recommended: JudgedCandidate
    candidates: tuple[JudgedCandidate, ...]
    """The best first; the recommended one is the first of them."""
    existing: JudgedCandidate | None
    measured: MeasuredSet
    nodes: tuple[BasicQuery, ...]
    wishes: Wishes
    splitter: SplitterCapability
    notes: tuple[str, ...]
    interfaces: Mapping[str, Interface]
    """The bound sources, by name."""
    columns: Mapping[str, Sequence[Column]]
    """The columns of each source that the queries read, with the types that these give them."""

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries whose rows are delivered."""
        return self.measured.model.queries

    @property
    def judged(self) -> tuple[JudgedCandidate, ...]:
        """All candidates that are shown: the existing partitioning is the last."""
        return (*self.candidates, *(() if self.existing is None else (self.existing,)))

    @cached_property
    def commands(self) -> dict[str, str]:
        """The command that splits each source by the recommendation."""
        into = self.wishes.into
        return {
            source: split_command(source, self._location(source), by, into)
            for source, by in self.recommended.candidate.placement.items()
        }

    def _location(self, source: str) -> str:
        known = self.interfaces.get(source)
        return "KIND:LOCATION" if known is None else f"{known.kind}:{known.location}"

    def document(self) -> dict[str, Any]:
        """The advice as JSON has it."""
        best = self.recommended
        return {
            "recommended": [
                {"source": source, "set": texts, "cost": best.candidate.cost.largest}
                for source, texts in best.sets.items()
            ],
            "candidates": [self._candidate(one) for one in self.judged],
            "queries": {
                query: {
                    "in_partitions": query not in best.reasons,
                    "reason": best.reasons.get(query),
                    "cost": best.costs[query],
                    "candidates": [
                        {
                            "cost": one.costs[query],
                            "with_partial_groups": one.partial[query],
                            "in_partitions": query not in one.reasons,
                            "reason": one.reasons.get(query),
                        }
                        for one in self.judged
                    ],
                }
                for query in self.queries
            },
        }

    def _candidate(self, one: JudgedCandidate) -> dict[str, Any]:
        return {
            "sets": one.sets,
            "cost": one.candidate.cost.largest,
            "total": one.candidate.cost.total,
            "finished": list(one.finished),
            "values": {source: spread.values for source, spread in one.spread.items()},
            "skew": {source: round(spread.skew, 3) for source, spread in one.spread.items()},
            "recommended": one is self.recommended,
            "existing": one is self.existing,
        }


@uncollected
def advise(compiled: Compiled, wishes: Wishes | None = None) -> Advice:
    """Search the best partitioning of the sources of a set.

    Raises:
        QueryError: the set has no query, no partitioning helps any of them, or a wish makes no
            sense.
        SourceError: a source cannot be read.
        ValueMistake: a query has no answer for the tuples of the sample.
    """
    return Adviser(compiled, wishes or Wishes()).advice()


class Adviser:
    """One query set and the wishes of its user."""

    def __init__(self, compiled: Compiled, wishes: Wishes) -> None:
        self.compiled = compiled
        self.wishes = wishes
        self.nodes = basic_queries(compiled.optimized)
        if not any(node.delivered for node in self.nodes):
            help = "write at least one query that is not internal"
            raise self.mistake("no-queries", "the set has no query to advise on", (), help)
        self.check_weights()
        self.scans = [r for n in self.nodes for r in walk(n.rel) if isinstance(r, Scan)]
        self.columns = {name: self.columns_of(name) for name in self.sources}
        self.splitter = capability_of(wishes.splitter, self.columns)

    def mistake(
        self, code: str, message: str, notes: tuple[str, ...] = (), help: str | None = None
    ) -> QueryError:
        found = Diagnostic(code, message, notes=notes, help=help)
        return QueryError([found], self.compiled.source)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The sources that the queries read, by name."""
        names = {interface_of(name) for scan in self.scans for name in scan.interfaces}
        return tuple(sorted(names))

    def columns_of(self, source: str) -> list[Column]:
        """The columns of a source, those that no query reads included where it is bound."""
        bound = self.compiled.bindings.interfaces.values()
        one = next((i for i in bound if interface_of(i.name) == source), None)
        if one is not None and one.is_there:
            return columns_of_source([one], self.scans)
        found: dict[str, Column] = {}
        for scan in self.scans:
            if source in scan.interfaces:
                for c in (*scan.columns, *scan.checked):
                    if not c.name.startswith("#"):
                        found.setdefault(c.read_from, Column(c.read_from, c.type, c.clock))
        return list(found.values())

    def check_weights(self) -> None:
        known = {node.name for node in self.nodes if node.delivered}
        unknown = [name for name in self.wishes.weights or {} if name not in known]
        if unknown:
            message = f"a weight is given for '{unknown[0]}', which is no query of the set"
            help = f"queries are {', '.join(sorted(known))}"
            raise self.mistake("unknown-query", message, (), help)

    # ---- the search

    def advice(self) -> Advice:
        operators = compatible_sets({node.name: node.rel for node in self.nodes})
        wanted = self.existing_placement()
        extra = {source: by.columns for source, by in (wanted or {}).items()}
        extra |= {s: (*extra.get(s, ()), *names) for s, names in self.listed_columns().items()}
        tuples = self.wishes.tuples or tuples_for(len(self.nodes))
        limits = Limits(tuples, self.wishes.seconds)
        interfaces = self.compiled.bindings.interfaces
        sample = read_sample(self.scans, interfaces, limits, self.typed(extra))
        found = measured(self.nodes, sample, self.compiled.optimized.values, self.wishes.weights)
        search = Search(self.nodes, operators, found.model, self.splitter)
        searched = search.run()
        self.check_found(searched, search)
        spreads = Spreads(sample, self.wishes.into)
        chosen = self.with_enough_values(searched.candidates, spreads)
        best = chosen[0]
        if self.wishes.rotate is not None:
            placement = rotated(
                best.placement, self.wishes.rotate, self.columns, search, self.compiled.source
            )
            chosen[0] = Candidate(placement, best.kept, best.cost)
        judged = tuple(self.judged(one, search, spreads) for one in chosen[:SHOWN])
        existing = None
        if wanted is not None:
            existing = self.judged(search.candidate(wanted), search, spreads)
        return Advice(
            judged[0], judged, existing, found, self.nodes, self.wishes, self.splitter,
            tuple(self.notes(found, searched, judged[0])), self.compiled.bindings.sources,
            self.columns,
        )  # fmt: skip

    def check_found(self, found: SearchResult, search: Search) -> None:
        """Refuse a set of which partitions finish nothing, with the reason for each query."""
        best = found.candidates[0]
        shown = [node.name for node in self.nodes if node.delivered]
        if any(
            node.name in best.kept
            and (node.delivered or any(map(needs_tuples_together, walk(node.rel))))
            for node in self.nodes
        ):
            return
        hopeless = found.reasons if not self.splitter.is_limited else {}
        refused = search.refusals(best.placement)
        notes = tuple(f"{name}: {hopeless.get(name) or refused[name]}" for name in shown)
        limited = f" that the splitter can do ({self.splitter.text})" if self.splitter.text else ""
        message = f"no partitioning{limited} lets any query be finished in partitions"
        help = "partition round robin: partial groups are merged above, and tuples of joins"
        raise self.mistake("no-partitioning", message, notes, help)

    def with_enough_values(
        self, candidates: Sequence[Candidate], spreads: Spreads
    ) -> list[Candidate]:
        """The best candidates. Of those that are equally good the one with the most even partitions
        comes first; those with fewer values than partitions come last.
        """
        looked_at = candidates[:LOOKED_AT]
        enough = [one for one in looked_at if spreads.has_enough(one.placement)]
        few = [one for one in looked_at if not spreads.has_enough(one.placement)]
        enough.sort(key=lambda one: (*one.quality, *spreads.evenness(one.placement), one.texts))
        return [*enough[:SHOWN], *few]

    def judged(self, candidate: Candidate, search: Search, spreads: Spreads) -> JudgedCandidate:
        model, into = search.model, self.wishes.into
        refused = search.refusals(candidate.placement)
        reasons = {
            name: self.cause(name, refused) for name in model.queries if name not in candidate.kept
        }
        return JudgedCandidate(
            candidate,
            {name: model.query_cost(name, candidate.kept) for name in model.queries},
            {name: model.query_cost(name, candidate.kept, into) for name in model.queries},
            reasons,
            refused,
            spreads.of(candidate.placement),
            into,
        )

    def cause(self, name: str, refused: Mapping[str, str]) -> str:
        """The reason of a query; where it is that of a part of it, the reason of the part."""
        own = f"{name}/"
        parts = [part for part in refused if part.startswith(own)]
        return refused[parts[0]] if parts else refused[name]

    # ---- wishes

    def existing_placement(self) -> Placement | None:
        """The partitioning that exists: as the user says, or as the sources are partitioned."""
        wished = self.wishes.existing
        given = dict.fromkeys(self.sources, wished) if isinstance(wished, str) else wished
        texts = {
            interface_of(one.name): one.partition.by
            for one in self.compiled.bindings.interfaces.values()
            if one.partition is not None
        } | dict(given)
        if not texts:
            return None
        found = dict.fromkeys(self.sources, PartitionSet(()))
        for source, text in texts.items():
            if source in found and text:
                found[source] = parse_set(text, self.columns[source])
        return found

    def listed_columns(self) -> dict[str, tuple[str, ...]]:
        return {s: PartitionSet(some).columns for s, some in self.splitter.listed.items()}

    def typed(self, names: Mapping[str, Sequence[str]]) -> dict[str, list[Column]]:
        return {
            source: [c for c in self.columns[source] if c.name in some]
            for source, some in names.items()
            if source in self.columns
        }

    def notes(self, found: MeasuredSet, searched: SearchResult, best: JudgedCandidate) -> list[str]:
        """What the user should know about the figures."""
        notes: list[str] = []
        if found.unmeasured:
            notes.append(
                f"rates of {', '.join(found.unmeasured)} are assumed, not measured: give the source"
                " with --source"
            )
        if found.extrapolated:
            covered = "" if found.seconds is None else f" of {found.seconds:.1f} s"
            notes.append(
                f"the sample{covered} is shorter than the epochs of {listed(found.extrapolated)}:"
                " their groups are extrapolated"
            )
        if found.silent:
            notes.append(f"no tuple of the sample reaches {listed(found.silent)}")
        if best.has_few_values:
            notes.append(
                f"the recommended set has fewer values than {self.wishes.into} partitions: some"
                " partitions will be empty; split into fewer"
            )
        if not searched.is_whole:
            notes.append("the search was ended early: there may be better sets")
        return notes


def listed(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
