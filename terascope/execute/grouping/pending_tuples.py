"""Tuples of many batches, pending until aggregations take them, many at once.

In: batches as they were read, and the selection of each query. Out: one long vector for each key,
argument and epoch. A pending key is held as the codes of its values, which take less memory than
the columns from which the key is computed. Tuples with a FLOAT beyond the ordinary range are set
apart: they do not enter a table, but leave at once as partial groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.execute.grouping.selections import Admission, Selection
from terascope.functions.aggregates.float_sums import FLOAT_DIGIT
from terascope.functions.slots import RANGE
from terascope.kernels.codegen.statements import is_number
from terascope.kernels.columns.arrays import (
    Codes,
    GrowingArray,
    Ints,
    Masks,
    Rows,
    Values,
    Vector,
    all_valid,
    mark,
    validity_of,
)
from terascope.kernels.columns.batch import Facts, VectorBatch
from terascope.kernels.columns.dictionary import NULL_CODE
from terascope.kernels.columns.payload_tests import is_payload_test
from terascope.kernels.columns.task_dictionaries import TaskDictionaries
from terascope.kernels.merge.float_ranges import digits_of, ranges_of
from terascope.kernels.tables.open_table import grouped
from terascope.kernels.tables.partitioned import Apart
from terascope.kernels.tables.slots import Shape, TableColumns
from terascope.physical.low_plan import LowAggregate, Slot
from terascope.plan.expr import Call, Expr, Lit
from terascope.sketches.base import CodedValues

Kind: TypeAlias = Literal["codes", "values", "masks", "states"]
Name: TypeAlias = tuple[Kind, Expr, Selection | None]
"""The name of a vector, with the selection whose tuples alone have values in it, if any."""


@dataclass
class TupleVectors(Facts):
    """The tuples of many batches, as vectors."""

    count: int
    size: int
    """Memory of the vectors."""
    chosen: Mapping[Selection, Codes]
    vectors: Mapping[Name, Values]
    states: Mapping[Expr, pa.Array] = field(default_factory=dict)
    """Columns of packed states."""
    apart_by: tuple[Expr, Ints] | None = None
    """The key by which the tuples are partitioned already, and the starts of the parts."""
    _apart_by: tuple[Codes, Selection] | None = None
    _aparts: dict[int, Apart] = field(default_factory=dict)

    def vector(self, kind: Kind, expr: Expr, selection: Selection) -> Values:
        """The vector that all selections share, or that of one selection."""
        shared = self.vectors.get((kind, expr, None))
        return self.vectors[kind, expr, selection] if shared is None else shared

    def argument(self, slot: Slot, selection: Selection, entry: Selection) -> Vector:
        """The argument of a slot for the tuples of `entry`, of which only those of `selection`
        belong to the slot. For a count only the validity matters.
        """
        expr = slot.argument
        masks = all_valid(self.count) if expr is None else self.vector("masks", expr, selection)
        if selection != entry:
            masks = self._within(masks, selection)
        if expr is None or not slot.kept.reads_value:
            return self.once("no values", np.zeros, self.count, np.int64), masks
        return self.vector("values", expr, selection), masks

    def state_arguments(
        self, slot: Slot, selection: Selection, entry: Selection, dictionaries: TaskDictionaries
    ) -> tuple[list[Any], Masks]:
        """The arguments of a state: numbers, codes with their dictionary, or packed states; and the
        mask of tuples that have all of them.
        """
        arguments: list[Any] = []
        masks = all_valid(self.count)
        for expr in slot.arguments:
            kind = vector_kind(slot, expr)
            if kind == "values":
                arguments.append(self.vector("values", expr, selection))
                valid = self.vector("masks", expr, selection)
            elif kind == "codes":
                codes = self.vector("codes", expr, selection)
                arguments.append(CodedValues(codes, dictionaries.of_key(expr)))
                valid = self.once(("coded", id(codes)), coded_mask, codes)
            else:
                column = self.states[expr]
                arguments.append(column)
                valid = self.once(("packed", id(column)), validity_of, column)
            if masks.base is all_valid(1).base:
                masks = valid
            elif valid.base is not all_valid(1).base:
                both = ("both", id(masks), id(valid))
                masks = self.once(both, np.bitwise_and, masks, valid)
        if selection != entry:
            masks = self._within(masks, selection)
        return arguments, masks

    def _within(self, masks: Masks, selection: Selection) -> Masks:
        """A validity mask, false outside of a selection."""
        inside = self.once(("inside", selection), mask_of, self.chosen[selection], self.count)
        if masks.base is all_valid(1).base:
            return inside
        return self.once(("valid inside", id(masks), selection), np.bitwise_and, masks, inside)

    def is_present(self, masks: Masks) -> bool:
        return masks.base is all_valid(1).base or bool(
            self.once(("gaps", id(masks)), np.all, masks)
        )

    def apart(self, codes: Codes, selection: Selection, some: Codes) -> Apart:
        """Some tuples of a selection, partitioned by one of their keys. Only the last result is
        cached: all of them would need many times the memory of the vectors.
        """
        by = self._apart_by
        if by is None or by[0] is not codes or by[1] != selection:
            self._aparts.clear()
            self._apart_by = codes, selection
        apart = self._aparts.get(id(some))
        if apart is None:
            apart = self._aparts[id(some)] = Apart(codes, some)
        return apart


def coded_mask(codes: Codes) -> Masks:
    return all_valid(len(codes)) if codes.all() else (codes != NULL_CODE).view(np.uint8)


def mask_of(rows: Codes, count: int) -> Masks:
    masks = np.zeros(count, np.uint8)
    mark(rows, masks)
    return masks


class PendingTuples:
    """Vectors that grow batch by batch, for some aggregations.

    Vectors that were taken must be read before more is added: the next tuples reuse the memory.
    """

    def __init__(self, queries: Sequence[tuple[Admission, LowAggregate]]) -> None:
        self._queries = queries
        self._names: dict[Name, list[Selection]] | None = None
        self._vectors: dict[Name, GrowingArray] = {}
        self._states: dict[Expr, list[pa.Array]] = {}
        selections = (c for chosen, _ in queries for c in (chosen.entry, *chosen.slots))
        self._chosen = {selection: GrowingArray(np.int32) for selection in selections}
        self.rows = 0
        self.last_size = 0
        """The memory of the vectors of the last batch."""

    @property
    def size(self) -> int:
        states = sum(int(column.nbytes) for held in self._states.values() for column in held)
        vectors = (*self._vectors.values(), *self._chosen.values())
        return states + sum(vector.size for vector in vectors)

    def add(self, batch: VectorBatch, chosen: Mapping[Selection, Codes]) -> None:
        if self._names is None:
            self._names = vector_names(self._queries, chosen, len(batch))
        before = self.size
        for selection, places in self._chosen.items():
            places.add(chosen[selection])[:] += np.int32(self.rows)
        for name, selections in self._names.items():
            if name[0] == "states":
                column = batch.column(name[1], np.arange(len(batch), dtype=np.int32))
                self._states.setdefault(name[1], []).append(column.cast(pa.large_binary()))
                continue
            piece = self._piece(batch, name, [chosen[selection] for selection in selections])
            if piece is None:
                if name not in self._vectors:
                    continue
                piece = all_valid(len(batch))
            elif name not in self._vectors:
                self._vectors[name] = GrowingArray(piece.dtype)
                if name[0] == "masks":
                    self._vectors[name].add(all_valid(self.rows))
            self._vectors[name].add(piece)
        self.rows += len(batch)
        self.last_size = self.size - before

    def _piece(self, batch: VectorBatch, name: Name, rows: Sequence[Codes]) -> Values | None:
        """The vector of one batch; None for a validity without a gap. Each selection is evaluated,
        because an overflow among its tuples is an error.
        """
        kind, expr, selection = name
        if kind == "codes":
            return batch.key_codes(expr) if selection is None else batch.some_codes(expr, rows[0])
        if kind == "masks":
            known = [batch.validity(expr, some) for some in rows]
            return None if known[0].all() else known[0]
        vectors = [batch.number(expr, some) for some in rows]
        values, _ = vectors[0]
        return values.astype(np.int64) if values.dtype == np.bool_ else values

    def take(self) -> TupleVectors:
        count, size = self.rows, self.size
        chosen = {selection: places.take() for selection, places in self._chosen.items()}
        names = () if self._names is None else self._names
        vectors = {
            n: self._vectors[n].take() if n in self._vectors else all_valid(count)
            for n in names
            if n[0] != "states"
        }
        states = {expr: pa.concat_arrays(held) for expr, held in self._states.items()}
        self._states.clear()
        for name in [name for name in self._vectors if name[0] == "masks"]:
            del self._vectors[name]
        self.rows = 0
        return TupleVectors(count, size, chosen, vectors, states)


def vector_names(
    queries: Sequence[tuple[Admission, LowAggregate]], rows: Mapping[Selection, Codes], count: int
) -> dict[Name, list[Selection]]:
    """The vectors that queries read, and for each the selections whose tuples must have values. A
    key that only a few tuples need is not computed for the others.
    """
    common = {
        expr
        for chosen, query in queries
        for expr in query.plain_keys
        if not is_number(expr.type) or 2 * len(rows[chosen.entry]) >= count
    }
    names: dict[Name, list[Selection]] = {}

    def want(kind: Kind, expr: Expr, selection: Selection, shared: bool) -> None:
        names.setdefault((kind, expr, None if shared else selection), []).append(selection)

    for chosen, query in queries:
        for expr in query.plain_keys:
            want("codes", expr, chosen.entry, expr in common)
        for expr, kind, selection in arguments(query, chosen):
            if kind == "codes" or kind == "states":
                want(kind, expr, selection, True)
                continue
            if kind == "values":
                want("values", expr, selection, not is_payload_test(expr))
            want("masks", expr, selection, not is_payload_test(expr))
    return names


def arguments(query: LowAggregate, chosen: Admission) -> list[tuple[Expr, Kind, Selection]]:
    """A query's arguments: which of their vectors is read, and of which tuples. The values of a
    number come with its mask.
    """
    slots: list[tuple[Expr, Kind, Selection]] = [
        (expr, vector_kind(slot, expr), selection)
        for slot, selection in reading_slots(query, chosen)
        for expr in slot.arguments
    ]
    if query.epoch is None:
        return slots
    return [*slots, (query.keys[query.epoch][1], "values", chosen.entry)]


def vector_kind(slot: Slot, expr: Expr) -> Kind:
    """The vector that a slot reads of an argument."""
    state = slot.kept.state
    if state is None:
        return "values" if slot.kept.reads_value else "masks"
    if state.from_states:
        return "states"
    return "values" if is_number(expr.type) else "codes"


def reading_slots(query: LowAggregate, chosen: Admission) -> list[tuple[Slot, Selection]]:
    """The slots whose kernels read vectors, in their order, with the selection of each."""
    pairs = zip(query.slots, chosen.slots, strict=True)
    return [(slot, selection) for slot, selection in pairs if slot.kept.takes_argument]


# ---- tuples that do not enter a table ------------------------------------------------------------


def set_apart(
    tuples: TupleVectors, rows: Codes, query: LowAggregate, columns: TableColumns, shape: Shape
) -> tuple[Codes, TableColumns, Codes, Rows]:
    """Separate the tuples that do not enter a table, because a FLOAT to be summed is beyond the
    ordinary range. Returns the tuples that enter, and the columns without ranges; the others, and
    for each a row of its own, a partial group (terascope.kernels.merge.float_ranges). `query`: as
    its table reads it; `shape`: the shape of the groups in it.
    """
    slots = [slot for slot in query.slots if slot.kept.takes_argument]
    nothing = tuples.once("no values", np.zeros, tuples.count, np.int64)
    values: list[Values] = []
    found: dict[Expr, tuple[Values, Ints]] = {}
    beyond = np.zeros(len(rows), np.bool_)
    for slot, vector, masks in zip(slots, columns.values, columns.masks, strict=True):
        values.append(nothing if slot.kept == RANGE else vector)
        if slot.kept == RANGE:
            ranges = tuples.once(("ranges", id(vector)), ranges_of, vector)
            if ranges is not None:
                assert slot.argument is not None
                found[slot.argument] = vector, ranges
                beyond |= (ranges[rows] != 0) & (masks[rows] != 0)
    entering = replace(columns, values=values)
    if not beyond.any():
        return rows, entering, rows[:0], np.empty((0, shape.stride), np.int64)
    apart = rows[beyond]
    groups = lone_groups(apart, slots, columns, found, shape)
    return rows[~beyond], entering, apart, groups


def lone_groups(
    apart: Codes,
    slots: Sequence[Slot],
    columns: TableColumns,
    found: Mapping[Expr, tuple[Values, Ints]],
    shape: Shape,
) -> Rows:
    """A group for each of some tuples."""
    digits = {
        expr: digits_of(np.ascontiguousarray(vector[apart]), np.ascontiguousarray(ranges[apart]))
        for expr, (vector, ranges) in found.items()
        if vector.dtype == np.float64
    }
    values: list[Values] = []
    for slot, vector in zip(slots, columns.values, strict=True):
        own = vector[apart]
        match slot.argument:
            case expr if expr is not None and slot.kept == RANGE:
                own = found[expr][1][apart] if expr in found else np.zeros(len(apart), np.int64)
            case Call(function, (expr, Lit(value=int(place)))) if function == FLOAT_DIGIT:
                if expr in digits:
                    own = np.where(found[expr][1][apart] == 0, own, digits[expr][place])
        values.append(own)
    codes = [code[apart] for code in columns.codes]
    lone = TableColumns(codes, values, [mask[apart] for mask in columns.masks])
    each = np.arange(len(apart))
    return grouped(shape, each.astype(np.int32), each, lone)
