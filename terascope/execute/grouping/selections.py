"""The tuples that a query selects, and those that each of its slots takes (dissertation 3.4.2).

In: queries and, batch by batch, the bit vectors of the prefilter. Out: for every different
condition the positions of the tuples that meet it. A predicate that is not a bit of the prefilter
is evaluated at most once for a tuple, however many conditions have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.kernels.columns.arrays import Codes, Hashes, Values, mark, select
from terascope.kernels.columns.batch import VectorBatch
from terascope.physical.low_plan import LowAggregate, LowQuery, Slot, Where
from terascope.plan.expr import Expr

Selection: TypeAlias = int
"""The number of a condition; queries with the same condition have the same number."""


@dataclass(frozen=True)
class Admission:
    """The tuples that enter an aggregation, and those of them that each of its slots takes."""

    entry: Selection
    slots: tuple[Selection, ...]


@dataclass(frozen=True)
class Condition:
    """All bits of a signature, all of the rest and one of the alternatives, if there are any."""

    signature: tuple[int, ...]
    rest: tuple[Expr, ...]
    anyof: tuple[Where, ...] = ()

    def also(self, where: Where) -> Condition:
        """The condition in conjunction with another one."""
        signature = tuple(sorted({*self.signature, *where.signature}))
        rest = tuple(dict.fromkeys((*self.rest, *where.rest)))
        return Condition(signature, rest, () if where in self.anyof else self.anyof)

    @property
    def alternatives(self) -> tuple[Condition, ...]:
        return tuple(self.also(where) for where in self.anyof)

    @property
    def meaning(self) -> object:
        """An identity that does not depend on the order of the parts."""
        return self.signature, frozenset(self.rest), frozenset(self.anyof)


def entry_of(query: LowQuery) -> Condition:
    """The condition of a tuple to enter the table of an aggregation."""
    anyof = query.anyof if isinstance(query, LowAggregate) else ()
    plain = Condition((), ()).also(Where(query.signature, query.rest))
    return Condition(plain.signature, plain.rest, anyof)


def condition_of(query: LowAggregate, slot: Slot) -> Condition:
    """The condition of the tuples whose arguments a slot takes."""
    entry = entry_of(query)
    return entry if slot.where is None else entry.also(slot.where)


class Selections:
    """The different conditions of a plan, numbered."""

    def __init__(self) -> None:
        self._known: dict[object, Selection] = {}
        self._conditions: list[Condition] = []
        self._asking: Counter[Expr] = Counter()
        """The number of conditions with each predicate; alternatives count one by one."""

    def number(self, condition: Condition) -> Selection:
        number = self._known.setdefault(condition.meaning, len(self._conditions))
        if number == len(self._conditions):
            self._conditions.append(condition)
            for one in condition.alternatives or (condition,):
                self._asking.update(one.rest)
        return number

    def of(self, query: LowQuery) -> Admission:
        entry = self.number(entry_of(query))
        if not isinstance(query, LowAggregate):
            return Admission(entry, ())
        return Admission(entry, tuple(self.number(condition_of(query, s)) for s in query.slots))

    def rows(self, batch: VectorBatch, bits: Sequence[Hashes]) -> dict[Selection, Codes]:
        asked = BatchSelections(batch, bits, self._asking)
        return {number: asked.rows(c) for number, c in enumerate(self._conditions)}


class BatchSelections:
    """The conditions of one batch, with the results so far."""

    def __init__(
        self, batch: VectorBatch, bits: Sequence[Hashes], asking: Mapping[Expr, int]
    ) -> None:
        """`asking`: the number of conditions with each predicate. Results of a predicate of a
        single condition are not cached.
        """
        self._batch = batch
        self._asking = asking
        self._bits = bits
        self._rows: dict[object, Codes] = {}
        self._answers: dict[Expr, NDArray[np.int8]] = {}
        """For each tuple whether a predicate is TRUE; -1: not evaluated yet."""

    def rows(self, condition: Condition) -> Codes:
        known = self._rows.get(condition.meaning)
        if known is None:
            known = self._rows[condition.meaning] = self._find(condition)
        return known

    def _find(self, condition: Condition) -> Codes:
        if condition.anyof:
            taken = np.zeros(len(self._batch), np.uint8)
            for one in condition.alternatives:
                mark(self.rows(Condition(one.signature, one.rest)), taken)
            return np.flatnonzero(taken).astype(np.int32)
        rows = select(self._bits, condition.signature, len(self._batch))
        for predicate in condition.rest:
            rows = rows[self._passing(predicate, rows)]
        return rows

    def _passing(self, predicate: Expr, rows: Codes) -> Values:
        if self._asking[predicate] == 1:
            return self._batch.passing(predicate, rows)
        answers = self._answers.get(predicate)
        if answers is None:
            answers = self._answers[predicate] = np.full(len(self._batch), -1, np.int8)
        new = rows[answers[rows] < 0]
        if len(new):
            answers[new] = self._batch.passing(predicate, new)
        return answers[rows] > 0
