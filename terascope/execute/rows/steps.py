"""The last steps of a query without Spark: conditions, projections and ranks of finished rows.

In: the columns of a low-level stream, groups merged, or the blocks of finished groups. Out: the
columns of a query that filters or projects them, so that a task can write its rows itself. Most
groups fail a HAVING or are not among the first; decoding their keys, only to drop them, takes
longer than computing the groups. So the first conditions of a query, and its rank, reduce groups
before these become columns (`Early`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.execute.rows.collect import hopes
from terascope.functions.base import Scalar, ValueMistake
from terascope.functions.roles import Comparator
from terascope.kernels.codegen.program import numpy_function
from terascope.kernels.codegen.statements import InputKind
from terascope.kernels.columns.arrays import Codes, Flags, Rows, all_valid, decoded
from terascope.kernels.columns.batch import FinishedRows, evaluated
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.finish import Numbers, columns, result_columns
from terascope.kernels.merge.groups import Block, GroupFields, rows_at
from terascope.machine_code import INTEGER, compiled_for, output
from terascope.machine_code import column as column_of
from terascope.physical.row_pipeline import (
    Compute,
    Keep,
    RowPipeline,
    Step,
    Top,
    columns_read,
    origin,
    picked,
)
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of, substitute
from terascope.plan.rel import Field
from terascope.types import INT_MAX, INT_MIN, Type


def run_steps(steps: Sequence[Step], batch: pa.RecordBatch) -> pa.RecordBatch:
    for step in steps:
        rows = FinishedRows(batch)
        match step:
            case Keep(predicate):
                batch = batch.filter(pa.array(rows.passing(predicate)))
            case Compute(items):
                made = [rows.column(expr) for _, expr in items]
                batch = pa.RecordBatch.from_arrays(made, [name for name, _ in items])
    return batch


def admitted(tuples: pa.RecordBatch, predicate: Expr) -> pa.RecordBatch:
    """The tuples that some query may select: those for which a predicate is TRUE. The queries keep
    their own filters above, so all tuples pass where the predicate has no value, as after an
    integer overflow: the query that meets the overflow reports it.
    """
    try:
        return run_steps([Keep(predicate)], tuples)
    except ValueMistake:
        return tuples


def plain_column(column: pa.Array, type: Type) -> pa.Array:
    """A column without a dictionary, as Arrow holds values of a type."""
    return decoded(column).cast(arrow_type(type))


def batch_of(batches: Iterable[pa.RecordBatch], fields: Sequence[Field]) -> pa.RecordBatch:
    """Batches with the columns of `fields`, in this order, as one, without dictionaries."""
    schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
    found = [
        pa.RecordBatch.from_arrays(
            [plain_column(c, f.type) for c, f in zip(batch.columns, fields, strict=True)],
            schema=schema,
        )
        for batch in batches
    ]
    if len(found) == 1:
        return found[0]
    empty = pa.RecordBatch.from_arrays([pa.array([], t) for t in schema.types], schema=schema)
    return pa.concat_batches([*found, empty])


# ---- on groups -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FirstRows:
    """Selects the rows of an epoch that can be among the first, by one number."""

    place: int
    descending: bool
    limit: int

    def of(self, block: Block, fields: GroupFields) -> Block:
        if len(block.rows) <= 4 * self.limit * len(block.epochs) or self.limit < 1:
            return block
        (column,) = result_columns([block], fields, (), (self.place,))
        assert isinstance(column, Numbers)
        if column.valid is not None:
            return block
        values = np.ascontiguousarray(column.values)
        return block.passing(hopes(values, block.ends, self.limit, self.descending))


@dataclass(frozen=True)
class Early:
    """A row pipeline over groups, with its first conditions separated."""

    fields: GroupFields
    conditions: tuple[Expr, ...]
    first: FirstRows | None
    rest: RowPipeline
    """The pipeline without its first conditions."""
    read: tuple[int, ...]
    """The places of the columns that it reads."""
    picked: tuple[int, ...] | None
    """The columns of the remaining groups, when the pipeline only picks columns."""

    def reduced(self, block: Block, dictionaries: Sequence[Dictionary]) -> Block:
        for condition in self.conditions:
            block = self._passing(condition, block, dictionaries)
        return block if self.first is None else self.first.of(block, self.fields)

    def columns(self, block: Block, dictionaries: Sequence[Dictionary]) -> pa.RecordBatch:
        """The columns of reduced groups after the steps of the pipeline."""
        return run_steps(
            self.rest.steps, columns([block], self.fields, dictionaries, places=self.read)
        )

    def _passing(self, condition: Expr, block: Block, dictionaries: Sequence[Dictionary]) -> Block:
        limits = limits_of(condition, self.fields)
        if limits is not None:
            found = places_within(block.rows, limits)
            return block.picked(found, rows_at(block.rows, found))
        kept = passing_numbers(condition, block, self.fields)
        if kept is not None:
            return block.passing(kept)
        places = places_of(columns_of(condition), self.fields)
        made = columns([block], self.fields, dictionaries, places=places)
        return block.passing(np.asarray(FinishedRows(made).passing(condition)))


def early(program: RowPipeline, fields: GroupFields) -> Early:
    """A row pipeline over the groups of a stream, as `Early`."""
    conditions, steps = conditions_first(program.steps)
    rest = replace(program, steps=steps)
    plain = not any(isinstance(step, Keep) for step in rest.steps)
    first = first_of(rest, fields) if plain else None
    read = places_of(columns_read(rest), fields)
    places = None if first is not None else picked(rest, [f.name for f in fields.fields])
    return Early(fields, conditions, first, rest, read, places)


def conditions_first(steps: Sequence[Step]) -> tuple[tuple[Expr, ...], tuple[Step, ...]]:
    """The first conditions of a pipeline, as conditions on groups, and the other steps: columns may
    be renamed in between.
    """
    conditions: list[Expr] = []
    names: dict[str, Expr] = {}
    done = 0
    for step in steps:
        if isinstance(step, Keep):
            conditions.append(substitute(step.predicate, names))
        elif all(isinstance(expr, Col) for _, expr in step.items):
            names = {name: substitute(expr, names) for name, expr in step.items}
        else:
            break
        done += 1
    renamed: tuple[Step, ...] = (Compute(tuple(names.items())),) if names else ()
    return tuple(conditions), (*renamed, *steps[done:])


Limits: TypeAlias = tuple[int, int, int, int]
"""A slot must have a value from a least to a most: its place in a row, its state bit, or 0 where it
has none, and both limits."""


def limits_of(condition: Expr, fields: GroupFields) -> Limits | None:
    """A comparison of an integer slot with a constant, as most conditions of a HAVING are."""
    match condition:
        case Call(Scalar(role=Comparator() as role), (Col(name, type), Lit(value=int(value)))) if (
            type.is_integer
        ):
            slots = [i for i, field in enumerate(fields.slots) if field.name == name]
            if not slots or (role.less and role.greater):
                return None
            least = INT_MIN if role.less else value if role.equal else value + 1
            most = INT_MAX if role.greater else value if role.equal else value - 1
            least, most = max(least, INT_MIN), min(most, INT_MAX)
            if least > INT_MAX or most < INT_MIN:
                least, most = 1, 0
            bit = 1 + slots[0] if fields.shape.slots[slots[0]].is_nullable else 0
            return fields.shape.slot(slots[0]), bit, least, most
    return None


def places_within(rows: Rows, limits: Limits) -> Codes:
    places = np.empty(len(rows), np.int32)
    return places[: find_within(rows, *limits, places)]


@compiled_for(column_of(np.int64, 2), INTEGER, INTEGER, INTEGER, INTEGER, output(np.int32))
def find_within(
    rows: Rows, place: int, bit: int, least: int, most: int, places: Codes
) -> np.uint64:
    """Branch-free: a row that does not pass is overwritten by the next."""
    found = np.uint64(0)
    for i in range(len(rows)):
        places[found] = i
        value = rows[i, place]
        passes = (least <= value) & (value <= most) & ((rows[i, 0] >> bit) & 1 == 1)
        found += np.uint64(passes)
    return found


def passing_numbers(condition: Expr, block: Block, fields: GroupFields) -> Flags | None:
    """The groups for which a condition on slots alone is TRUE, from their rows; None for other
    conditions.
    """
    slots = {f.name: len(fields.keys) + i for i, f in enumerate(fields.slots)}
    wanted, _ = numpy_function(condition)
    vectors: list[Any] = []
    for one in wanted:
        if one.source is not InputKind.NUMBER or one.expr.type is Type.BOOL:
            return None
        place = slots.get(one.expr.name) if isinstance(one.expr, Col) else None
        if place is None:
            return None
        (column,) = result_columns([block], fields, (), (place,))
        assert isinstance(column, Numbers)
        valid = all_valid(len(block.rows)) if column.valid is None else column.valid.view(np.uint8)
        vectors += [column.values if column.valid is None else column.values * column.valid, valid]
    values, present = evaluated(condition, vectors, len(block.rows))
    return np.asarray((values != 0) & present)


def first_of(program: RowPipeline, fields: GroupFields) -> FirstRows | None:
    """The first rows of a pipeline that ranks each epoch by an integer column of the groups."""
    top = program.whole
    if not isinstance(top, Top) or fields.epoch is None or not top.order:
        return None
    epoch = fields.keys[fields.epoch].name
    if any(origin(program, name) != epoch for name in top.per):
        return None
    criterion, descending = top.order[0]
    if not isinstance(criterion, Col) or not criterion.type.is_integer:
        return None
    slots = {f.name: len(fields.keys) + i for i, f in enumerate(fields.slots)}
    place = slots.get(origin(program, criterion.name) or "")
    return None if place is None else FirstRows(place, descending, top.limit)


def places_of(names: frozenset[str] | None, fields: GroupFields) -> tuple[int, ...]:
    """The places of columns; at least one, because a batch without columns has no rows."""
    found = tuple(i for i, f in enumerate(fields.fields) if names is None or f.name in names)
    return found or (0,)
