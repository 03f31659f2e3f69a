"""A sample of the tuples that a task reads, as statistics need it.

In: every batch of tuples that a task of a micro-batch reads, and the low-level plan without a tree.
Out: `TupleSample`s: for each family of aggregations that could share tables and trees, hashes of
the keys of some tuples, and the conditions that each of them meets. The task reports them beside
its heartbeat. The tuples are thinned and evaluated as those of a batch are
(terascope.physical.statistics). Values are hashed, not codes, so that the samples of several tasks
can be put together.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.columns.dictionary import Ints
from terascope.physical.low_plan import LowPlan
from terascope.physical.statistics.sample_vectors import SampleReader, SampleVectors, union
from terascope.physical.statistics.sampling import Thinning
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.streaming.replan.families import AggregateFamily, families_of

Prints: TypeAlias = NDArray[np.uint32]
"""Half a hash: of 30,000 different values hardly two have the same."""

Flags: TypeAlias = NDArray[np.bool_]

EPOCH: Final = "#epoch"
CONDITION: Final = "?"
"""The first character of the columns of conditions; no key begins with it."""
FAMILY, CHANCE = b"family", b"chance"


@dataclass(frozen=True)
class TupleSample:
    """Some tuples of a family that one task read."""

    family: str
    chance: float
    """That one of its tuples is here."""
    epochs: Ints
    keys: Mapping[str, Prints]
    """By attribute, the hashes of its values."""
    met: Mapping[str, Flags] = field(default_factory=dict)
    """By condition, if the aggregations have several: the tuples that meet it."""

    def __len__(self) -> int:
        return len(self.epochs)

    def to_text(self) -> str:
        """As text."""
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
        """The sample of such a text."""
        table = pa.ipc.open_stream(base64.b64decode(text)).read_all()
        vectors = {name: table.column(name).to_numpy() for name in table.column_names}
        about = table.schema.metadata
        chance = float(json.loads(about[CHANCE]))
        asked = [name for name in vectors if name.startswith(CONDITION)]
        met = {name.removeprefix(CONDITION): vectors.pop(name) for name in asked}
        return TupleSample(about[FAMILY].decode(), chance, vectors.pop(EPOCH), vectors, met)


class Sampler:
    """Draws a sample of the tuples that a task reads, with the same chance for every tuple."""

    def __init__(self, read: str, plan: LowPlan, most: int, seed: int) -> None:
        """`read`: the name of the source read that the plan is of."""
        self._families = families_of(read, plan)
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
