"""Wall-clock columns of files: times in any usual form, as ticks of the declared clock.

In: a column that a PROTOCOL declares as clock(s|ms|us|ns), as text or as a typed Arrow column. Out:
`Converted` integers. A time is a number of ticks (a fraction is dropped), or a date and time as ISO
8601 writes it, in UTC unless it names a zone.
"""

from __future__ import annotations

import decimal
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import TICK_NS, Column
from terascope.connectors.tables.arrow_columns import from_arrow
from terascope.connectors.tables.convert import (
    Converted,
    Fault,
    Texts,
    from_text,
    parse_distinct,
)
from terascope.types import INT_MAX, INT_MIN

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def text_column(texts: Texts, column: Column) -> Converted:
    """Texts as values of a column; a clock column takes times too."""
    converted = from_text(texts, column.type)
    if column.clock is None or not column.type.is_integer or converted.faults is None:
        return converted
    odd = converted.faults != 0
    rest = from_times(texts.arrow().filter(pa.array(odd)), column.clock)
    faults = converted.faults.copy()
    faults[odd] = 0 if rest.faults is None else rest.faults
    values = pc.replace_with_mask(converted.values, pa.array(odd), rest.values)
    return Converted(values, faults if faults.any() else None)


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
