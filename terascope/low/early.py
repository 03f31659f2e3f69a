"""What a query asks of groups before they become columns.

In: blocks of finished groups. Out: the rows that a query has use for, and of these the columns that
it reads. Most groups fail a HAVING or are not among the first; to make columns of their keys, only
to drop them, takes longer than to compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from terascope.low.dictionary import Dictionary
from terascope.low.finish import Numbers, columns, result_columns
from terascope.low.groups import Block, GroupFields
from terascope.low.lanes import Batch, Dictionaries
from terascope.low.nothing import NOTHING
from terascope.low.regroup import Regroup
from terascope.low.rows import Compute, Keep, RowProgram, origin
from terascope.low.top import Top
from terascope.plan.expr import Col, Expr, columns_of


@dataclass(frozen=True)
class First:
    """The rows of an epoch that can be among the first: by one number."""

    place: int
    descending: bool
    limit: int

    def of(self, block: Block, fields: GroupFields) -> Block:
        if len(block.rows) <= 4 * self.limit or self.limit < 1:
            return block
        (column,) = result_columns([block], fields, (), (self.place,))
        assert isinstance(column, Numbers)
        if column.valid is not None:
            return block
        values = np.ascontiguousarray(column.values)
        if self.descending:
            edge = np.partition(values, len(values) - self.limit)[len(values) - self.limit]
            return Block(block.epoch, block.rows[values >= edge])
        edge = np.partition(values, self.limit - 1)[self.limit - 1]
        return Block(block.epoch, block.rows[values <= edge])


@dataclass(frozen=True)
class Early:
    """A program over groups, taken apart."""

    fields: GroupFields
    conditions: tuple[Expr, ...]
    first: First | None
    rest: RowProgram
    """The program without the conditions it begins with."""
    read: tuple[int, ...]
    """The places of the columns it reads."""

    def __call__(self, block: Block, dictionaries: Sequence[Dictionary]) -> pa.RecordBatch:
        """The rows of a block after the steps of the program."""
        for condition in self.conditions:
            block = self._passing(condition, block, dictionaries)
        if self.first is not None:
            block = self.first.of(block, self.fields)
        return self.rest(columns([block], self.fields, dictionaries, places=self.read))

    def _passing(self, condition: Expr, block: Block, dictionaries: Sequence[Dictionary]) -> Block:
        places = places_of(columns_of(condition), self.fields)
        made = columns([block], self.fields, dictionaries, places=places)
        batch = Batch(made, Dictionaries(), NOTHING, lambda *_: None)
        kept = batch.passing(condition, np.arange(len(block.rows), dtype=np.int32))
        return Block(block.epoch, block.rows[kept])


def early(program: RowProgram, fields: GroupFields) -> Early:
    """A program over the groups of a stream, as `Early`."""
    leading = 0
    while leading < len(program.steps) and isinstance(program.steps[leading], Keep):
        leading += 1
    conditions = tuple(s.predicate for s in program.steps[:leading] if isinstance(s, Keep))
    rest = replace(program, steps=program.steps[leading:])
    plain = not any(isinstance(step, Keep) for step in rest.steps)
    first = first_of(rest, fields) if plain else None
    return Early(fields, conditions, first, rest, places_of(columns_read(rest), fields))


def first_of(program: RowProgram, fields: GroupFields) -> First | None:
    """Of a program that ranks each epoch, by an integer that is a column of the groups."""
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
    return None if place is None else First(place, descending, top.limit)


def columns_read(program: RowProgram) -> frozenset[str] | None:
    """The columns of the stream that a program reads; None: all."""
    found: set[str] = set()
    for step in program.steps:
        if isinstance(step, Compute):
            return frozenset(found.union(*(columns_of(expr) for _, expr in step.items)))
        found |= columns_of(step.predicate)
    if isinstance(program.whole, Regroup):
        arguments = (s.argument for s in program.whole.slots if s.argument is not None)
        expressions = [*(expr for _, expr in program.whole.keys), *arguments]
        return frozenset(found.union(*(columns_of(expr) for expr in expressions)))
    return None


def places_of(names: frozenset[str] | None, fields: GroupFields) -> tuple[int, ...]:
    """Where columns are; at least one, for a batch without columns has no rows."""
    found = tuple(i for i, f in enumerate(fields.fields) if names is None or f.name in names)
    return found or (0,)
