"""The last steps of every table connector: columns of wall-clock time, and a record batch without
its malformed rows.

A column that a PROTOCOL declares as clock(s|ms|us|ns) takes times in any usual form, as text or as
a typed Arrow column: a number of ticks (a fraction is dropped), or a date and time as ISO 8601
writes it, in UTC unless it names a zone.

A batch is made of a `Converted` per requested column and the position of each row; its counts go to
the report. A row is dropped when one of the requested columns cannot be converted; the first such
column is the reason.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import (
    FILE_SHIFT,
    HIDDEN_PREFIX,
    INTERFACE,
    POSITION,
    TICK_NS,
    Column,
    ReadReport,
    Split,
    arrow_type,
)
from terascope.connectors.tables.arrow_columns import from_arrow
from terascope.connectors.tables.convert import (
    Converted,
    Fault,
    Texts,
    constant,
    from_text,
    of_range,
    parse_distinct,
    patched,
)
from terascope.connectors.tables.kernels import Int64s
from terascope.diagnostic import SourceError
from terascope.types import INT_MAX, INT_MIN

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def text_column(texts: Texts, column: Column) -> Converted:
    """Texts as values of a column; a clock column takes times too."""
    converted = from_text(texts, column.type)
    if column.clock is None or not column.type.is_integer or converted.faults is None:
        return converted
    odd = converted.faults != 0
    rest = from_times(texts.arrow().filter(pa.array(odd)), column.clock)
    return patched(converted.values, odd, rest, converted.faults.copy())


def arrow_column(array: pa.Array, column: Column) -> Converted:
    """A typed column; a clock column takes timestamps and fractions of ticks."""
    if column.clock is None or not column.type.is_integer:
        return from_arrow(array, column.type)
    held = array.type
    if pa.types.is_floating(held) or pa.types.is_decimal(held):
        return from_arrow(pc.floor(array), column.type)
    if pa.types.is_string(held) or pa.types.is_large_string(held):
        return text_column(Texts.of(array.cast(pa.string())), column)
    converted = from_arrow(array, column.type)
    if pa.types.is_timestamp(held) or pa.types.is_date(held):
        return Converted(floor_divide(converted.values, column.clock), converted.faults)
    return converted


def from_times(texts: pa.StringArray, unit: str) -> Converted:
    """Times as text, all at once where they are of one form, else each distinct one."""
    trimmed = pc.utf8_trim_whitespace(texts)
    for form in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):
        try:
            nanoseconds = trimmed.cast(form).view(pa.int64())
        except pa.ArrowInvalid:
            continue
        return Converted(floor_divide(nanoseconds, unit))

    def parse(text: str) -> object:
        return parse_time(text, unit)

    return parse_distinct(trimmed, parse, pa.int64())


def floor_divide(nanoseconds: pa.Array, unit: str) -> pa.Array:
    """Nanoseconds as ticks, rounded down before 1970 too."""
    filled = pc.fill_null(nanoseconds, 0).to_numpy(zero_copy_only=False)
    missing = nanoseconds.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(filled, TICK_NS[unit]), pa.int64(), mask=missing)


def parse_time(text: str, unit: str) -> object:
    """One time: a number with a fraction, or a date and time."""
    try:
        number = decimal.Decimal(text)
        if number.is_finite() and number.adjusted() <= 18:
            whole = int(number.to_integral_value(decimal.ROUND_FLOOR))
            return whole if INT_MIN <= whole <= INT_MAX else Fault.OUT_OF_RANGE
    except decimal.InvalidOperation:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return Fault.NOT_TIME
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    return microseconds * 1000 // TICK_NS[unit]


PSEUDO_COLUMNS = frozenset({POSITION, INTERFACE})
"""Columns that every table has without its file holding them."""


def schema_of(columns: Sequence[Column]) -> pa.Schema:
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
