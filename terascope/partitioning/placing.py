"""The partition of a tuple: a hash of the values of the partitioning set (paper 2, 3.1).

In: a partitioning set and a batch of tuples. Out: for each tuple the hash of its values, the same
in every process and on every machine, and the number of its partition: of M partitions, number i
has the hashes from i/M to (i+1)/M of all 64-bit numbers, unless a layout has other bounds. A value
that is missing (NULL) hashes as a value.

Each value is turned into a word and mixed into the hash of its tuple in one loop over Arrow's own
buffers. Prefixes and masks of addresses are cut inside the loop: no column of them is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.connectors.base import arrow_type
from terascope.connectors.packets.words import load8, load64
from terascope.functions.roles import AddressMask
from terascope.functions.scalars.addresses import BITS
from terascope.functions.scalars.addresses import prefix as prefix_function
from terascope.hashing import mix, value_hash, word_of
from terascope.kernels.codegen.statements import Unsupported, is_number
from terascope.kernels.columns.arrays import Bytes, Ints, byte_runs
from terascope.kernels.columns.batch import FinishedRows
from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.partitioning.sets import PartitionSet
from terascope.plan.evaluate import compile_expr
from terascope.plan.expr import Call, Col, Expr, Lit, columns_of
from terascope.types import INT_MIN, Type

Hashes = NDArray[np.uint64]
MISSING: Final = 0x4E554C4C
"""The word of a value that is missing."""
WHOLE: Final = 1 << 64
V4, V6 = BITS[4], BITS[6]
UNCUT: Final = (1 << V4) - 1
ALL_THERE: Final = np.empty(0, np.uint8)
"""Stands for the bitmap of a column in which no value is missing."""


def even_bounds(count: int) -> tuple[int, ...]:
    """The ends of equal ranges of hashes: partition i has the hashes below the i-th, and not below
    the one before.
    """
    return tuple((number + 1) * WHOLE // count for number in range(count))


def partition_numbers(hashes: Hashes, bounds: Sequence[int]) -> Ints:
    """The number of the partition of each hash. `bounds`: the end of each range but the last, which
    ends with the largest number.
    """
    numbers = np.empty(len(hashes), np.int64)
    put_numbers(hashes, np.array([int(bound) for bound in bounds[:-1]], np.uint64), numbers)
    return numbers


def hashed_types(partitions: PartitionSet) -> tuple[str, ...]:
    """The types of values, as far as hashes tell them apart: a whole number has the same hash
    whatever its width.
    """

    def hashed_type(type: Type) -> str:
        if type.is_whole:
            return "number"
        return "address" if type.is_address else "text" if type.is_text else str(arrow_type(type))

    return tuple(hashed_type(expr.type) for expr in partitions.expressions)


def value_hashes(partitions: PartitionSet, batch: pa.RecordBatch) -> Hashes:
    """The hash of the values of the set for each tuple."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    if not batch.num_rows:
        return hashes
    rows = FinishedRows(batch)
    for expr in partitions.expressions:
        cut = cut_of(expr)
        if cut is not None and is_bytes(batch.column(cut.column).type):
            values = batch.column(cut.column)
            add_bytes(hashes, *places(values), *byte_runs(values), kept_bits(cut.mask, cut.v6))
        else:
            add_column(hashes, plain_numbers(column_of(expr, rows, batch), expr.type))
    return hashes


def plain_numbers(values: pa.Array, type: Type) -> pa.Array:
    """Numbers of 64 bits without the bias that they are held with: a number hashes alike, whatever
    type a query gives to its column.
    """
    return values if type is not Type.WIDE else pc.bit_wise_xor(values, pa.scalar(INT_MIN))


def column_of(expr: Expr, rows: FinishedRows, batch: pa.RecordBatch) -> pa.Array:
    """The values of an expression; tuple by tuple where no kernel computes it, as for a text made
    of several columns.
    """
    names = tuple(sorted(columns_of(expr)))
    if len(names) < 2 or is_number(expr.type):
        try:
            return rows.column(expr)
        except Unsupported:
            pass
    evaluate = compile_expr(expr, names, {})
    columns = [batch.column(name).to_pylist() for name in names]
    return pa.array(map(evaluate, zip(*columns, strict=True)), arrow_type(expr.type))


class Cut(NamedTuple):
    """Bits of an address that is a column."""

    column: str
    mask: int
    """The bits that are kept of an IPv4 address."""
    v6: int
    """The length of the prefix that is kept of an IPv6 address; -1: the value is NULL."""


def cut_of(expr: Expr) -> Cut | None:
    """The cut of an address that an expression is; None: it is another expression."""
    match expr:
        case Call(function, (Col(name), Lit(int(mask)))) if isinstance(function.role, AddressMask):
            return Cut(name, mask & UNCUT, -1)
        case Call(function, (Col(name), Lit(int(v4)), *rest)) if function == prefix_function:
            match rest:
                case [] if 0 <= v4 <= V4:
                    return Cut(name, UNCUT >> (V4 - v4) << (V4 - v4), -1)
                case [Lit(int(v6))] if 0 <= v4 <= V4 and 0 <= v6 <= V6:
                    return Cut(name, UNCUT >> (V4 - v4) << (V4 - v4), v6)
    return None


@cache
def kept_bits(mask: int, v6: int) -> Ints:
    """The bits of the bytes of addresses that a cut keeps, their version among them: of IPv4 ones,
    of each part of eight bytes of IPv6 ones; and whether values that are no IPv4 address have one.
    """
    four = b"\xff" + mask.to_bytes(4, "big")
    cleared = V6 - max(v6, 0)
    six = b"\xff" + ((1 << V6) - 1 >> cleared << cleared).to_bytes(16, "big")
    words = [int.from_bytes(part, "little") for part in (four, six[:8], six[8:16], six[16:])]
    return np.array([*words, v6 >= 0], np.uint64).view(np.int64)


def is_bytes(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def places(values: pa.Array) -> tuple[Bytes, int]:
    """The bitmap of the values that are there, and its bit for the first of them."""
    if not values.null_count:
        return ALL_THERE, 0
    return np.frombuffer(values.buffers()[0], np.uint8), values.offset


def add_column(hashes: Hashes, values: pa.Array) -> None:
    """Mix the values of one expression into the hashes of tuples."""
    type = values.type
    if pa.types.is_dictionary(type):
        known = np.append(words_of(values.dictionary), np.int64(MISSING))
        codes = values.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        add_words(hashes, ALL_THERE, 0, known[codes])
    elif is_bytes(type):
        add_bytes(hashes, *places(values), *byte_runs(values), kept_bits(UNCUT, V6))
    else:
        add_words(hashes, *places(values), numbers_of(values))


def numbers_of(values: pa.Array) -> Ints:
    """The words of numbers; anything where they are missing."""
    type = values.type
    if type in (pa.int64(), pa.float64()):
        held = np.frombuffer(values.buffers()[1], np.dtype(type.to_pandas_dtype()))
        numbers = held[values.offset : values.offset + len(values)]
    elif pa.types.is_floating(type):
        numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        filled = values.fill_null(False) if pa.types.is_boolean(type) else values.fill_null(0)
        numbers = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    # Both zeros are one value.
    return numbers if numbers.dtype == np.int64 else (numbers + 0.0).view(np.int64)


def words_of(values: pa.Array) -> Ints:
    """A word for each value, the same for equal values of a type."""
    words = np.empty(len(values), np.int64)
    if is_bytes(values.type):
        put_words(*places(values), *byte_runs(values), words)
        return words
    words[:] = numbers_of(values)
    if values.null_count:
        words[values.is_null().to_numpy(zero_copy_only=False)] = MISSING
    return words


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def added(hashed: np.uint64, word: np.int64) -> np.uint64:
    """The hash of a tuple with the word of one more value."""
    return np.uint64(mix(hashed * np.uint64(0x9E3779B97F4A7C15) ^ value_hash(word)))


@compiled_for(column(np.uint8), INTEGER, column(np.int32), column(np.uint8), output(np.int64))
def put_words(
    there: Bytes, first: int, offsets: NDArray[np.int32], data: Bytes, words: Ints
) -> None:
    for i in range(len(words)):
        words[i] = MISSING
        place = first + i
        if len(there) == 0 or (there[place >> 3] >> (place & 7)) & 1 != 0:
            words[i] = word_of(data, offsets[i], offsets[i + 1])


@compiled_for(
    output(np.uint64), column(np.uint8), INTEGER, column(np.int32), column(np.uint8),
    column(np.int64),
)  # fmt: skip
def add_bytes(
    hashes: Hashes,
    there: Bytes,
    first: int,
    offsets: NDArray[np.int32],
    data: Bytes,
    kept: Ints,
) -> None:
    """Texts and bytes by their words (`word_of`). `kept`: the bits of addresses that count, see
    `kept_bits`. Addresses are loaded by whole words here: a call for each would cost more.
    """
    v4 = kept[0] | np.int64(0xFF << 56)
    one, two, three, all_kept = kept[1], kept[2], kept[3], kept[4] != 0
    bits, last = len(there), len(data) - 8
    for i in range(len(hashes)):
        word = np.int64(MISSING)
        begin = int(offsets[i])
        size = int(offsets[i + 1]) - begin
        place = first + i
        if bits == 0 or (there[place >> 3] >> (place & 7)) & 1 != 0:
            if size == 5 and begin <= last:
                word = (load64(data, begin) & np.int64(0xFFFFFFFFFF) | np.int64(5 << 56)) & v4
            elif size == 5:
                word = word_of(data, begin, begin + 5) & v4
            elif all_kept and size == 17:
                state = np.uint64(17)
                state = mix(state ^ np.uint64(load64(data, begin) & one))
                state = mix(state ^ np.uint64(load64(data, begin + 8) & two))
                state = mix(state ^ np.uint64(np.int64(load8(data, begin + 16)) & three))
                word = np.int64(state | np.uint64(1 << 63))
            elif all_kept:
                word = word_of(data, begin, begin + size)
        hashes[i] = added(hashes[i], word)


@compiled_for(output(np.uint64), column(np.uint8), INTEGER, column(np.int64))
def add_words(hashes: Hashes, there: Bytes, first: int, words: Ints) -> None:
    for i in range(len(words)):
        word, place = words[i], first + i
        if len(there) > 0 and (there[place >> 3] >> (place & 7)) & 1 == 0:
            word = np.int64(MISSING)
        hashes[i] = added(hashes[i], word)


@compiled_for(column(np.uint64), column(np.uint64), output(np.int64))
def put_numbers(hashes: Hashes, inner: Hashes, numbers: Ints) -> None:
    """The number of bounds that are not above each hash. The bounds of even ranges are found at
    once, by the share of the hash in all numbers; others by a few steps from there.
    """
    count = np.uint64(len(inner) + 1)
    for i in range(len(hashes)):
        hashed = hashes[i]
        # The upper 64 bits of hashed * count, by halves of 32 bits.
        low = (hashed & np.uint64(0xFFFFFFFF)) * count >> np.uint64(32)
        at = np.int64((hashed >> np.uint64(32)) * count + low >> np.uint64(32))
        while at > 0 and hashed < inner[at - 1]:
            at -= 1
        while at < len(inner) and hashed >= inner[at]:
            at += 1
        numbers[i] = at
