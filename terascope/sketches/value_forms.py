"""The five forms in which states hold the values of an argument, and the values packed so.

In: the type of an argument. Out: its form: integers, FLOATs and BOOLs are words, text and other
bytes are runs of bytes. The form is the lowest three bits of the variant of a packed state that has
values, so that a state says by itself of what type its values are.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import column, compiled_for, output
from terascope.sketches.base import Argument, CodedValues
from terascope.sketches.byte_pool import BytePool, copy_values
from terascope.types import Type

Words = NDArray[np.int64]
Bytes = NDArray[np.uint8]

FORM_BITS: Final = 7


class ValueForm(enum.IntEnum):
    INTEGER = 0
    FLOAT = 1
    BOOL = 2
    TEXT = 3
    BYTES = 4

    @property
    def is_word(self) -> bool:
        return self < ValueForm.TEXT

    @property
    def arrow(self) -> pa.DataType:
        """The type of a column of such values, as terascope.types holds them."""
        return ARROW[self]


ARROW: Final = (pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.binary())

Held = int | float | bool | str | bytes


def form_of(type_: Type) -> ValueForm:
    if type_ is Type.FLOAT:
        return ValueForm.FLOAT
    if type_ is Type.BOOL:
        return ValueForm.BOOL
    if type_.is_whole:
        return ValueForm.INTEGER
    return ValueForm.TEXT if type_ is Type.STRING else ValueForm.BYTES


def words_of(argument: Argument, pool: BytePool) -> Words:
    """The values of an argument as words: integers, the bits of FLOATs, numbers of a pool."""
    if isinstance(argument, CodedValues):
        return pool.of_codes(argument)
    if argument.dtype == np.float64:
        words: Words = np.ascontiguousarray(argument).view(np.int64)
        return words
    return np.ascontiguousarray(argument, np.int64)


def value_of(form: ValueForm, held: bytes) -> Held:
    """The value of some bytes, eight of them when it is a word."""
    if form is ValueForm.TEXT:
        return held.decode("utf-8")
    if form is ValueForm.BYTES:
        return held
    if len(held) != 8:
        raise ValueError("a packed state has a number that is not of eight bytes")
    if form is ValueForm.FLOAT:
        return float(struct.unpack("<d", held)[0])
    word = int.from_bytes(held, "little", signed=True)
    return bool(word) if form is ValueForm.BOOL else word


def values_of_words(form: ValueForm, words: Words) -> pa.Array:
    """A column of values that are words."""
    if form is ValueForm.FLOAT:
        return pa.array(words.view(np.float64))
    return pa.array(words != 0) if form is ValueForm.BOOL else pa.array(words)


# ---- in packed states ----------------------------------------------------------------------------


def packed_sizes(words: Words, pool: BytePool, is_word: bool) -> Words:
    """The number of bytes that each value takes in a packed state."""
    return np.full(len(words), 8, np.int64) if is_word else pool.lengths(words)


def write_values(words: Words, places: Words, data: Bytes, pool: BytePool, is_word: bool) -> None:
    """Write the value i to data[places[i]:]."""
    if is_word:
        write_words(words, places, data)
    else:
        copy_values(words, pool.ends, pool.content, places, data)


def read_values(begins: Words, ends: Words, data: Bytes, pool: BytePool, is_word: bool) -> Words:
    """The values that were written so, as words."""
    return read_words(begins, data) if is_word else pool.of_runs(begins, ends, data)


@compiled_for(column(np.int64, layout="A"), column(np.int64), output(np.uint8))
def write_words(words: Words, places: Words, data: Bytes) -> None:
    for i in range(len(words)):
        word, at = np.uint64(words[i]), np.uint64(places[i])
        for k in range(8):
            data[at + np.uint64(k)] = np.uint8((word >> np.uint64(8 * k)) & np.uint64(255))


def read_words(places: Words, data: Bytes) -> Words:
    """The words at some places."""
    found = np.empty(len(places), np.int64)
    read_words_into(places, data, found)
    return found


@compiled_for(column(np.int64), column(np.uint8), output(np.int64))
def read_words_into(places: Words, data: Bytes, found: Words) -> None:
    for i in range(len(places)):
        word, at = np.uint64(0), np.uint64(places[i])
        for k in range(8):
            word |= np.uint64(data[at + np.uint64(k)]) << np.uint64(8 * k)
        found[i] = np.int64(word)


def write_header(data: Bytes, places: Words, header: bytes) -> None:
    """Write the same bytes to every place."""
    for k, byte in enumerate(header):
        data[places + k] = byte
