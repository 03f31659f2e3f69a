"""Compatible sets: the partitionings under which an operator needs no tuple of another partition.

In: the operator trees of named streams. Out: an `OperatorSet` for every operator that has to have
equal values together (P2 3.4, 3.5), and `kept_streams`: the streams that every partition computes
by itself under a given partitioning.

A partitioning set P is compatible with an operator when the union of its outputs over the
partitions by P is its output over the whole. Every operator has entries (`lineage`): values that
its rows have, each as a scalar expression over the attributes of every source below it.

- An aggregation is compatible with every set whose expressions are functions of its keys, as far as
  the keys are scalar expressions over attributes of the sources.
- A join ties an expression of its left to one of its right side: it is compatible with a LEFT and a
  RIGHT set that are the same function of the two sides of its equalities.
- A merge needs tuples of one value in one partition only if an operator above it does: it is
  compatible with every set, and a value is known above it when all inputs have it in one column.
- Selection, projection and windows are compatible with every set. Above a window, values of
  ordered attributes are not known: a tuple belongs to windows that other times belong to as well.
- A ranking with a limit is compatible when the columns it ranks within determine the set.

The entries of an operator are found from those of its inputs, so that a set is traced through the
composition of queries to the attributes of the sources. What cannot be traced is not known to be
compatible. Sampling asks the same question of the same entries: a grouping set is a set of values
that must be sampled together (dissertation 6.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from terascope.connectors.base import interface_of
from terascope.partitioning.lineage import (
    OUTPUT,
    KnownValue,
    Values,
    derived,
    meet,
    over,
    same,
    without_derivable,
)
from terascope.partitioning.sets import (
    PartitionSet,
    Placement,
    expression_text,
    is_refused,
)
from terascope.plan.expr import Call, Col, Expr, Param, columns_of, substitute, walk
from terascope.plan.plan import reads
from terascope.plan.rel import (
    Aggregate,
    Aggregation,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Window,
)
from terascope.types import Type

OperatorKind: TypeAlias = Literal[
    "selection", "merge", "window", "aggregation", "running aggregation", "join", "ranking"
]
INDEPENDENT = "the partitions hold tuples whatever their values are"


@dataclass(frozen=True)
class OperatorSet:
    """The compatible set of one operator."""

    stream: str
    """The stream that the operator belongs to."""
    operator: OperatorKind
    sources: frozenset[str]
    """The sources below it, by the names that queries use."""
    entries: tuple[KnownValue, ...] | None
    """The values that determine which rows the operator has to have together; None: it is
    compatible with every set."""
    reason: str = ""
    """Why there is no entry."""

    @property
    def candidates(self) -> tuple[KnownValue, ...]:
        """The entries that a partitioning set is made of: no ordered attribute is in them."""
        return tuple(e for e in self.entries or () if not e.temporal and is_candidate(e.origins))

    def placement(self) -> Placement | None:
        """The largest compatible set, by source, in one order for all sources; None: there is none,
        or every set is compatible.
        """
        chosen = self.candidates
        if not chosen:
            return None
        kept = without_derivable(chosen, min(self.sources))
        return {
            source: PartitionSet(tuple(e.values[source] for e in kept))
            for source in sorted(self.sources)
        }

    def refusal(self, placement: Placement) -> str:
        """Why the operator is not compatible with a partitioning; empty: it is."""
        apart = sorted(self.sources - placement.keys())
        if apart:
            return f"{' and '.join(apart)} is not partitioned like the rest"
        if self.entries is None:
            return ""
        sets = [placement[source].expressions for source in sorted(self.sources)]
        if not all(sets):
            return INDEPENDENT
        if self.reason:
            return self.reason
        if len({len(some) for some in sets}) > 1:
            return "its inputs are partitioned by different sets"
        for expressions in zip(*sets, strict=True):
            wanted = dict(zip(sorted(self.sources), expressions, strict=True))
            if derived(self.entries, wanted) is None:
                return self._undetermined(wanted)
        return ""

    def _undetermined(self, wanted: Values) -> str:
        texts = list(dict.fromkeys(map(expression_text, wanted.values())))
        return (
            f"{DETERMINING.get(self.operator, 'its keys')} do not determine {' and '.join(texts)}"
        )


DETERMINING: Mapping[OperatorKind, str] = {
    "join": "the equalities of the join", "ranking": "the columns that it ranks within",
}  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """The streams that partitions compute by themselves."""

    streams: frozenset[str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why each of the other streams is computed above the partitions."""
    values: Mapping[str, tuple[Expr, ...]] = field(default_factory=dict)
    """The values of the partitioning set as expressions over the columns of a stream, for the
    streams whose columns determine them. Rows that an operator has to have together have equal
    ones."""


def is_candidate(origins: Values) -> bool:
    """Whether a value may be part of a partitioning set that is recommended: a splitter can compute
    it, now and later.
    """
    return all(
        expr.type is not Type.FLOAT
        and not any(
            isinstance(part, Param) or (isinstance(part, Call) and part.function.user_defined)
            for part in walk(expr)
        )
        for expr in origins.values()
    )


# ---- operators -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traced:
    """A relation: the sources below it, and the values that are known of its rows."""

    sources: frozenset[str]
    entries: tuple[KnownValue, ...]
    is_replicated: bool = False
    """A watch list: every partition has all of it."""


class Analysis:
    """The compatible sets of streams, bottom up."""

    def __init__(self) -> None:
        self.traced: dict[str, Traced] = {}
        self.found: list[OperatorSet] = []

    def stream(self, name: str, rel: Rel) -> None:
        begun = len(self.found)
        traced = self._trace(name, rel)
        self.traced[name] = traced
        if len(self.found) == begun:
            self._operator(name, "selection", traced.sources, None)

    def _operator(
        self,
        stream: str,
        kind: OperatorKind,
        sources: frozenset[str],
        entries: tuple[KnownValue, ...] | None,
        reason: str = "",
    ) -> None:
        self.found.append(OperatorSet(stream, kind, sources, entries, reason))

    def _trace(self, name: str, rel: Rel) -> Traced:
        match rel:
            case Scan():
                return scanned(rel)
            case Read(stream=stream):
                return self.traced[stream]
            case Lookup():
                return Traced(frozenset(), (), is_replicated=True)
            case Filter(source=source):
                return self._trace(name, source)
            case Project(source=source, items=items):
                below = self._trace(name, source)
                return Traced(below.sources, over(below.entries, items), below.is_replicated)
            case Window(source=source):
                below = self._trace(name, source)
                timeless = tuple(e for e in below.entries if not e.temporal)
                self._operator(name, "window", below.sources, None)
                return Traced(below.sources, timeless)
            case Aggregate() | Running():
                return self._aggregation(name, rel)
            case Rank(source=source, limit=None):
                return self._trace(name, source)
            case Rank():
                return self._ranking(name, rel)
            case Join():
                return self._join(name, rel)
            case Merge():
                return self._merge(name, rel)
            case _:
                assert_never(rel)

    def _aggregation(self, name: str, rel: Aggregate | Running) -> Traced:
        below = self._trace(name, rel.source)
        kind: OperatorKind = "aggregation" if isinstance(rel, Aggregate) else "running aggregation"
        entries = over(below.entries, keys_of_all_sets(rel))
        reason = ""
        if isinstance(rel, Running):  # its groups live across epochs
            entries = tuple(e for e in entries if not e.temporal)
        elif rel.emit_empty is not None:
            entries, reason = (), "it has rows for empty windows, which no partition can tell"
        if not entries and not reason:
            reason = "none of its keys is an expression over attributes of a source"
        self._operator(name, kind, below.sources, entries, reason)
        return Traced(below.sources, entries)

    def _ranking(self, name: str, rel: Rank) -> Traced:
        below = self._trace(name, rel.source)
        within = [(column, Col(column, rel.type_of(column))) for column in rel.per]
        entries = over(below.entries, within)
        timeless = any(not e.temporal for e in entries)
        reason = "" if timeless else "it ranks the rows of all partitions of a window"
        self._operator(name, "ranking", below.sources, entries, reason)
        return below

    def _merge(self, name: str, rel: Merge) -> Traced:
        below = [self._trace(name, source) for source in rel.sources]
        entries: tuple[KnownValue, ...] | None = None
        for traced, source in zip(below, rel.sources, strict=True):
            renamed = zip(rel.names, source.fields, strict=True)
            some = over(traced.entries, ((out, Col(f.name, f.type)) for out, f in renamed))
            entries = some if entries is None else meet(entries, some)
        sources = frozenset().union(*(traced.sources for traced in below))
        self._operator(name, "merge", sources, None)
        return Traced(sources, known_everywhere(entries or (), sources))

    def _join(self, name: str, rel: Join) -> Traced:
        left, right = self._trace(name, rel.left), self._trace(name, rel.right)
        if left.is_replicated or right.is_replicated:
            return self._watch_list(name, rel, left, right)
        sources = left.sources | right.sources
        names = [f"={i}" for i in range(len(rel.equalities))]
        lefts = over(left.entries, zip(names, (a for a, _ in rel.equalities), strict=True))
        rights = over(right.entries, zip(names, (b for _, b in rel.equalities), strict=True))
        entries = known_everywhere(meet(lefts, rights), sources)
        reason = "" if entries else "no equality ties attributes of its two sides"
        self._operator(name, "join", sources, entries, reason)
        return Traced(sources, tuple(joined_entries(rel, entries)))

    def _watch_list(self, name: str, rel: Join, left: Traced, right: Traced) -> Traced:
        """A join with a small table that every partition has."""
        listed, other = (rel.left, right) if left.is_replicated else (rel.right, left)
        if left.is_replicated and right.is_replicated:
            return left
        semi = rel.kind == "semi" and left.is_replicated
        if rel.may_miss(rel.right if listed is rel.left else rel.left) or semi:
            reason = "it has rows of the watch list that no tuple matches"
            self._operator(name, "join", other.sources, (), reason)
            return Traced(other.sources, ())
        self._operator(name, "join", other.sources, None)
        return Traced(other.sources, other.entries)


def sources_of(scan: Scan) -> frozenset[str]:
    """The sources of a scan by the names that queries use; where none is bound, all packets are of
    one source and every other protocol is a source of its own.
    """
    unbound = scan.protocol if scan.layer is None else "packets"
    return frozenset(map(interface_of, scan.interfaces)) or frozenset([unbound])


def scanned(scan: Scan) -> Traced:
    """The attributes of a source, as they are."""
    sources = sources_of(scan)
    entries = []
    for column in scan.columns:
        if column.name.startswith("#") or is_refused(column.read_from):
            continue
        origin = Col(column.read_from, column.type)
        values = {OUTPUT: Col(column.name, column.type), **dict.fromkeys(sorted(sources), origin)}
        entries.append(KnownValue(values, column.slope is not None))
    return Traced(sources, tuple(entries))


def keys_of_all_sets(rel: Aggregation) -> list[tuple[str, Expr]]:
    """The keys that no grouping set leaves out: others are NULL in some rows."""
    sets = rel.sets if isinstance(rel, Aggregate) and rel.sets is not None else None
    return [(n, key) for n, key in rel.keys if sets is None or all(n in some for some in sets)]


def known_everywhere(
    entries: Sequence[KnownValue], sources: frozenset[str]
) -> tuple[KnownValue, ...]:
    return tuple(e for e in entries if e.origins.keys() == sources)


def joined_entries(rel: Join, entries: Sequence[KnownValue]) -> Iterator[KnownValue]:
    """The entries of the rows of a join, from entries over its equalities."""
    fills = dict(rel.fills)
    for ours in (0, 1):
        side = rel.left if ours == 0 else rel.right
        if rel.kind == "semi" and ours == 1:
            return
        values: dict[str, Expr] = {}
        for number, pair in enumerate(rel.equalities):
            mine, theirs = pair[ours], pair[1 - ours]
            if not rel.may_miss(side) or same(substitute(mine, fills), theirs):
                values[f"={number}"] = mine
        for entry in entries:
            if columns_of(entry.expr) <= values.keys():
                yield KnownValue(
                    {**entry.values, OUTPUT: substitute(entry.expr, values)}, entry.temporal
                )


# ---- streams -------------------------------------------------------------------------------------


def compatible_sets(streams: Mapping[str, Rel]) -> tuple[OperatorSet, ...]:
    """The compatible set of every operator of some streams, each behind those it reads; a stream
    without such an operator is one selection.
    """
    return tuple(analysed(streams).found)


def analysed(streams: Mapping[str, Rel]) -> Analysis:
    analysis = Analysis()
    for name, rel in streams.items():
        analysis.stream(name, rel)
    return analysis


def kept_streams(streams: Mapping[str, Rel], placement: Placement) -> Kept:
    """The streams that each partition computes by itself, with all they read (P2 5.1)."""
    refusals: dict[str, str] = {}
    sources: dict[str, frozenset[str]] = {}
    analysis = analysed(streams)
    for one in analysis.found:
        sources[one.stream] = sources.get(one.stream, frozenset()) | one.sources
        why = one.refusal(placement)
        if why:
            refusals.setdefault(one.stream, why)
    for name, rel in streams.items():
        for below in (read.stream for read in reads(rel)):
            if below in refusals:
                refusals.setdefault(name, f"it reads {below}, which is computed above")
        if not sources[name]:
            refusals.setdefault(name, "it reads no partitioned source")
    kept = frozenset(streams) - refusals.keys()
    found = {name: set_values(analysis.traced[name], placement) for name in kept}
    values = {name: some for name, some in found.items() if some}
    return Kept(kept, refusals, values)


def set_values(traced: Traced, placement: Placement) -> tuple[Expr, ...]:
    """The values of the partitioning set over the columns of a relation; nothing where these do not
    determine all of them.
    """
    sources = sorted(traced.sources)
    if not sources or not traced.sources <= placement.keys():
        return ()
    found: list[Expr] = []
    for values in zip(*(placement[source].expressions for source in sources), strict=True):
        known = derived(traced.entries, dict(zip(sources, values, strict=True)))
        if known is None or OUTPUT not in known.values:
            return ()
        found.append(known.expr)
    return tuple(found)
