"""Groups as columns of a result.

In: blocks of groups and the dictionaries of their keys. Out: columns, for the writer of parts
(terascope.execute.results.parts) as they are, or as an Arrow batch: keys as dictionary columns,
slots with NULL where no value was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.kernels.columns.arrays import Codes, Flags, Rows, Values
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields, in_one_store, key_codes
from terascope.kernels.merge.payload import compact
from terascope.types import Type


@dataclass(frozen=True)
class ConstantColumn:
    """The same integer, or NULL, in every row."""

    value: int | None
    rows: int


@dataclass(frozen=True)
class Coded:
    """Codes of a dictionary; 0 is NULL."""

    dictionary: Dictionary
    codes: Codes


@dataclass(frozen=True)
class Numbers:
    """int64 or float64, with a validity when some are NULL."""

    values: Values
    valid: Flags | None = None


ResultColumn: TypeAlias = ConstantColumn | Coded | Numbers | pa.Array


def result_columns(
    blocks: Sequence[Block],
    fields: GroupFields,
    dictionaries: Sequence[Dictionary],
    places: Sequence[int] | None = None,
) -> list[ResultColumn]:
    """The columns of some blocks, one after the other: all of them, or those at some places. They
    are views of the rows where there is but one block.
    """
    blocks = in_one_store(blocks)
    rows = blocks[0].rows if len(blocks) == 1 else np.concatenate([b.rows for b in blocks])
    states = blocks[0].states
    state: int | None = None
    made: list[ResultColumn] = []
    for place in range(len(fields.fields)) if places is None else places:
        if place == fields.epoch:
            made.append(epoch_column(blocks))
        elif place < len(fields.keys):
            key = place - (fields.epoch is not None and place > fields.epoch)
            made.append(Coded(dictionaries[key], key_codes(rows, fields.shape, key)))
        else:
            slot = place - len(fields.keys)
            if states is not None and slot in fields.shape.states:
                made.append(states.column(rows, slot))
                continue
            if state is None and fields.shape.slots[slot].is_nullable:
                state = int(np.bitwise_and.reduce(rows[:, 0]))
            made.append(slot_column(rows, state or 0, fields, slot))
    return made


def epoch_column(blocks: Sequence[Block]) -> ConstantColumn | Numbers:
    one = len(blocks) == 1
    epochs = blocks[0].epochs if one else np.concatenate([block.epochs for block in blocks])
    rows = sum(len(block.rows) for block in blocks)
    if not len(epochs) or (epochs[0] == epochs[-1] and bool((epochs == epochs[0]).all())):
        return ConstantColumn(
            int(epochs[0]) if len(epochs) and epochs[0] != NO_EPOCH else None, rows
        )
    values = epochs
    if len(epochs) < rows:
        values = np.repeat(epochs, np.concatenate([block.counts for block in blocks]))
    valid = values != NO_EPOCH
    return Numbers(values) if valid.all() else Numbers(np.where(valid, values, 0), valid)


def slot_column(rows: Rows, state: int, fields: GroupFields, slot: int) -> Numbers:
    """`state`: the bits that all rows have in their state."""
    kind, bit = fields.shape.slots[slot], 1 + slot
    valid = None
    if kind.is_nullable and not state >> bit & 1:
        valid = (rows[:, 0] >> bit & 1).astype(np.bool_)
    words = rows[:, fields.shape.slot(slot)]
    if kind.is_float:
        # Of -0.0 and 0.0, which are equal, a table keeps the one that came first.
        return Numbers(words.view(np.float64) + 0.0, valid)
    return Numbers(words, valid)


# ---- as Arrow ------------------------------------------------------------------------------------


def columns(
    blocks: Sequence[Block],
    fields: GroupFields,
    dictionaries: Sequence[Dictionary],
    places: Sequence[int] | None = None,
) -> pa.RecordBatch:
    """Blocks as a batch, with all columns or those at some places. Keys are dictionary columns."""
    wanted = fields.fields if places is None else [fields.fields[i] for i in places]
    if not blocks:
        arrays = [pa.array([], arrow_type(f.type)) for f in wanted]
    else:
        made = result_columns(blocks, fields, dictionaries, places)
        arrays = [arrow_column(c, f.type, False) for c, f in zip(made, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [f.name for f in wanted])


def arrow_column(column: ResultColumn, type: Type, plain: bool) -> pa.Array:
    match column:
        case ConstantColumn(value, rows):
            return pa.repeat(pa.scalar(value, arrow_type(type)), rows)
        case Coded(dictionary, codes):
            coded = without_null_value(compact(np.ascontiguousarray(codes), dictionary))
            return coded.dictionary_decode() if plain or type is Type.BOOL else coded
        case Numbers(values, valid):
            missing = None if valid is None else ~valid
            array = pa.array(values != 0 if type is Type.BOOL else values, mask=missing)
            return array.cast(arrow_type(type))
        case _:
            return column.cast(arrow_type(type))


def without_null_value(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """NULL as a missing index instead of an index of a missing value, as Parquet requires."""
    if not column.dictionary.null_count:
        return column
    missing = column.dictionary.is_null().to_numpy(zero_copy_only=False)
    indices = column.indices.to_numpy()
    kept = np.cumsum(~missing) - 1
    indices = pa.array(kept[indices].astype(np.int32), mask=missing[indices])
    return pa.DictionaryArray.from_arrays(indices, column.dictionary.drop_null())
