"""Bit vectors of the prefilter: which tuples have all bits of a signature (dissertation 3.4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from terascope.kernels.columns.dictionary import Codes, Hashes, Masks
from terascope.machine_code import WORD, column, compiled_for, output


def words_of(signature: Sequence[int], words: int) -> Hashes:
    """A signature as a bit vector."""
    vector = np.zeros(words, np.uint64)
    for bit in signature:
        vector[bit // 64] |= np.uint64(1 << (bit % 64))
    return vector


def select(bits: Sequence[Hashes], signature: Hashes, count: int) -> Codes:
    """The tuples that have all bits of a signature."""
    rows: Codes | None = None
    for vector, wanted in zip(bits, signature, strict=True):
        if not wanted:
            continue
        if rows is None:
            rows = np.empty(count, np.int32)
            rows = rows[: matching(vector, wanted, rows)]
        else:
            rows = rows[(vector[rows] & wanted) == wanted]
    return np.arange(count, dtype=np.int32) if rows is None else rows


@compiled_for(column(np.uint64), WORD, output(np.int32))
def matching(vector: Hashes, wanted: np.uint64, rows: Codes) -> np.int64:
    """Branch-free: a tuple that does not match is overwritten by the next."""
    count = np.int64(0)
    for i in range(len(vector)):
        rows[count] = i
        count += np.int64((vector[i] & wanted) == wanted)
    return count


@compiled_for(column(np.int32), output(np.uint8))
def mark(rows: Codes, marks: Masks) -> None:
    """Numpy takes five times as long."""
    for i in range(len(rows)):
        marks[np.uint32(rows[i])] = 1
