"""A few of the tuples that a task reads, as statistics want them.

In: every batch of tuples that a task of a micro-batch reads, and the low-level plan without a tree.
Out: `TupleSample`s: for each family of aggregations that could be one tree, hashes of the keys of
some of its tuples, which the task tells beside its heartbeat. Every tuple had the same chance to be
among them. What is hashed are values, so that samples of several tasks can be put together.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.low.choices import Choices
from terascope.low.dictionary import Codes, Hashes, Ints
from terascope.low.lanes import Batch, Dictionaries
from terascope.low.plan import LowPlan
from terascope.low.program import functions, programs
from terascope.low.sample_lanes import codes
from terascope.plan.expr import Expr
from terascope.plan.show import show_expr
from terascope.stream.tree_plans import families_of

Prints: TypeAlias = NDArray[np.uint32]
"""Half a hash: of 30,000 different values hardly two have the same."""

EPOCH: Final = "#epoch"
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

    def __len__(self) -> int:
        return len(self.epochs)

    def told(self) -> str:
        """As text."""
        table = pa.table({EPOCH: self.epochs, **self.keys})
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
        return TupleSample(about[FAMILY].decode(), chance, lanes.pop(EPOCH), lanes)


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
        chosen = [choices.of(family.members[0]).entry for family in self._families]
        taken = choices.rows(batch, bits)
        keyed = Batch(columns, dictionaries, second, derive_keys)
        for family, choice in zip(self._families, chosen, strict=True):
            query, rows = family.members[0], taken[choice]
            assert query.epoch is not None
            values, masks = keyed.number(query.keys[query.epoch][1], rows)
            rows = rows[masks[rows] != 0]
            if not len(rows):
                continue
            exprs = {show_expr(expr): expr for one in family.members for expr in one.plain_keys}
            keys = {
                name: prints(keyed, dictionaries, expr, rows)
                for name, expr in sorted(exprs.items(), key=lambda item: item[0])
            }
            epochs = values[rows].astype(np.int64)
            yield TupleSample(family.key, self._thinned.chance, epochs, keys)


def prints(batch: Batch, dictionaries: Dictionaries, expr: Expr, rows: Codes) -> Prints:
    """Of the values of a key, the same in every task."""
    found = codes(batch, expr, rows, rows)[rows]
    hashes = dictionaries.of_key(expr).hashes(found)
    return (hashes >> np.uint64(32)).astype(np.uint32)
