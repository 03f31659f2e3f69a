"""Columns of a typed file (Parquet) to declared GSQL types.

In: an Arrow column as the file holds it. Out: `Converted`, with a fault for each value that does
not fit. Timestamps, dates, times and durations are nanoseconds (of the epoch, of the day, or long)
when read as an integer. An IP is text, an IPv4 address as a number, or 4 or 16 address bytes with
or without the leading version byte.
"""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.base import TICK_NS, arrow_type
from terascope.connectors.tables.convert import (
    Bools,
    Converted,
    Fault,
    Texts,
    fixed_width,
    from_text,
    held_wide,
    of_version,
    parse_address,
    parse_distinct,
    patched,
)
from terascope.connectors.tables.kernels import Bytes
from terascope.types import INT_MAX, INT_MIN, WIDE_MAX, Type

LONG = pa.decimal256(76, 0)
"""Holds the whole part of any decimal of 128 bits."""


def own_type(held: pa.DataType) -> Type | None:
    """The type of an undeclared column; None for a nested one."""
    if pa.types.is_dictionary(held):
        return own_type(held.value_type)
    if pa.types.is_boolean(held):
        return Type.BOOL
    if pa.types.is_unsigned_integer(held):
        return Type.ULLONG if held.bit_width == 64 else Type.UINT
    if pa.types.is_integer(held):
        return Type.LLONG if held.bit_width == 64 else Type.INT
    if pa.types.is_temporal(held) and not pa.types.is_interval(held):
        return Type.LLONG
    if pa.types.is_floating(held) or pa.types.is_decimal(held):
        return Type.FLOAT
    if _is_text(held) or pa.types.is_null(held):
        return Type.STRING
    return Type.BINARY if _is_binary(held) else None


def from_arrow(array: pa.Array, type: Type) -> Converted:
    held = array.type
    if pa.types.is_dictionary(held):
        return from_arrow(array.dictionary_decode(), type)
    if pa.types.is_null(held):
        return Converted(pa.nulls(len(array), arrow_type(type)))
    if _is_text(held):
        return from_text(Texts.of(array.cast(pa.string())), type)
    if _is_binary(held):
        return _from_binary(array.cast(pa.binary()), type)
    if type is Type.STRING:
        return Converted(array.cast(pa.string()))
    if type is Type.BINARY:
        return Converted(array.cast(pa.string()).cast(pa.binary()))
    if pa.types.is_boolean(held):
        array = array if type is Type.BOOL else array.cast(pa.int8())
    if pa.types.is_temporal(held):
        integers = _nanoseconds(array)
        return integers if type.is_integer else _then(integers, type)
    if pa.types.is_decimal(held):
        if type.is_whole:
            return _from_decimal(array, type)
        # By way of text: Arrow's own cast often misses the nearest number by one bit.
        array = array.cast(pa.string()).cast(pa.float64())
    return _from_number(array, type)


def _is_text(held: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held)
    )


def _is_binary(held: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(held)
        or pa.types.is_large_binary(held)
        or pa.types.is_fixed_size_binary(held)
        or pa.types.is_binary_view(held)
    )


def _faulty(values: pa.Array, bad: Bools, fault: Fault) -> Converted:
    if not bad.any():
        return Converted(values)
    return Converted(values, np.where(bad, np.uint8(fault), np.uint8(0)))


def _mask(condition: pa.BooleanArray) -> Bools:
    """A condition as a mask; NULL is not true."""
    mask: Bools = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return mask


def _then(first: Converted, type: Type) -> Converted:
    """Convert on; the faults of the first step stay."""
    second = _from_number(first.values, type)
    return Converted(second.values, _first_faults(first.faults, second.faults))


def _first_faults(first: Bytes | None, second: Bytes | None) -> Bytes | None:
    if first is None or second is None:
        return second if first is None else first
    return np.where(first != 0, first, second)


def _nanoseconds(array: pa.Array) -> Converted:
    held = array.type
    if pa.types.is_date(held):
        array = array.cast(pa.timestamp("ms"))
    per_tick = TICK_NS[array.type.unit]
    ticks = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    limit = (2**63 - 1) // per_tick
    bad = _mask(pc.or_(pc.greater(ticks, limit), pc.less(ticks, -limit)))
    return _faulty(pc.multiply(ticks, per_tick), bad, Fault.OUT_OF_RANGE)


def _from_number(array: pa.Array, type: Type) -> Converted:
    held = array.type
    if type is Type.BOOL:
        if pa.types.is_boolean(held):
            return Converted(array)
        bad = _mask(pc.and_(pc.not_equal(array, 0), pc.not_equal(array, 1)))
        return _faulty(pc.equal(array, 1), bad, Fault.NOT_BOOL)
    if type is Type.FLOAT:
        return Converted(array.cast(pa.float64(), safe=False))
    if type.is_address:
        return of_version(_from_ipv4_number(array), type)
    return _wide(array) if type is Type.WIDE else _from_integral(array)


def _wide(array: pa.Array) -> Converted:
    """Numbers as a WIDE column holds them."""
    if pa.types.is_floating(array.type):
        converted = _whole_floats(array.cast(pa.float64()), 0.0, 2.0**64, pa.uint64())
        return Converted(held_wide(converted.values), converted.faults)
    if array.type == pa.uint64():
        return Converted(held_wide(array))
    numbers = array.cast(pa.int64())
    least = pc.min(numbers).as_py()
    if least is None or least >= 0:
        return Converted(held_wide(numbers))
    return _faulty(held_wide(numbers), _mask(pc.less(numbers, 0)), Fault.NEGATIVE)


def _whole_floats(floats: pa.Array, least: float, above: float, to: pa.DataType) -> Converted:
    """FLOATs that are integers from `least` to below `above`."""
    whole = pc.equal(floats, pc.trunc(floats))  # false for NaN
    inside = pc.and_(pc.less(floats, above), pc.greater_equal(floats, least))
    faults = np.zeros(len(floats), np.uint8)
    faults[_mask(pc.invert(whole)) | _mask(pc.is_nan(floats))] = Fault.NOT_INTEGER
    faults[_mask(pc.and_(whole, pc.invert(inside)))] = Fault.OUT_OF_RANGE
    if least == 0.0:
        faults[_mask(pc.and_(whole, pc.less(floats, 0.0)))] = Fault.NEGATIVE
    fitting = pc.if_else(pa.array(faults == 0), floats, pa.scalar(None, pa.float64()))
    return Converted(fitting.cast(to, safe=False), faults if faults.any() else None)


def _from_integral(array: pa.Array) -> Converted:
    held = array.type
    if pa.types.is_floating(held):
        return _whole_floats(array.cast(pa.float64()), -(2.0**63), 2.0**63, pa.int64())
    bad = np.zeros(len(array), np.bool_)
    if held == pa.uint64():
        bad = _mask(pc.greater(array, pa.scalar(2**63 - 1, pa.uint64())))
    return _faulty(array.cast(pa.int64(), safe=False), bad, Fault.OUT_OF_RANGE)


def _from_decimal(array: pa.Array, type: Type) -> Converted:
    """Decimals as integers, with all their digits."""
    is_wide = type is Type.WIDE
    whole = pc.floor(array).cast(LONG)
    faults = np.zeros(len(array), np.uint8)
    ends = (0, WIDE_MAX) if is_wide else (INT_MIN, INT_MAX)
    least, most = (pa.scalar(decimal.Decimal(limit), LONG) for limit in ends)
    faults[_mask(pc.less(whole, least))] = Fault.NEGATIVE if is_wide else Fault.OUT_OF_RANGE
    faults[_mask(pc.greater(whole, most))] = Fault.OUT_OF_RANGE
    faults[_mask(pc.not_equal(pc.floor(array), array))] = Fault.NOT_INTEGER
    fitting = pc.if_else(pa.array(faults == 0), whole, pa.scalar(None, LONG))
    found = held_wide(fitting.cast(pa.uint64())) if is_wide else fitting.cast(pa.int64())
    return Converted(found, faults if faults.any() else None)


def _from_ipv4_number(array: pa.Array) -> Converted:
    if array.type == pa.int32():  # 32 bits that a writer without unsigned integers holds
        array = array.view(pa.uint32())
    integers = _from_integral(array)
    numbers = integers.values
    bad = _mask(pc.or_(pc.greater(numbers, 2**32 - 1), pc.less(numbers, 0)))
    if integers.faults is not None:
        bad |= integers.faults != 0
    valid = _mask(numbers.is_valid())
    packed = np.full((len(array), 5), 4, np.uint8)
    words = np.where(valid, pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), 0)
    packed[:, 1:] = words.astype(">u4").view(np.uint8).reshape(-1, 4)
    return _faulty(fixed_width(packed, valid), bad, Fault.NOT_IP)


def _from_binary(array: pa.Array, type: Type) -> Converted:
    if type is Type.BINARY:
        return Converted(array)
    if type.is_address:
        return of_version(_packed_addresses(array), type)
    try:
        texts, bad = array.cast(pa.string()), None
    except pa.ArrowInvalid:
        bad = parse_distinct(array, _utf8_fault, pa.bool_()).faults
        assert bad is not None
        texts = pc.if_else(pa.array(bad == 0), array, pa.scalar(None, pa.binary())).cast(
            pa.string()
        )
    converted = from_text(Texts.of(texts), type)
    return Converted(converted.values, _first_faults(bad, converted.faults))


def _utf8_fault(value: bytes) -> object:
    try:
        value.decode()
    except UnicodeDecodeError:
        return Fault.NOT_UTF8
    return True


def _packed_addresses(array: pa.Array) -> Converted:
    """4 or 16 bytes get their version in front, values that have it stay, others may be text."""
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
    values = array
    for width, version in ((4, b"\x04"), (16, b"\x06")):
        fits = lengths == width
        if fits.any():
            joined = pc.binary_join_element_wise(
                pa.scalar(version), array.filter(pa.array(fits)), pa.scalar(b"")
            )
            values = pc.replace_with_mask(values, pa.array(fits), joined)
    first = pc.binary_slice(values, 0, 1)
    held = _mask(pc.and_(pc.equal(pc.binary_length(values), 5), pc.equal(first, b"\x04")))
    held |= _mask(pc.and_(pc.equal(pc.binary_length(values), 17), pc.equal(first, b"\x06")))
    odd = _mask(values.is_valid()) & ~held
    if not odd.any():
        return Converted(values)
    rest = parse_distinct(array.filter(pa.array(odd)), _address_text, pa.binary())
    return patched(values, odd, rest)


def _address_text(value: bytes) -> object:
    return parse_address(value.decode("ascii", "replace"))
