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
from terascope.connectors.tables import convert
from terascope.connectors.tables.convert import Bools, Converted, Fault
from terascope.connectors.tables.kernels import Bytes
from terascope.types import Type

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
        return convert.from_text(array.cast(pa.string()), type)
    if _is_binary(held):
        return _from_binary(array.cast(pa.binary()), type)
    if type is Type.STRING:
        return Converted(array.cast(pa.string()))
    if type is Type.BINARY:
        return Converted(array.cast(pa.string()).cast(pa.binary()))
    if pa.types.is_boolean(held):
        array = array if type is Type.BOOL else array.cast(pa.int8())
    if pa.types.is_temporal(held):
        first = _nanoseconds(array)
        second = first if type.is_integer else _from_number(first.values, type)
        return Converted(second.values, _first_faults(first.faults, second.faults))
    if pa.types.is_decimal(held):
        if type.is_whole:
            return _from_fractions(array, type)
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
        return convert.of_version(_from_ipv4_number(array), type)
    if pa.types.is_floating(held):
        return _from_fractions(array.cast(pa.float64()), type)
    is_wide, is_unsigned = type is Type.WIDE, held == pa.uint64()
    numbers = array.cast(pa.int64(), safe=False)
    values = convert.held_wide(numbers) if is_wide else numbers
    if is_wide == is_unsigned or (pc.min(numbers).as_py() or 0) >= 0:
        return Converted(values)
    fault = Fault.NEGATIVE if is_wide else Fault.OUT_OF_RANGE
    return _faulty(values, _mask(pc.less(numbers, 0)), fault)


def _from_fractions(array: pa.Array, type: Type) -> Converted:
    """FLOATs or decimals as integers, with all their digits."""
    is_wide = type is Type.WIDE
    whole = pc.floor(array)
    has_fraction = _mask(pc.not_equal(whole, array))  # true of NaN, too
    limits = (0.0, 2.0**64) if is_wide else (-(2.0**63), 2.0**63)
    is_decimal = pa.types.is_decimal(array.type)
    whole = whole.cast(LONG) if is_decimal else whole
    exact = decimal.Decimal if is_decimal else float
    least, above = (pa.scalar(exact(limit), whole.type) for limit in limits)
    faults = np.zeros(len(array), np.uint8)
    faults[_mask(pc.less(whole, least))] = Fault.NEGATIVE if is_wide else Fault.OUT_OF_RANGE
    faults[_mask(pc.greater_equal(whole, above))] = Fault.OUT_OF_RANGE
    faults[has_fraction] = Fault.NOT_INTEGER
    fitting = pc.if_else(pa.array(faults == 0), whole, pa.scalar(None, whole.type))
    found = fitting.cast(pa.uint64() if is_wide else pa.int64(), safe=False)
    return Converted(
        convert.held_wide(found) if is_wide else found, faults if faults.any() else None
    )


def _from_ipv4_number(array: pa.Array) -> Converted:
    if array.type == pa.int32():  # 32 bits that a writer without unsigned integers holds
        array = array.view(pa.uint32())
    integers = _from_number(array, Type.LLONG)
    numbers = integers.values
    bad = _mask(pc.or_(pc.greater(numbers, 2**32 - 1), pc.less(numbers, 0)))
    if integers.faults is not None:
        bad |= integers.faults != 0
    valid = _mask(numbers.is_valid())
    packed = np.full((len(array), 5), 4, np.uint8)
    words = np.where(valid, pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), 0)
    packed[:, 1:] = words.astype(">u4").view(np.uint8).reshape(-1, 4)
    return _faulty(convert.fixed_width(packed, valid), bad, Fault.NOT_IP)


def _from_binary(array: pa.Array, type: Type) -> Converted:
    if type is Type.BINARY:
        return Converted(array)
    if type.is_address:
        return convert.of_version(_packed_addresses(array), type)
    try:
        texts, bad = array.cast(pa.string()), None
    except pa.ArrowInvalid:
        bad = convert.parse_distinct(array, _utf8_fault, pa.bool_()).faults
        assert bad is not None
        texts = pc.if_else(pa.array(bad == 0), array, pa.scalar(None, pa.binary())).cast(
            pa.string()
        )
    converted = convert.from_text(texts, type)
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

    def parse(value: bytes) -> object:
        return convert.parse_address(value.decode("ascii", "replace"))

    rest = convert.parse_distinct(array.filter(pa.array(odd)), parse, pa.binary())
    return convert.patched(values, odd, rest)
