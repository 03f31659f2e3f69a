"""Columns of any form to columns of a declared GSQL type, and which of their values cannot be
converted.

In: fields as a column of texts, or an Arrow column of a Parquet file (`arrow_columns`). Out:
`Converted`.

From text: an empty field is NULL, except for STRING and BINARY, which hold the empty string. Blanks
around other values do not count. Integers are decimal, 0x hexadecimal, or decimal with a zero
fraction (60.0). BOOL is true/false, t/f, yes/no, y/n or 1/0 in any case. IP is an address in text,
or an IPv4 address as a decimal number. Values of few distinct texts are parsed once each, through
dictionary encoding.
"""

from __future__ import annotations

import decimal
import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import AnyStr, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from terascope.connectors.tables import kernels
from terascope.connectors.tables.kernels import Bytes, Int32s
from terascope.types import BIAS, INT_MAX, INT_MIN, WIDE_MAX, Type, parse_ip, value_range

Bools: TypeAlias = npt.NDArray[np.bool_]


class Fault(enum.IntEnum):
    """Why a value does not fit its column's type; 0 in a fault column means that it does."""

    text: str

    def __new__(cls, code: int, text: str = "") -> Fault:
        fault = int.__new__(cls, code)
        fault._value_ = code
        fault.text = text
        return fault

    NOT_INTEGER = 1, "not an integer"
    OUT_OF_RANGE = 2, "integer out of range"
    NOT_NUMBER = 3, "not a number"
    NOT_BOOL = 4, "not a boolean"
    NOT_IP = 5, "not an IP address"
    NOT_IPV6 = 6, "not an IPv6 address"
    NOT_UTF8 = 7, "not UTF-8"
    NOT_TIME = 8, "not a time: neither a number nor a date and time"
    NEGATIVE = 9, "negative, and declared unsigned"
    ABOVE_UINT = 10, "more than 4294967295, the largest UINT"


@dataclass(frozen=True)
class Converted:
    """A column of the declared type; `faults` is a Fault or 0 per row, None when all are fine."""

    values: pa.Array
    faults: Bytes | None = None

    @property
    def without_faults(self) -> Converted:
        """NULL where a value cannot be converted."""
        if self.faults is None:
            return self
        return Converted(pc.if_else(pa.array(self.faults != 0), None, self.values))


def validity(valid: Bools) -> pa.Buffer | None:
    """Arrow's bitmap of a mask, or None when nothing is missing."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def packed_texts(data: Bytes, offsets: Int32s, valid: Bools) -> pa.StringArray:
    """A column of UTF-8 texts as the scanners pack them."""
    buffers = pa.py_buffer(offsets), pa.py_buffer(data), validity(valid)
    return pa.StringArray.from_buffers(valid.size, *buffers)


def text_bytes(texts: pa.StringArray) -> tuple[Bytes, Int32s]:
    """The bytes of a column of texts and the offset of each text, without a copy."""
    if not len(texts):
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), ends


def is_filled(texts: pa.StringArray, offsets: Int32s) -> Bools:
    """The texts that are neither NULL nor empty."""
    filled: Bools = offsets[1:] > offsets[:-1]
    if texts.null_count:
        filled &= texts.is_valid().to_numpy(zero_copy_only=False)
    return filled


def from_text(texts: pa.StringArray, type: Type) -> Converted:
    if type is Type.STRING or type is Type.NULL:
        return Converted(texts)
    if type is Type.BINARY:
        return Converted(texts.cast(pa.binary()))
    if type.is_whole:
        return _integers(texts, type)
    if type is Type.FLOAT:
        return _floats(texts)
    if type is Type.BOOL:
        return parse_distinct(texts, _parse_bool, pa.bool_())
    return _addresses(texts, type)


def parse_distinct(
    texts: pa.Array, parse: Callable[[AnyStr], object], held: pa.DataType
) -> Converted:
    """Apply `parse` to each distinct text, blanks around it removed; a blank one is NULL."""
    encoded = texts.dictionary_encode()
    parsed: list[object] = [
        parse(text) if (text := raw.strip()) else None for raw in encoded.dictionary.to_pylist()
    ]
    values = pa.array([None if isinstance(p, Fault) else p for p in parsed], held)
    faults = np.array([p if isinstance(p, Fault) else 0 for p in parsed], np.uint8)
    distinct = Converted(values, faults if faults.any() else None)
    return looked_up(distinct, encoded.indices)


def looked_up(distinct: Converted, codes: pa.Array) -> Converted:
    """The converted value of each code; NULL where the code is."""
    values = distinct.values.take(codes)
    if distinct.faults is None:
        return Converted(values)
    # One more entry than there are values: index -1 of a NULL finds a zero there.
    faults = np.append(distinct.faults, np.uint8(0))
    return Converted(values, faults[pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)])


def patched(
    values: pa.Array, odd: Bools, rest: Converted, faults: Bytes | None = None
) -> Converted:
    """A column with the values of `rest` in the odd places."""
    found = np.zeros(len(values), np.uint8) if faults is None else faults
    found[odd] = 0 if rest.faults is None else rest.faults
    values = pc.replace_with_mask(values, pa.array(odd), rest.values)
    return Converted(values, found if found.any() else None)


def fixed_width(packed: Bytes, valid: Bools) -> pa.Array:
    """A binary column whose values all have the width of `packed`'s lines."""
    rows, width = packed.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.binary(), rows, [validity(valid), pa.py_buffer(offsets), pa.py_buffer(packed)]
    )


BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}


def _parse_bool(text: str) -> object:
    return BOOLEANS.get(text.lower(), Fault.NOT_BOOL)


def _is_plain(number: str) -> bool:
    """Whether a number has no form that only Python reads: 1_000, or digits of other scripts."""
    return "_" not in number and number.isascii()


def _parse_float(text: str) -> object:
    try:
        return float(text) if _is_plain(text) else Fault.NOT_NUMBER
    except ValueError:
        return Fault.NOT_NUMBER


def _parse_whole(text: str, type: Type) -> object:
    """An integer written with a fraction or an exponent that comes to nothing."""
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return Fault.NOT_INTEGER
    if not number.is_finite() or not _is_plain(text):
        return Fault.NOT_INTEGER
    if number.adjusted() > 19:  # also keeps 1e999999999 from being written out
        return Fault.OUT_OF_RANGE
    if number != number.to_integral_value():
        return Fault.NOT_INTEGER
    if type is Type.WIDE:
        return Fault.NEGATIVE if number < 0 else _held(int(number))
    return int(number) if INT_MIN <= number <= INT_MAX else Fault.OUT_OF_RANGE


def _held(number: int) -> object:
    """A number as a WIDE column holds it."""
    return number - BIAS if number <= WIDE_MAX else Fault.OUT_OF_RANGE


def parse_address(text: str) -> object:
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) <= 10 else 2**32
        return b"\x04" + number.to_bytes(4, "big") if number < 2**32 else Fault.NOT_IP
    return parse_ip(text) or Fault.NOT_IP


def _integers(texts: pa.StringArray, type: Type) -> Converted:
    data, offsets = text_bytes(texts)
    values = np.empty(len(texts), np.int64)
    states = np.empty(len(texts), np.uint8)
    kernels.parse_integers(data, offsets, values, states, type is Type.WIDE)
    states[~is_filled(texts, offsets)] = kernels.EMPTY
    held = pa.Array.from_buffers(
        pa.int64(), len(texts), [validity(states == kernels.PARSED), pa.py_buffer(values)]
    )
    if not (states > kernels.EMPTY).any():
        return Converted(held)
    faults = np.zeros(len(texts), np.uint8)
    faults[states == kernels.OUT_OF_RANGE] = Fault.OUT_OF_RANGE
    faults[states == kernels.NEGATIVE] = Fault.NEGATIVE
    odd = states == kernels.NOT_INTEGER
    rest = parse_distinct(texts.filter(pa.array(odd)), partial(_parse_whole, type=type), pa.int64())
    return patched(held, odd, rest, faults)


def _floats(texts: pa.StringArray) -> Converted:
    data, offsets = text_bytes(texts)
    filled = packed_texts(data, offsets, is_filled(texts, offsets))
    try:
        return Converted(filled.cast(pa.float64()))
    except pa.ArrowInvalid:
        return parse_distinct(filled, _parse_float, pa.float64())


def _addresses(texts: pa.StringArray, type: Type) -> Converted:
    data, offsets = text_bytes(texts)
    filled = is_filled(texts, offsets)
    packed = np.zeros((len(texts), 5), np.uint8)
    parsed = np.empty(len(texts), np.uint8)
    kernels.parse_ipv4(data, offsets, packed.reshape(-1), parsed)
    found = Converted(fixed_width(packed, filled & (parsed == 1)))
    odd = filled & (parsed == 0)
    if odd.any():
        rest = parse_distinct(texts.filter(pa.array(odd)), parse_address, pa.binary())
        found = patched(found.values, odd, rest)
    return of_version(found, type)


def held_wide(numbers: pa.Array) -> pa.Array:
    """Integers of 64 bits, of which none is negative, as a WIDE column holds them."""
    valid, content = numbers.buffers()
    if numbers.offset % 8 or content is None:
        return pc.bit_wise_xor(numbers.view(pa.int64()), pa.scalar(INT_MIN, pa.int64()))
    start, end = numbers.offset, numbers.offset + len(numbers)
    held = np.frombuffer(content, np.int64)[start:end] ^ np.int64(INT_MIN)
    present = None if valid is None or not numbers.null_count else valid.slice(start // 8)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [present, pa.py_buffer(held)])


def of_range(integers: Converted, type: Type) -> Converted:
    """An unsigned column holds no negative number, and a UINT column none beyond 32 bits."""
    if not type.is_unsigned or not len(integers.values):
        return integers
    ends = pc.min_max(integers.values).as_py()
    least, most = value_range(type)
    if ends["min"] is None or (ends["min"] >= least and ends["max"] <= most):
        return integers
    numbers = pc.fill_null(integers.values, 0).to_numpy(zero_copy_only=False)
    faults = np.zeros(numbers.size, np.uint8) if integers.faults is None else integers.faults.copy()
    faults[(numbers < least) & (faults == 0)] = Fault.NEGATIVE
    faults[(numbers > most) & (faults == 0)] = Fault.ABOVE_UINT
    return Converted(integers.values, faults)


def of_version(addresses: Converted, type: Type) -> Converted:
    """An IPV6 column holds no IPv4 address; an IP column holds both."""
    if type is not Type.IPV6:
        return addresses
    lengths = pc.fill_null(pc.binary_length(addresses.values), 17).to_numpy(zero_copy_only=False)
    faults = np.zeros(lengths.size, np.uint8) if addresses.faults is None else addresses.faults
    faults[(lengths != 17) | (faults != 0)] = Fault.NOT_IPV6
    return Converted(addresses.values, faults)
