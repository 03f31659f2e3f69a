"""What aggregations read of many batches, put together: they want many tuples of an epoch at once.

In: batches as they were read, and which of their tuples were chosen. Out: one long lane for each
key, argument and epoch. A key waits as the codes of its values, which take less memory than the
columns it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from terascope.execute.grouping.choices import Choice, Chosen
from terascope.kernels.codegen.terms import is_number
from terascope.kernels.columns.dictionary import Codes, Ints, Masks, all_valid
from terascope.kernels.columns.lanes import Batch, Facts, Lane, Values
from terascope.kernels.columns.lengthening import Lengthening
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.kernels.columns.selection import mark
from terascope.kernels.tables.partitioned import Apart
from terascope.physical.low_plan import LowAggregate, Slot
from terascope.plan.expr import Expr

Kind: TypeAlias = Literal["codes", "values", "masks"]
Name: TypeAlias = tuple[Kind, Expr, Choice | None]
"""Of a lane; with a choice where only the tuples of that choice have values in it."""


@dataclass
class Gathered(Facts):
    """The tuples of many batches, as lanes."""

    count: int
    size: int
    """Memory of the lanes."""
    chosen: Mapping[Choice, Codes]
    lanes: Mapping[Name, Values]
    apart_by: tuple[Expr, Ints] | None = None
    """The key by which all of them, of one epoch, are apart already, and where the parts begin."""
    _facts: dict[object, tuple[Any, ...]] = field(default_factory=dict)
    _apart_by: tuple[Codes, Choice] | None = None
    _aparts: dict[int, Apart] = field(default_factory=dict)

    def codes(self, expr: Expr, choice: Choice) -> Codes:
        """Codes of a group key."""
        return self._lane("codes", expr, choice)

    def number(self, expr: Expr, choice: Choice) -> Lane:
        return self._lane("values", expr, choice), self._lane("masks", expr, choice)

    def validity(self, expr: Expr, choice: Choice) -> Masks:
        """Where a value of any type is not NULL."""
        return self._lane("masks", expr, choice)

    def _lane(self, kind: Kind, expr: Expr, choice: Choice) -> Values:
        shared = self.lanes.get((kind, expr, None))
        return self.lanes[kind, expr, choice] if shared is None else shared

    def argument(self, slot: Slot, choice: Choice, entry: Choice) -> Lane:
        """What a slot takes of the tuples of `entry`: only those of `choice` are its own. Of what
        is merely counted only the validity matters.
        """
        expr = slot.argument
        masks = all_valid(self.count) if expr is None else self.validity(expr, choice)
        if choice != entry:
            masks = self._within(masks, choice)
        if expr is None or not slot.kept.reads_value:
            return self.once("no values", np.zeros, self.count, np.int64), masks
        return self._lane("values", expr, choice), masks

    def _within(self, masks: Masks, choice: Choice) -> Masks:
        """A validity, but nothing is valid outside a choice."""
        inside = self.once(("inside", choice), mask_of, self.chosen[choice], self.count)
        if masks.base is all_valid(1).base:
            return inside
        return self.once(("valid inside", id(masks), choice), np.bitwise_and, masks, inside)

    def is_present(self, masks: Masks) -> bool:
        """Whether a validity has no gap."""
        return masks.base is all_valid(1).base or self.once(("gaps", id(masks)), all_of, masks)

    def apart(self, codes: Codes, choice: Choice, some: Codes) -> Apart:
        """Some tuples of a choice, apart by one of their keys. Kept until others are wanted, or
        another key: all of them would need many times the memory of the lanes.
        """
        by = self._apart_by
        if by is None or by[0] is not codes or by[1] != choice:
            self._aparts.clear()
            self._apart_by = codes, choice
        apart = self._aparts.get(id(some))
        if apart is None:
            apart = self._aparts[id(some)] = Apart(codes, some)
        return apart


def all_of(masks: Masks) -> bool:
    return bool(masks.all())


def mask_of(rows: Codes, count: int) -> Masks:
    masks = np.zeros(count, np.uint8)
    mark(rows, masks)
    return masks


class Gathering:
    """Lanes that grow batch by batch, for some aggregations.

    What was taken is read before more is added: the next tuples come to the same memory.
    """

    def __init__(self, queries: Sequence[tuple[Chosen, LowAggregate]]) -> None:
        self._queries = queries
        self._names: dict[Name, list[Choice]] | None = None
        self._lanes: dict[Name, Lengthening] = {}
        choices = (c for chosen, _ in queries for c in (chosen.entry, *chosen.slots))
        self._chosen = {choice: Lengthening(np.int32) for choice in choices}
        self.rows = 0
        self.last_size = 0
        """Memory of the last batch's part."""

    @property
    def size(self) -> int:
        return sum(lane.size for lane in (*self._lanes.values(), *self._chosen.values()))

    def add(self, batch: Batch, chosen: Mapping[Choice, Codes]) -> None:
        if self._names is None:
            self._names = lane_names(self._queries, chosen, len(batch))
        before = self.size
        for choice, places in self._chosen.items():
            places.add(chosen[choice])[:] += np.int32(self.rows)
        for name, choices in self._names.items():
            piece = self._piece(batch, name, [chosen[choice] for choice in choices])
            if piece is None:
                if name not in self._lanes:
                    continue
                piece = all_valid(len(batch))
            elif name not in self._lanes:
                self._lanes[name] = Lengthening(piece.dtype)
                if name[0] == "masks":
                    self._lanes[name].add(all_valid(self.rows))
            self._lanes[name].add(piece)
        self.rows += len(batch)
        self.last_size = self.size - before

    def _piece(self, batch: Batch, name: Name, rows: Sequence[Codes]) -> Values | None:
        """None for a validity of which there is nothing to say: all are valid. Each choice is asked
        for: an overflow among its tuples is an error.
        """
        kind, expr, choice = name
        if kind == "codes":
            return batch.key_codes(expr) if choice is None else batch.some_codes(expr, rows[0])
        if kind == "masks":
            known = [batch.validity(expr, some) for some in rows]
            return None if known[0].all() else known[0]
        lanes = [batch.number(expr, some) for some in rows]
        values, _ = lanes[0]
        return values.astype(np.int64) if values.dtype == np.bool_ else values

    def take(self) -> Gathered:
        """All of it; nothing is left."""
        count, size = self.rows, self.size
        chosen = {choice: places.take() for choice, places in self._chosen.items()}
        names = () if self._names is None else self._names
        lanes = {n: self._lanes[n].take() if n in self._lanes else all_valid(count) for n in names}
        for name in [name for name in self._lanes if name[0] == "masks"]:
            del self._lanes[name]
        self.rows = 0
        return Gathered(count, size, chosen, lanes)


def lane_names(
    queries: Sequence[tuple[Chosen, LowAggregate]], rows: Mapping[Choice, Codes], count: int
) -> dict[Name, list[Choice]]:
    """The lanes that queries read, and whose tuples must have values in each. A key of which only
    few tuples are wanted is not made of the others, if nobody else wants it.
    """
    common = {
        expr
        for chosen, query in queries
        for expr in query.plain_keys
        if not is_number(expr.type) or 2 * len(rows[chosen.entry]) >= count
    }
    names: dict[Name, list[Choice]] = {}

    def want(kind: Kind, expr: Expr, choice: Choice, shared: bool) -> None:
        names.setdefault((kind, expr, None if shared else choice), []).append(choice)

    for chosen, query in queries:
        for expr in query.plain_keys:
            want("codes", expr, chosen.entry, expr in common)
        for expr, valued, choice in arguments(query, chosen):
            if valued:
                want("values", expr, choice, not is_payload_test(expr))
            want("masks", expr, choice, not is_payload_test(expr))
    return names


def arguments(query: LowAggregate, chosen: Chosen) -> list[tuple[Expr, bool, Choice]]:
    """What a query reads as numbers, whether more of it than its validity, and of which tuples."""
    slots = [
        (slot.argument, slot.kept.reads_value, choice)
        for slot, choice in reading_slots(query, chosen)
        if slot.argument is not None
    ]
    if query.epoch is None:
        return slots
    return [*slots, (query.keys[query.epoch][1], True, chosen.entry)]


def reading_slots(query: LowAggregate, chosen: Chosen) -> list[tuple[Slot, Choice]]:
    """The slots whose kernels read lanes, in their order, and whose tuples each takes."""
    pairs = zip(query.slots, chosen.slots, strict=True)
    return [(slot, choice) for slot, choice in pairs if slot.kept.takes_argument]
