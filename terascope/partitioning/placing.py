"""The partition of a tuple: a hash of the values of the partitioning set (paper 2, 3.1).

In: a partitioning set and a batch of tuples. Out: for each tuple the hash of its values, the same
in every process and on every machine, and the number of its partition: of M partitions, number i
has the hashes from i/M to (i+1)/M of all 64-bit numbers, unless a layout has other bounds. A value
that is missing (NULL) hashes as a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.hashing import mix, value_hash, word_of
from terascope.kernels.columns.arrays import Ints
from terascope.kernels.columns.batch import FinishedRows
from terascope.machine_code import column, compiled_for, output
from terascope.partitioning.sets import PartitionSet

Hashes = NDArray[np.uint64]
MISSING: Final = 0x4E554C4C
"""The word of a value that is missing."""
WHOLE: Final = 1 << 64


def even_bounds(count: int) -> tuple[int, ...]:
    """The ends of equal ranges of hashes: partition i has the hashes below the i-th, and not below
    the one before.
    """
    return tuple((number + 1) * WHOLE // count for number in range(count))


def partition_numbers(hashes: Hashes, bounds: Sequence[int]) -> Ints:
    """The number of the partition of each hash. `bounds`: the end of each range but the last, which
    ends with the largest number.
    """
    inner = np.array([int(bound) for bound in bounds[:-1]], np.uint64)
    return np.searchsorted(inner, hashes, side="right").astype(np.int64)


def value_hashes(partitions: PartitionSet, batch: pa.RecordBatch) -> Hashes:
    """The hash of the values of the set for each tuple."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    if not batch.num_rows:
        return hashes
    rows = FinishedRows(batch)
    for expr in partitions.expressions:
        add_column(hashes, rows.column(expr))
    return hashes


def add_column(hashes: Hashes, values: pa.Array) -> None:
    """Mix the values of one expression into the hashes of tuples."""
    if pa.types.is_dictionary(values.type):
        known = np.append(words_of(values.dictionary), np.int64(MISSING))
        codes = values.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        add_words(hashes, known[codes])
    else:
        add_words(hashes, words_of(values))


def words_of(values: pa.Array) -> Ints:
    """A word for each value, the same for equal values of a type."""
    type = values.type
    plain: Ints
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return words_of_bytes(values)
    if pa.types.is_floating(type):
        numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        plain = (numbers + 0.0).view(np.int64)  # both zeros are one value
    else:
        filled = values.fill_null(False) if pa.types.is_boolean(type) else values.fill_null(0)
        plain = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    if not values.null_count:
        return plain
    missing = values.is_null().to_numpy(zero_copy_only=False)
    words: Ints = np.where(missing, np.int64(MISSING), plain)
    return words


def words_of_bytes(values: pa.Array) -> Ints:
    """The words of texts and of bytes."""
    _, offsets, data = values.buffers()
    starts: Any = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    content: Any = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    words = np.empty(len(values), np.int64)
    put_words(np.ascontiguousarray(starts), content, words)
    if values.null_count:
        words[values.is_null().to_numpy(zero_copy_only=False)] = MISSING
    return words


@compiled_for(column(np.int32), column(np.uint8), output(np.int64))
def put_words(offsets: NDArray[np.int32], data: NDArray[np.uint8], words: Ints) -> None:
    for i in range(len(words)):
        words[i] = word_of(data, offsets[i], offsets[i + 1])


@compiled_for(output(np.uint64), column(np.int64))
def add_words(hashes: Hashes, words: Ints) -> None:
    for i in range(len(words)):
        hashes[i] = mix(hashes[i] * np.uint64(0x9E3779B97F4A7C15) ^ value_hash(words[i]))
