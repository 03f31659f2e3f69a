"""A few of the tuples that a task reads, as statistics want them.

In: every batch of tuples that a task of a micro-batch reads, and the low-level plan without a tree.
Out: `TupleSample`s: for each family of aggregations that could share tables and trees, hashes of
the keys of some of its tuples, and which conditions they meet. The task tells them beside its
heartbeat. Every tuple had the same chance to be among them. What is hashed are values, so that
samples of several tasks can be put together.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.execute.grouping.choices import Choices
from terascope.kernels.codegen.arithmetic_recipes import can_overflow
from terascope.kernels.codegen.program import functions
from terascope.kernels.columns.dictionary import Codes, Hashes, Ints
from terascope.kernels.columns.lanes import Batch, Dictionaries
from terascope.physical.low_plan import LowPlan
from terascope.physical.programs import programs
from terascope.physical.statistics.sample_lanes import codes, union
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.streaming.replan.families import Family, families_of

Prints: TypeAlias = NDArray[np.uint32]
"""Half a hash: of 30,000 different values hardly two have the same."""

Flags: TypeAlias = NDArray[np.bool_]

EPOCH: Final = "#epoch"
CONDITION: Final = "?"
"""What the columns of conditions begin with: no key as GSQL has it does."""
FAMILY, CHANCE = b"family", b"chance"


@dataclass(frozen=True)
class TupleSample:
    """Some tuples of a family that one task read."""

    family: str
    chance: float
    """That one of its tuples is here."""
    epochs: Ints
    keys: Mapping[str, Prints]
    """By attribute."""
    met: Mapping[str, Flags] = field(default_factory=dict)
    """By condition, if the aggregations have several: the tuples that meet it."""

    def __len__(self) -> int:
        return len(self.epochs)

    def told(self) -> str:
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
    def of(told: str) -> TupleSample:
        """What `told` gave."""
        table = pa.ipc.open_stream(base64.b64decode(told)).read_all()
        lanes = {name: table.column(name).to_numpy() for name in table.column_names}
        about = table.schema.metadata
        chance = float(json.loads(about[CHANCE]))
        asked = [name for name in lanes if name.startswith(CONDITION)]
        met = {name.removeprefix(CONDITION): lanes.pop(name) for name in asked}
        return TupleSample(about[FAMILY].decode(), chance, lanes.pop(EPOCH), lanes, met)


class Thinned:
    """Tuples of which each had the same chance to stay, few enough to be kept."""

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._random = np.random.default_rng(seed)
        self.chance = 1.0
        self.batches: list[pa.RecordBatch] = []
        self._kept = 0

    def see(self, columns: pa.RecordBatch) -> None:
        self._keep(columns, self.chance)
        while self._kept > self._most:
            self.chance /= 2
            before, self.batches, self._kept = self.batches, [], 0
            for batch in before:
                self._keep(batch, 0.5)

    def _keep(self, columns: pa.RecordBatch, chance: float) -> None:
        """Drawn by number: a tuple that does not stay costs nothing."""
        count = columns.num_rows
        if chance < 1.0:
            number = int(self._random.binomial(count, chance))
            rows = self._random.choice(count, number, replace=False, shuffle=False)
            columns = columns.take(pa.array(np.sort(rows)))
        if columns.num_rows:
            self._kept += columns.num_rows
            self.batches.append(columns)


class Sampler:
    """Sees all tuples of a task that was asked for a sample."""

    def __init__(self, read: str, plan: LowPlan, most: int, seed: int) -> None:
        """`read`: whose plan it is, by name."""
        self._plan = plan
        self._families = families_of(read, plan)
        self._thinned = Thinned(most, seed)

    def see(self, columns: pa.RecordBatch) -> None:
        if columns.num_rows:
            self._thinned.see(columns)

    def samples(self) -> Iterator[TupleSample]:
        """Of each family that has tuples here."""
        if not self._thinned.batches:
            return
        columns = pa.Table.from_batches(self._thinned.batches).combine_chunks()
        (batch,) = columns.to_batches()
        yield from self._of_families(batch)

    def _of_families(self, columns: pa.RecordBatch) -> Iterator[TupleSample]:
        # By numpy: machine code for so few tuples would take longer to load.
        first, second = programs(self._plan)
        prefilter, derive = functions(first, False)
        _, derive_keys = functions(second, False)
        dictionaries = Dictionaries()
        batch = Batch(columns, dictionaries, first, derive)
        bits: list[Hashes] = [np.empty(len(batch), np.uint64) for _ in range(first.words)]
        if bits:
            lanes = batch.inputs(first.prefilter.inputs)
            with np.errstate(all="ignore"):
                prefilter(len(batch), np.zeros(len(self._plan.predicates), np.int64), *lanes, *bits)
        choices = Choices(first.words)
        chosen = [[choices.of(one).entry for one in family.members] for family in self._families]
        taken = choices.rows(batch, bits)
        keyed = Batch(columns, dictionaries, second, derive_keys)
        for family, entries in zip(self._families, chosen, strict=True):
            sample = self._of_family(family, [taken[one] for one in entries], keyed, dictionaries)
            if sample is not None:
                yield sample

    def _of_family(
        self, family: Family, taken: Sequence[Codes], batch: Batch, dictionaries: Dictionaries
    ) -> TupleSample | None:
        """`taken`: the tuples of each member."""
        query, rows = family.members[0], union(taken, len(batch))
        assert query.epoch is not None
        values, masks = batch.number(query.keys[query.epoch][1], rows)
        rows = rows[masks[rows] != 0]
        if not len(rows):
            return None
        users: dict[str, tuple[Expr, list[Codes]]] = {}
        for one, own in zip(family.members, taken, strict=True):
            for expr in one.plain_keys:
                users.setdefault(show_expr(expr), (expr, []))[1].append(own)
        keys = {
            name: prints(batch, dictionaries, expr, rows, union(own, len(batch)))
            for name, (expr, own) in sorted(users.items(), key=lambda item: item[0])
        }
        met: dict[str, Flags] = {}
        if family.is_mixed:
            for name, own in zip(family.conditions, taken, strict=True):
                if name not in met:
                    met[name] = np.isin(rows, own)
        epochs = values[rows].astype(np.int64)
        return TupleSample(family.key, self._thinned.chance, epochs, keys, met)


def prints(
    batch: Batch, dictionaries: Dictionaries, expr: Expr, rows: Codes, users: Codes
) -> Prints:
    """Of the values of a key, the same in every task. One that may overflow is asked only of the
    tuples of those who have it, as they do; nobody asks for those of others then.
    """
    asked = users if can_overflow(expr) else rows
    found = np.zeros(len(batch), np.uint32)
    if len(asked):
        hashes = dictionaries.of_key(expr).hashes(codes(batch, expr, asked, asked)[asked])
        found[asked] = (hashes >> np.uint64(32)).astype(np.uint32)
    return found[rows]
