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
from collections.abc import Callable, Container, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors import base
from terascope.connectors.base import INTERFACE, POSITION, Column, ReadReport, Split
from terascope.connectors.tables import convert
from terascope.connectors.tables.arrow_columns import from_arrow
from terascope.connectors.tables.convert import Converted, Fault
from terascope.connectors.tables.kernels import Int64s
from terascope.diagnostic import SourceError
from terascope.types import INT_MAX, INT_MIN

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def text_column(texts: pa.StringArray, column: Column) -> Converted:
    """Texts as values of a column; a clock column takes times too."""
    converted = convert.from_text(texts, column.type)
    if column.clock is None or not column.type.is_integer or converted.faults is None:
        return converted
    odd = converted.faults != 0
    rest = from_times(texts.filter(pa.array(odd)), column.clock)
    return convert.patched(converted.values, odd, rest, converted.faults.copy())


def arrow_column(array: pa.Array, column: Column) -> Converted:
    """A typed column; a clock column takes timestamps and fractions of ticks."""
    if column.clock is None or not column.type.is_integer:
        return from_arrow(array, column.type)
    held = array.type
    if pa.types.is_floating(held) or pa.types.is_decimal(held):
        return from_arrow(pc.floor(array), column.type)
    if pa.types.is_string(held) or pa.types.is_large_string(held):
        return text_column(array.cast(pa.string()), column)
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
    return convert.parse_distinct(trimmed, partial(parse_time, unit=unit), pa.int64())


def floor_divide(nanoseconds: pa.Array, unit: str) -> pa.Array:
    """Nanoseconds as ticks, rounded down before 1970 too."""
    filled = pc.fill_null(nanoseconds, 0).to_numpy(zero_copy_only=False)
    missing = nanoseconds.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.floor_divide(filled, base.TICK_NS[unit]), pa.int64(), mask=missing)


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
    return microseconds * 1000 // base.TICK_NS[unit]


PSEUDO_COLUMNS = frozenset({POSITION, INTERFACE})
"""Columns that every table has without its file holding them."""


def pseudo_column(split: Split, name: str, positions: Int64s) -> pa.Array:
    """A column that the file itself does not hold."""
    if name == POSITION:
        return pa.array(positions + (split.ordinal << base.FILE_SHIFT))
    assert name == INTERFACE, f"no column {name}"
    return pa.repeat(pa.scalar(split.source, pa.string()), positions.size)


def names_held(
    path: str, columns: Sequence[Column], held: Container[str], shown: Sequence[str]
) -> list[str]:
    """The names of the columns that a file holds, each once.

    Raises:
        SourceError: the file does not hold one of the columns; its columns are `shown`.
    """
    names = dict.fromkeys(column.name for column in columns)
    for name in names:
        if name not in held and name not in PSEUDO_COLUMNS:
            listed = ", ".join(shown[:20]) + (", ..." if len(shown) > 20 else "")
            raise SourceError(
                f"'{path}' has no column '{name}'; its columns are {listed or 'none'}"
            )
    return [name for name in names if name in held]


def assemble(
    split: Split,
    columns: Sequence[Column],
    positions: Int64s,
    column_of: Callable[[Column], Converted | None],
    report: ReadReport,
) -> pa.RecordBatch:
    """One batch. `column_of` gives a column of the file, or None when the file has no such."""
    rows = positions.size
    bad = np.zeros(rows, np.bool_)
    arrays: list[pa.Array] = []
    for column in columns:
        converted = None if column.name.startswith(base.HIDDEN_PREFIX) else column_of(column)
        converted = converted or Converted(pseudo_column(split, column.name, positions))
        converted = convert.of_range(converted, column.type)
        if column.checked_only:
            converted = converted.without_faults
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
    return base.record_batch(columns, arrays, rows)


def _count_faults(name: str, faults: np.typing.NDArray[np.integer], report: ReadReport) -> None:
    for code, count in zip(*np.unique(faults[faults != 0], return_counts=True), strict=True):
        report.malformed[f"column '{name}': {Fault(int(code)).text}"] += int(count)


def _raise_horizon(
    columns: Sequence[Column], arrays: Sequence[pa.Array], report: ReadReport
) -> None:
    for column, array in zip(columns, arrays, strict=True):
        if not column.type.is_integer or column.name.startswith(base.HIDDEN_PREFIX):
            continue
        largest = pc.max(array).as_py()
        if largest is not None:
            report.horizon[column.name] = max(report.horizon.get(column.name, largest), largest)
