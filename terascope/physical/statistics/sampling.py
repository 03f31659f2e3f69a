"""Statistics of a source, from a sample of its tuples.

In: the low-level plan of a source and its splits. Out: a `SourceSample`: the share of the tuples
that each predicate and each query takes, and for the tuples of every aggregation the groups of any
set of keys (`SampledStatistics`; the attributes are the keys as in GSQL). No Spark: the splits are
read in this process, for about a second.

Tuples are thinned evenly while they are read. Whole epochs are read where possible (see
`sampled_splits`), so that the assumption of the estimators holds: a uniform sample of an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import Column, ReadReport, Split
from terascope.connectors.registry import read_split
from terascope.kernels.columns.arrays import Ints
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery
from terascope.physical.statistics.sample_vectors import SampleReader, SampleVectors
from terascope.physical.statistics.sampled_splits import (
    Stripe,
    is_cut,
    reading,
    stripes,
    stripes_of_epoch,
)
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.sharing.distinct import attribute_hashes
from terascope.sharing.statistics import SampledStatistics

Random: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint64]
End: TypeAlias = Literal["first", "last"]

SEED: Final = 1
EPOCH: Final = "epoch"
SPARE: Final = 4
"""The factor by which more tuples are kept at first: those of some epochs are dropped later."""
AT_ONCE: Final = 1 << 14
"""Tuples that are evaluated together: their vectors stay in the caches."""
ENOUGH: Final = 16
"""The thinnest useful sample, one in this many tuples: rather fewer epochs than less of each."""


@dataclass(frozen=True)
class SampleLimits:
    tuples: int = 1 << 16
    """The most tuples of each query; a set of keys is then counted in about a millisecond."""
    seconds: float = 1.0
    """The time after which no further split is begun."""
    stripes: int = 64
    """The number of stripes, of 4 MB for each interface."""


# ---- reading -------------------------------------------------------------------------------------


@dataclass
class Thinning:
    """Batches of which every tuple had the same chance to stay."""

    most: int
    seed: int = SEED
    chance: float = 1.0
    seen: int = 0
    kept: int = 0
    batches: list[tuple[int, pa.RecordBatch, Random]] = field(default_factory=list)
    """The number of the stripe, the tuples, and random numbers that decide which stay."""

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def add(self, place: int, columns: pa.RecordBatch) -> None:
        drawn = self._random.random(columns.num_rows)
        self.seen += columns.num_rows
        self._keep(place, columns, drawn)
        while self.kept > self.most:
            self.chance /= 2
            before, self.batches, self.kept = self.batches, [], 0
            for batch in before:
                self._keep(*batch)

    def _keep(self, place: int, columns: pa.RecordBatch, drawn: Random) -> None:
        if self.chance < 1.0:
            stays = np.flatnonzero(drawn < self.chance)
            columns, drawn = columns.take(pa.array(stays)), drawn[stays]
        if columns.num_rows:
            self.kept += columns.num_rows
            self.batches.append((place, columns, drawn))


@dataclass(frozen=True)
class SampledTuples:
    """Some tuples of a source, as they were read."""

    columns: tuple[Column, ...]
    pieces: tuple[Stripe, ...]
    done: tuple[int, ...]
    """The numbers of the stripes that were read."""
    thinning: Thinning
    most: int
    splits: int


def sample_source(
    plan: LowPlan, splits: Sequence[Split], limits: SampleLimits | None = None
) -> SourceSample:
    """Read some of a source and evaluate all predicates and keys of a plan on some of its tuples.

    Raises:
        ValueMistake: a key or a predicate overflows, as it will when the queries are run.
    """
    return evaluated(plan, read_some(plan, splits, limits or SampleLimits()))


def read_some(plan: LowPlan, splits: Sequence[Split], limits: SampleLimits) -> SampledTuples:
    pieces = stripes(splits)
    lengths = [stripes_of_epoch(query, pieces) for query in plan.aggregations]
    thinning = Thinning(SPARE * limits.tuples)
    done: list[int] = []
    started = perf_counter()
    for run in reading(len(pieces), lengths, limits.stripes):
        if thinning.seen >= ENOUGH * limits.tuples:
            break
        for place in run:
            if done and perf_counter() - started > limits.seconds:
                break
            for split in pieces[place]:
                for columns in read_split(split, plan.columns, ReadReport()):
                    thinning.add(place, columns)
            done.append(place)
    return SampledTuples(
        plan.columns, tuple(pieces), tuple(done), thinning, limits.tuples, len(splits)
    )


def evaluated(plan: LowPlan, some: SampledTuples) -> SourceSample:
    """The sample of a plan, from tuples that have its columns."""
    pieces, thinning = some.pieces, some.thinning
    queries = plan.aggregations
    lengths = {query: stripes_of_epoch(query, pieces) for query in queries}
    reader = SampleReader(plan)
    if thinning.batches:
        together = pa.Table.from_batches([columns for _, columns, _ in thinning.batches])
        for columns in together.combine_chunks().to_batches(AT_ONCE):
            reader.add(columns)
    numbers = run_numbers(some.done)
    runs = [np.full(len(columns), numbers[place]) for place, columns, _ in thinning.batches]
    per_stripe = thinning.seen / max(1, len(some.done))
    return SourceSample(
        plan=plan,
        most=some.most,
        tuples_read=thinning.seen,
        tuples_total=round(per_stripe * len(pieces)),
        splits_read=sum(len(pieces[place]) for place in some.done),
        splits_total=some.splits,
        vectors=reader.vectors(),
        runs=np.concatenate([np.zeros(0, np.int64), *runs]),
        begins=numbers.get(0),
        ends=numbers.get(len(pieces) - 1),
        whole_ends=whole_ends(queries, pieces, numbers),
        epoch_tuples={q: n * per_stripe for q, n in lengths.items() if n is not None},
    )


def run_numbers(places: Sequence[int]) -> dict[int, int]:
    """Number of a stripe that was read -> number of its run of neighbours."""
    numbers: dict[int, int] = {}
    for place in sorted(places):
        numbers[place] = numbers[place - 1] if place - 1 in numbers else len(set(numbers.values()))
    return numbers


def whole_ends(
    queries: Sequence[LowAggregate], pieces: Sequence[Stripe], numbers: Mapping[int, int]
) -> frozenset[tuple[Expr, int, End]]:
    """The runs that begin or end with an epoch, by the bounds of the splits."""
    epochs = {q.epoch_expr: q for q in queries if q.epoch_expr is not None}
    found: set[tuple[Expr, int, End]] = set()
    for epoch, query in epochs.items():
        for place, run in numbers.items():
            if place - 1 not in numbers and not is_cut(query, pieces, place):
                found.add((epoch, run, "first"))
            if place + 1 not in numbers and not is_cut(query, pieces, place + 1):
                found.add((epoch, run, "last"))
    return frozenset(found)


# ---- statistics of the sample --------------------------------------------------------------------


@dataclass(frozen=True)
class SourceSample:
    """A sample of the tuples of a source."""

    plan: LowPlan
    most: int
    """The most tuples that statistics are computed from."""
    tuples_read: int
    tuples_total: int
    """The tuples of the source: counted when all of it was read, else estimated from the splits."""
    splits_read: int
    splits_total: int
    vectors: SampleVectors
    runs: Ints
    """The run of each tuple: tuples of neighbouring splits have the same number."""
    begins: int | None
    """The run that begins with the source, if it was read."""
    ends: int | None
    whole_ends: frozenset[tuple[Expr, int, End]]
    """The first or last epochs of a run of which no other split has tuples."""
    epoch_tuples: Mapping[LowAggregate, float]
    """The tuples of an epoch of a query, estimated from its splits."""
    _statistics: dict[tuple[LowAggregate, ...], SampledStatistics] = field(
        default_factory=dict, repr=False
    )
    _epochs: dict[Expr, WholeEpochs] = field(default_factory=dict, repr=False)
    _unions: dict[tuple[str, ...], Bits] = field(default_factory=dict, repr=False)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {query.name: place for place, query in enumerate(self.plan.queries)}

    def passed(self, query: str) -> Ints:
        """The mask of the tuples that a query takes."""
        return self.vectors.passed[self._places[query]]

    def knows(self, query: LowQuery) -> bool:
        place = self._places.get(query.name)
        return place is not None and self.plan.queries[place] == query

    def has(self, query: LowAggregate) -> bool:
        """Whether a query of that name with these keys was sampled, whatever its slots were."""
        place = self._places.get(query.name)
        known = None if place is None else self.plan.queries[place]
        return isinstance(known, LowAggregate) and known.keys == query.keys

    def either(self, queries: tuple[str, ...]) -> int:
        """The number of tuples that any of some queries takes: a known union and one more query."""
        *members, one = queries
        taken = self._bits(one)
        if members:
            taken = taken | self._union(tuple(members))
        return int(np.bitwise_count(taken).sum())

    def _union(self, queries: tuple[str, ...]) -> Bits:
        known = self._unions.get(queries)
        if known is None:
            known = self._bits(queries[-1])
            if len(queries) > 1:
                known = known | self._union(queries[:-1])
            self._unions[queries] = known
        return known

    def _bits(self, query: str) -> Bits:
        """A bit for each tuple that a query takes, in words."""
        taken = np.zeros(-(-self.vectors.count // 64) * 64, np.bool_)
        taken[self.passed(query)] = True
        return np.packbits(taken).view(np.uint64)

    @property
    def tuples_kept(self) -> int:
        return self.vectors.count

    @property
    def share(self) -> float:
        """The share of the tuples that were read which the sample keeps."""
        return self.vectors.count / max(1, self.tuples_read)

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole source."""
        return self.splits_read == self.splits_total and self.vectors.count == self.tuples_read

    @cached_property
    def seconds(self) -> float | None:
        """The time that the sampled part of the source covers."""
        clock = self.vectors.clock
        if clock is None or not len(clock):
            return None
        spans = [clock[self.runs == run] for run in np.unique(self.runs)]
        return float(sum(times.max() - times.min() for times in spans))

    @property
    def rate(self) -> float | None:
        return self.tuples_read / self.seconds if self.seconds else None

    def predicate_selectivity(self, bit: int) -> float:
        """The share of the tuples that pass a predicate of the prefilter."""
        return self.vectors.predicates[bit] / max(1, self.vectors.count)

    def selectivity(self, query: int) -> float:
        """The share of the tuples that a query takes."""
        return len(self.vectors.passed[query]) / max(1, self.vectors.count)

    def statistics(self, query: LowAggregate, *others: LowAggregate) -> SampledStatistics:
        """Statistics of the tuples that any of some queries takes, in the epochs of the first: the
        keys of all aggregations of the source are its attributes.
        """
        asked = (query, *others)
        known = self._statistics.get(asked)
        if known is None:
            known = self._statistics[asked] = self._make(query, self._taken(asked))
        return known

    def _taken(self, queries: Sequence[LowAggregate]) -> Ints:
        vectors = [self.passed(query.name) for query in queries]
        return vectors[0] if len(vectors) == 1 else np.flatnonzero(self.any_of(vectors))

    def any_of(self, vectors: Sequence[Ints]) -> NDArray[np.bool_]:
        found = np.zeros(self.vectors.count, np.bool_)
        for vector in vectors:
            found[vector] = True
        return found

    def _make(self, query: LowAggregate, rows: Ints) -> SampledStatistics:
        share = self.share or 1.0
        selectivity = len(rows) / max(1, self.vectors.count)
        rate = None if self.rate is None else self.rate * selectivity
        expected = self.epoch_tuples.get(query, 0.0) * selectivity
        if query.epoch_expr is None:
            return self._counted(rows, expected, rate, 1)
        whole = self._whole(query.epoch_expr)
        rows = rows[whole.taken[rows]]
        if not whole.number:
            return self._counted(rows, max(len(rows) / share, expected), rate, 1)
        # Rather few epochs with many of their tuples than many with few.
        number = min(whole.number, max(1, self.most * whole.number // max(1, len(rows))))
        if number < whole.number:
            rows = rows[np.isin(whole.values[rows], whole.some(number))]
        return self._counted(rows, len(rows) / share / number, rate, number, whole.values)

    def _counted(
        self, rows: Ints, tuples: float, rate: float | None, epochs: int, values: Ints | None = None
    ) -> SampledStatistics:
        if len(rows) > self.most:
            rows = np.sort(np.random.default_rng(SEED).choice(rows, self.most, replace=False))
        names = {show_expr(expr): codes for expr, codes in self.vectors.keys.items()}
        vectors = {name: attribute_hashes(codes[rows], name) for name, codes in names.items()}
        epoch_lane = None
        if values is not None and epochs > 1:
            epoch_lane = attribute_hashes(values[rows], EPOCH)
        places = self._within_epochs(rows, None if values is None else values[rows])
        return SampledStatistics(vectors, len(rows), tuples, rate, epochs, epoch_lane, places)

    def _within_epochs(self, rows: Ints, epochs: Ints | None) -> NDArray[np.float64]:
        """The position of each tuple in its epoch: by the clock, else in the order of reading."""
        epochs = np.zeros(len(rows), np.int64) if epochs is None else epochs
        clock = np.zeros(len(rows)) if self.vectors.clock is None else self.vectors.clock[rows]
        order = np.lexsort((rows, clock, epochs))
        _, first, counts = np.unique(epochs[order], return_index=True, return_counts=True)
        places = np.empty(len(rows))
        places[order] = (np.arange(len(rows)) - np.repeat(first, counts)) / np.repeat(
            counts, counts
        )
        return places

    def _whole(self, epoch: Expr) -> WholeEpochs:
        known = self._epochs.get(epoch)
        if known is None:
            known = self._epochs[epoch] = self._find_whole(epoch)
        return known

    def _find_whole(self, epoch: Expr) -> WholeEpochs:
        """The tuples of epochs that were read whole. The first and the last epoch of a source are
        often cut: they count if there are no others.
        """
        inside = self._inside(epoch, False)
        if not inside.number:
            inside = self._inside(epoch, True)
        values, valid = self.vectors.epochs[epoch]
        if not inside.number and valid.any():  # the most that there is of one
            found, counts = np.unique(values[valid], return_counts=True)
            return WholeEpochs(values, valid & (values == found[counts.argmax()]), 0)
        return inside

    def _inside(self, epoch: Expr, with_ends: bool) -> WholeEpochs:
        values, valid = self.vectors.epochs[epoch]
        taken = np.zeros(len(values), np.bool_)
        number = 0
        for run in np.unique(self.runs):
            own = valid & (self.runs == run)
            if not own.any():
                continue
            first, last = int(values[own].min()), int(values[own].max())
            ends = self.whole_ends
            first += not ((with_ends and run == self.begins) or (epoch, run, "first") in ends)
            last -= not ((with_ends and run == self.ends) or (epoch, run, "last") in ends)
            inside = own & (values >= first) & (values <= last)
            number += len(np.unique(values[inside]))
            taken |= inside
        return WholeEpochs(values, taken, number)


@dataclass(frozen=True)
class WholeEpochs:
    """The tuples of epochs that were read whole, and the number of these epochs."""

    values: Ints
    taken: NDArray[np.bool_]
    number: int

    def some(self, number: int) -> Ints:
        """Some of the epochs, evenly spaced."""
        known = np.unique(self.values[self.taken])
        return known[(2 * np.arange(number) + 1) * len(known) // (2 * number)]
