"""The evaluation of a plan on the tuples of a sample.

In: batches of tuples. Out: `SampleVectors`: the tuples that each query takes, and the codes of
every key. The predicates and the programs are those that a task runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.analysis.order import FINENESS
from terascope.functions.base import ValueMistake
from terascope.kernels.codegen.program import WORD, functions
from terascope.kernels.codegen.statements import is_number
from terascope.kernels.columns.arrays import Codes, Hashes, Ints, numbers, select
from terascope.kernels.columns.batch import VectorBatch
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery, Where, programs
from terascope.plan.expr import Expr

Flags: TypeAlias = NDArray[np.bool_]
Seconds: TypeAlias = NDArray[np.float64]

TICKS: Final[Mapping[str, int]] = {str(unit): ticks for unit, ticks in FINENESS.items()}
"""The ticks of a second."""


@dataclass(frozen=True)
class SampleVectors:
    """The tuples of a sample."""

    count: int
    predicates: tuple[int, ...]
    """The number of tuples that pass each predicate of the prefilter."""
    passed: tuple[Ints, ...]
    """The mask of the tuples that each query takes."""
    keys: Mapping[Expr, Codes]
    """Codes of the keys, for tuples that some aggregation takes; epochs are not among them."""
    epochs: Mapping[Expr, tuple[Ints, Flags]]
    """Values of the keys that are epochs, with the mask of valid values."""
    clock: Seconds | None
    """The time of each tuple; None when there is no clock column."""


class SampleReader:
    """Collects the vectors of batches."""

    def __init__(self, plan: LowPlan) -> None:
        self._plan = plan
        self._first, self._second = programs(plan)
        # A sample is too small to compile anything for.
        self._prefilter, self._derive = functions(self._first, compiled=False)
        _, self._derive_keys = functions(self._second, compiled=False)
        self._dictionaries = TaskDictionaries()
        self._clock = next((column for column in plan.columns if column.clock is not None), None)
        self._aggregations: list[int] = []
        self._key_users: dict[Expr, list[int]] = {}
        self._epoch_users: dict[Expr, list[int]] = {}
        for place, query in enumerate(plan.queries):
            if isinstance(query, LowAggregate):
                self._aggregations.append(place)
                for i, (_, expr) in enumerate(query.keys):
                    users = self._epoch_users if i == query.epoch else self._key_users
                    users.setdefault(expr, []).append(place)
        self._count = 0
        self._predicates = np.zeros(len(plan.predicates), np.int64)
        self._passed: list[list[Ints]] = [[] for _ in plan.queries]
        self._keys: dict[Expr, list[Codes]] = {expr: [] for expr in self._key_users}
        self._epochs: dict[Expr, list[tuple[Ints, Flags]]] = {e: [] for e in self._epoch_users}
        self._times: list[Seconds] = []

    def add(self, columns: pa.RecordBatch) -> None:
        batch = VectorBatch(columns, self._dictionaries, self._first, self._derive)
        chosen = self._chosen(batch)
        for own, rows in zip(self._passed, chosen, strict=True):
            own.append(rows.astype(np.int64) + self._count)
        keyed = VectorBatch(columns, self._dictionaries, self._second, self._derive_keys)
        somebody = union([chosen[p] for p in self._aggregations], len(batch))
        for expr, places in self._key_users.items():
            users = union([chosen[p] for p in places], len(batch))
            self._keys[expr].append(codes(keyed, expr, somebody, users))
        for expr, places in self._epoch_users.items():
            users = union([chosen[p] for p in places], len(batch))
            values, masks = keyed.number(expr, users)
            self._epochs[expr].append((values.astype(np.int64), masks != 0))
        if self._clock is not None and self._clock.clock is not None:
            ticks, _ = numbers(columns.column(self._clock.name), self._clock.type)
            self._times.append(ticks / TICKS[self._clock.clock])
        self._count += len(batch)

    def _chosen(self, batch: VectorBatch) -> list[Codes]:
        """The tuples of each query, selected as in a task."""
        bits = batch.prefilter_bits(self._prefilter, np.zeros_like(self._predicates))
        for bit in range(len(self._predicates)):
            self._predicates[bit] += passing(bits, bit)
        known: dict[Where, Codes] = {}

        def meeting(where: Where) -> Codes:
            if where not in known:
                rows = select(bits, where.signature, len(batch))
                for predicate in where.rest:
                    rows = rows[batch.passing(predicate, rows)]
                known[where] = rows
            return known[where]

        return [
            union([meeting(where) for where in alternatives(query)], len(batch))
            for query in self._plan.queries
        ]

    def hashes(self, expr: Expr, codes: Codes) -> Hashes:
        """The hashes of the values of a key, by its codes."""
        return self._dictionaries.of_key(expr).hashes(codes)

    def vectors(self) -> SampleVectors:
        return SampleVectors(
            count=self._count,
            predicates=tuple(int(n) for n in self._predicates),
            passed=tuple(joined(rows, np.int64) for rows in self._passed),
            keys={expr: joined(pieces, np.int32) for expr, pieces in self._keys.items()},
            epochs={
                expr: (joined([v for v, _ in some], np.int64), joined([m for _, m in some], bool))
                for expr, some in self._epochs.items()
            },
            clock=None if self._clock is None else joined(self._times, np.float64),
        )


def alternatives(query: LowQuery) -> list[Where]:
    """The conditions of which a tuple of a query meets at least one."""
    either = query.anyof if isinstance(query, LowAggregate) else ()
    own = Where(query.signature, query.rest)
    return [Where((*own.signature, *one.signature), (*own.rest, *one.rest)) for one in either] or [
        own
    ]


def passing(bits: Sequence[Hashes], bit: int) -> int:
    """The number of tuples that have a bit."""
    wanted = np.uint64(1 << (bit % WORD))
    return int(np.count_nonzero(bits[bit // WORD] & wanted))


def codes(batch: VectorBatch, expr: Expr, somebody: Codes, users: Codes) -> Codes:
    """The codes of a key, for the tuples of all aggregations, because shared plans are considered.
    A key that overflows for tuples of others is computed for its own tuples.
    """
    if not is_number(expr.type):
        return batch.key_codes(expr)
    try:
        return batch.some_codes(expr, somebody)
    except ValueMistake:
        return batch.some_codes(expr, users)


def union(chosen: Sequence[NDArray[Any]], count: int) -> Codes:
    """The mask of the tuples of any, out of this many."""
    different = list({id(rows): rows for rows in chosen}.values())
    if len(different) == 1:
        return different[0]
    taken = np.zeros(count, np.bool_)
    for rows in different:
        taken[rows] = True
    return np.flatnonzero(taken).astype(np.int32)


def joined(pieces: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *pieces])
