"""Samples of the tuples that tasks read, and the statistics of a slice made from them.

In: every batch of tuples that a task of a micro-batch reads, and the low-level plan without a tree.
Out: `TupleSample`s, which a task reports beside its heartbeat: for each family of aggregations that
could share tables and trees, and for each aggregation whose states leave a choice, hashes of the
keys of some tuples, and the conditions that each of them meets. Values are hashed, not codes, so
that the samples of several tasks can be combined.

A piece is the part of a slice that one task has in one micro-batch. Its tables are empty before and
after it: the groups of a piece, not of a slice, decide what a tree saves in a stream. So a piece is
the epoch of the statistics, and a slice is sampled when some of its pieces are.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import expm1
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.columns.arrays import Ints
from terascope.physical.low_plan import LowPlan
from terascope.physical.statistics.sample_vectors import SampleReader, SampleVectors, union
from terascope.physical.statistics.sampling import Thinning
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.sharing.distinct import attribute_hashes
from terascope.sharing.model import Statistics
from terascope.sharing.statistics import SampledStatistics
from terascope.streaming.replan.tree_plans import AggregateFamily, choices_of, families_of

MOST_TUPLES: Final = 1 << 15
"""The most sampled tuples of a slice; beyond that whole pieces are dropped."""
PIECE: Final = "#piece"

Prints: TypeAlias = NDArray[np.uint32]
"""Half a hash: among 30,000 different values hardly two are equal."""
Flags: TypeAlias = NDArray[np.bool_]
TrafficStatistics: TypeAlias = Callable[[frozenset[str]], tuple[Statistics, float]]
"""Statistics of a piece of some slices for the tuples that meet one of some conditions, and the
number of pieces."""
EPOCH: Final = "#epoch"
CONDITION: Final = "?"
"""The first character of the columns of conditions; no key begins with it."""
FAMILY, CHANCE = b"family", b"chance"


@dataclass(frozen=True)
class TupleSample:
    """Some tuples of a family that one task read."""

    family: str
    chance: float
    """The probability that a tuple is in the sample."""
    epochs: Ints
    keys: Mapping[str, Prints]
    """The hashes of the tuples' values, by attribute."""
    met: Mapping[str, Flags] = field(default_factory=dict)
    """The tuples that meet each condition, if the aggregations have several."""

    def __len__(self) -> int:
        return len(self.epochs)

    def at(self, rows: Ints) -> TupleSample:
        keys = {name: vector[rows] for name, vector in self.keys.items()}
        met = {name: flags[rows] for name, flags in self.met.items()}
        return replace(self, epochs=self.epochs[rows], keys=keys, met=met)

    def pieces(self) -> Iterator[TupleSample]:
        """The tuples of each epoch."""
        for epoch in np.unique(self.epochs):
            yield self.at(np.flatnonzero(self.epochs == epoch))

    def meeting(self, conditions: Collection[str]) -> TupleSample:
        """The tuples that meet one of some conditions."""
        if not self.met:
            return self
        masks = [self.met[name] for name in conditions]
        return self.at(np.flatnonzero(np.logical_or.reduce(masks)))

    def to_text(self) -> str:
        met = {CONDITION + name: flags for name, flags in self.met.items()}
        table = pa.table({EPOCH: self.epochs, **self.keys, **met})
        table = table.replace_schema_metadata(
            {FAMILY: self.family.encode(), CHANCE: json.dumps(self.chance).encode()}
        )
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        return base64.b64encode(sink.getvalue()).decode("ascii")

    @staticmethod
    def of(text: str) -> TupleSample:
        table = pa.ipc.open_stream(base64.b64decode(text)).read_all()
        vectors = {name: table.column(name).to_numpy() for name in table.column_names}
        about = table.schema.metadata
        chance = float(json.loads(about[CHANCE]))
        asked = [name for name in vectors if name.startswith(CONDITION)]
        met = {name.removeprefix(CONDITION): vectors.pop(name) for name in asked}
        return TupleSample(about[FAMILY].decode(), chance, vectors.pop(EPOCH), vectors, met)


@dataclass
class SliceSamples:
    """The sampled slices of one family, each in pieces."""

    _slices: dict[int, list[TupleSample]] = field(default_factory=dict)
    _newest: int | None = None
    _over: int | None = None
    """The epoch up to which slices were taken."""

    def add(self, samples: Iterable[TupleSample]) -> None:
        for piece in (piece for sample in samples for piece in sample.pieces()):
            epoch = int(piece.epochs[0])
            if self._over is not None and epoch <= self._over:
                continue
            self._newest = epoch if self._newest is None else max(self._newest, epoch)
            pieces = self._slices.setdefault(epoch, [])
            pieces.append(piece)
            while len(pieces) > 1 and sum(map(len, pieces)) > MOST_TUPLES:
                del pieces[::2]

    def take_over(self) -> list[list[TupleSample]]:
        """Take the slices that are over, because tuples of a later one came; each once."""
        over = sorted(epoch for epoch in self._slices if epoch != self._newest)
        self._over = over[-1] if over else self._over
        return [self._slices.pop(epoch) for epoch in over]


def sampled_traffic(pieces: Sequence[TupleSample]) -> TrafficStatistics:
    """Statistics of some slices, from sampled pieces."""

    @cache
    def of(conditions: frozenset[str]) -> tuple[Statistics, float]:
        found = statistics_of([piece.meeting(conditions) for piece in pieces])
        return found, found.epochs

    return of


def statistics_of(pieces: Sequence[TupleSample]) -> SampledStatistics:
    """The statistics of a mean piece."""
    kept, chance = thinned_alike(pieces)
    counts = np.array([len(rows) for rows in kept])
    sampled = int(counts.sum())
    number = len(pieces)
    if chance < 1.0:  # pieces of which no tuple was drawn are there, too
        seen = max(1, int(np.count_nonzero(counts)))
        number = max(1, round(sampled / expected_count(sampled / seen, chance)))
    vectors = {}
    for name in pieces[0].keys:
        values = [piece.keys[name][rows] for piece, rows in zip(pieces, kept, strict=True)]
        vectors[name] = attribute_hashes(np.concatenate(values).astype(np.int64), name)
    numbers = np.repeat(np.arange(len(pieces)), counts)
    return SampledStatistics(
        vectors,
        sampled,
        sampled / chance / number,
        epochs=number,
        epoch_hashes=attribute_hashes(numbers, PIECE) if len(pieces) > 1 else None,
    )


def thinned_alike(pieces: Sequence[TupleSample]) -> tuple[list[Ints], float]:
    """The tuples of each piece that are kept as if all had been sampled with the same probability,
    which comes second.
    """
    chance = min(piece.chance for piece in pieces)
    random = np.random.default_rng(1)
    kept: list[Ints] = []
    for piece in pieces:
        number = int(random.binomial(len(piece), chance / piece.chance))
        kept.append(np.sort(random.choice(len(piece), number, replace=False)))
    return kept, chance


def expected_count(mean: float, least: float) -> float:
    """The expected sampled tuples of a piece, given their mean over pieces with any: the mean is x
    / (1 - exp(-x)) for random draws from pieces of one size.
    """
    found = mean
    for _ in range(100):
        found = mean * -expm1(-found)
    return max(found, least)


class Sampler:
    """Draws a sample of the tuples that a task reads, with the same probability for every tuple."""

    def __init__(self, read: str, plan: LowPlan, most: int, seed: int) -> None:
        """`read`: the name of the source read of the plan."""
        self._families = [*families_of(read, plan), *choices_of(read, plan)]
        self._places = {query.name: place for place, query in enumerate(plan.queries)}
        self._thinning = Thinning(most, seed)
        self._plan = plan

    def see(self, columns: pa.RecordBatch) -> None:
        if columns.num_rows:
            self._thinning.add(0, columns)

    def samples(self) -> Iterator[TupleSample]:
        """The sample of each family that has tuples in it."""
        batches = [columns for _, columns, _ in self._thinning.batches]
        if not batches:
            return
        reader = SampleReader(self._plan)
        for columns in pa.Table.from_batches(batches).combine_chunks().to_batches():
            reader.add(columns)
        vectors = reader.vectors()
        for family in self._families:
            sample = self._of_family(family, reader, vectors)
            if sample is not None:
                yield sample

    def _of_family(
        self, family: AggregateFamily, reader: SampleReader, vectors: SampleVectors
    ) -> TupleSample | None:
        taken = [vectors.passed[self._places[query.name]] for query in family.members]
        query, rows = family.members[0], union(taken, vectors.count)
        assert query.epoch is not None
        epochs, valid = vectors.epochs[query.keys[query.epoch][1]]
        rows = rows[valid[rows]]
        if not len(rows):
            return None
        users: dict[str, tuple[Expr, list[Ints]]] = {}
        for one, own in zip(family.members, taken, strict=True):
            for expr in one.plain_keys:
                users.setdefault(show_expr(expr), (expr, []))[1].append(own)
        keys: dict[str, Prints] = {}
        for name, (expr, takers) in sorted(users.items(), key=lambda item: item[0]):
            # A key that may overflow was computed for the tuples of its own queries only.
            asked = union(takers, vectors.count) if can_overflow(expr) else rows
            prints = np.zeros(vectors.count, np.uint32)
            hashes = reader.hashes(expr, vectors.keys[expr][asked])
            prints[asked] = (hashes >> np.uint64(32)).astype(np.uint32)
            keys[name] = prints[rows]
        met: dict[str, Flags] = {}
        if family.is_mixed:
            pairs = zip(family.conditions, taken, strict=True)
            met = {name: np.isin(rows, own) for name, own in pairs}
        return TupleSample(family.key, self._thinning.chance, epochs[rows], keys, met)
