"""The last step of every table connector: converted columns to a record batch without its malformed
rows.

In: a `Converted` per requested column and the position of each row. Out: a batch, and its counts in
the report. A row is dropped when one of the requested columns cannot be converted; the first such
column is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import (
    FILE_SHIFT,
    HIDDEN_PREFIX,
    INTERFACE,
    POSITION,
    Column,
    ReadReport,
    Split,
    arrow_type,
)
from terascope.connectors.tables.convert import Converted, Fault, constant, of_range
from terascope.connectors.tables.kernels import Int64s
from terascope.diagnostic import SourceError

PSEUDO_COLUMNS = frozenset({POSITION, INTERFACE})
"""Columns that every table has without its file holding them."""


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The schema of a batch of these columns."""
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])


def constant_columns(
    split: Split, columns: Sequence[Column], positions: Int64s
) -> dict[str, Converted]:
    """The requested columns that the file itself does not hold."""
    names = {column.name for column in columns}
    found: dict[str, Converted] = {}
    if POSITION in names:
        found[POSITION] = Converted(pa.array(positions + (split.ordinal << FILE_SHIFT)))
    if INTERFACE in names:
        found[INTERFACE] = constant(split.interface, positions.size)
    return found


def missing_column(path: str, name: str, present: Sequence[str]) -> SourceError:
    shown = ", ".join(present[:20]) + (", ..." if len(present) > 20 else "")
    return SourceError(f"'{path}' has no column '{name}'; its columns are {shown or 'none'}")


def assemble(
    split: Split,
    columns: Sequence[Column],
    positions: Int64s,
    convert: Callable[[Column], Converted | None],
    report: ReadReport,
) -> pa.RecordBatch:
    """One batch. `convert` gives a column of the file, or None when the file has no such."""
    rows = positions.size
    bad = np.zeros(rows, np.bool_)
    arrays: list[pa.Array] = []
    pseudo = constant_columns(split, columns, positions)
    for column in columns:
        converted = None if column.name.startswith(HIDDEN_PREFIX) else convert(column)
        converted = converted or pseudo[column.name]
        converted = of_range(converted, column.type)
        arrays.append(converted.values)
        if converted.faults is not None:
            _count_faults(column.name, np.where(bad, 0, converted.faults), report)
            bad |= converted.faults != 0
    if bad.any():
        kept = pa.array(~bad)
        arrays = [array.filter(kept) for array in arrays]
        rows -= int(bad.sum())
    report.tuples += rows
    _raise_horizon(columns, arrays, report)
    if not columns:  # no column could say how many rows there are
        return pa.RecordBatch.from_struct_array(
            pa.StructArray.from_buffers(pa.struct([]), rows, [None])
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(columns))


def _count_faults(name: str, faults: np.typing.NDArray[np.integer], report: ReadReport) -> None:
    for code, count in zip(*np.unique(faults[faults != 0], return_counts=True), strict=True):
        report.malformed[f"column '{name}': {Fault(int(code)).text}"] += int(count)


def _raise_horizon(
    columns: Sequence[Column], arrays: Sequence[pa.Array], report: ReadReport
) -> None:
    for column, array in zip(columns, arrays, strict=True):
        if not column.type.is_integer or column.name.startswith(HIDDEN_PREFIX):
            continue
        largest = pc.max(array).as_py()
        if largest is not None:
            report.horizon[column.name] = max(report.horizon.get(column.name, largest), largest)
