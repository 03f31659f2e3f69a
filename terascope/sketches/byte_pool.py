"""Values that are runs of bytes, each kept once, for the states of a column.

In: codes of a dictionary, or runs of bytes out of packed states. Out: numbers, the same for equal
bytes as long as the pool lives, which kernels compare in the order of the bytes.

States cannot keep the codes of a dictionary, for packed states come from tasks that have others.
The first eight bytes of a value are kept as a word: most comparisons end with it, and neither sort
values nor rank codes. A value stays until the pool is cleared, though no state may have it any
longer, as it does in dictionaries.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined, output
from terascope.sketches.base import CodedValues, ValueDictionary, bytes_of
from terascope.sketches.murmur import binary_values, hash_run
from terascope.sketches.word_lists import enlarged

Ids = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

SEVERAL: Final = 1 << 20
"""A pool of more bytes gives its memory back when it is cleared."""


class BytePool:
    """Runs of bytes, numbered from 0."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._count = 0
        self.ends: Offsets = np.zeros(65, np.int64)
        """The bytes of value k end at ends[k + 1], where those of the next begin."""
        self.heads: NDArray[np.uint64] = np.zeros(64, np.uint64)
        """The first eight bytes, the first of them the highest, as a number."""
        self.content: Bytes = np.zeros(1024, np.uint8)
        self._table: Ids = np.zeros(128, np.int64)
        self._dictionary: ValueDictionary | None = None
        self._of_code: Ids = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget all values, if they take much memory."""
        if self.memory_bytes > SEVERAL:
            self._reset()

    def of_codes(self, coded: CodedValues) -> Ids:
        """The numbers of values that have codes. Each code of a dictionary is looked up once."""
        codes = coded.codes
        if coded.dictionary is not self._dictionary:
            self._dictionary, self._of_code = coded.dictionary, np.zeros(0, np.int64)
        most = int(codes.max()) + 1 if len(codes) else 0
        if most > len(self._of_code):
            self._of_code = enlarged(self._of_code, max(most, 2 * len(self._of_code)))
        ids = np.empty(len(codes), np.int64)
        new = np.empty(min(len(codes), most), np.int32)
        count = look_up(codes, self._of_code, ids, new)
        if count:
            new = new[:count]
            self._of_code[new] = 1 + self.of_values(binary_values(coded.dictionary, new))
            look_up(codes, self._of_code, ids, new)
        return ids

    def of_values(self, values: pa.LargeBinaryArray) -> Ids:
        offsets, data = bytes_of(values)
        return self.of_runs(offsets[:-1], offsets[1:], data)

    def of_runs(self, begins: Offsets, ends: Offsets, data: Bytes) -> Ids:
        """The numbers of data[begins[i] : ends[i]]."""
        ids = np.empty(len(begins), np.int64)
        at = 0
        while True:
            at, self._count = intern(
                begins, ends, data, at, ids,
                self._table, self.ends, self.heads, self.content, self._count,
            )  # fmt: skip
            if at == len(begins):
                return ids
            self._grow(int(ends[at] - begins[at]))

    def _grow(self, longest: int) -> None:
        used = int(self.ends[self._count])
        if used + longest > len(self.content):
            self.content = enlarged(self.content, 2 * (used + longest))
        if self._count == len(self.heads):
            self.heads = enlarged(self.heads, 2 * self._count)
            self.ends = enlarged(self.ends, 2 * self._count + 1)
            self._table = np.zeros(4 * self._count, np.int64)
            refill_table(self._table, self.ends, self.content, self._count)

    def lengths(self, ids: Ids) -> Offsets:
        found: Offsets = self.ends[ids + 1] - self.ends[ids]
        return found

    def value(self, number: int) -> bytes:
        return self.content[self.ends[number] : self.ends[number + 1]].tobytes()

    @property
    def memory_bytes(self) -> int:
        arrays = (self.ends, self.heads, self.content, self._table, self._of_code)
        return sum(array.nbytes for array in arrays)


# ---- in kernels ----------------------------------------------------------------------------------


@inlined
def head_of(data: Bytes, begin: int, end: int) -> np.uint64:
    head = np.uint64(0)
    for k in range(8):
        head <<= np.uint64(8)
        if begin + k < end:
            head |= np.uint64(data[begin + k])
    return head


@inlined
def rest_precedes(ends: Offsets, content: Bytes, left: int, right: int) -> Any:
    """Whether a value stands before another that begins with the same eight bytes."""
    a, b = ends[left], ends[right]
    m, n = ends[left + 1] - a, ends[right + 1] - b
    for k in range(min(m, n)):
        if content[a + k] != content[b + k]:
            return content[a + k] < content[b + k]
    return m < n


@inlined
def same_run(ends: Offsets, content: Bytes, number: int, data: Bytes, begin: int, end: int) -> bool:
    first = ends[number]
    if ends[number + 1] - first != end - begin:
        return False
    k = 0
    while k < end - begin and content[first + k] == data[begin + k]:
        k += 1
    return k == end - begin


@compiled_for(column(np.int32), output(np.int64), output(np.int64), output(np.int32))
def look_up(codes: NDArray[np.int32], of_code: Ids, ids: Ids, new: NDArray[np.int32]) -> int:
    """Number codes: of_code[c] is the number of code c plus 1. Codes that have none yet are listed
    in `new`, each once; returns how many there are.
    """
    count = 0
    for i in range(len(codes)):
        code = np.uint32(codes[i])
        held = of_code[code]
        if held == 0:
            of_code[code] = -1
            new[count] = codes[i]
            count += 1
        ids[i] = held - 1
    return count


@compiled_for(
    column(np.int64, layout="A"), column(np.int64, layout="A"), column(np.uint8), INTEGER,
    output(np.int64), output(np.int64), output(np.int64), output(np.uint64), output(np.uint8),
    INTEGER,
)  # fmt: skip
def intern(
    begins: Offsets, finals: Offsets, data: Bytes, start: int, ids: Ids,
    table: Ids, ends: Offsets, heads: NDArray[np.uint64], content: Bytes, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Number runs from `start` on, until all are done or there is no room; returns how many are,
    and how many values there are. A place of the table has the number of a value plus 1.
    """
    top = np.uint64(len(table) - 1)
    for i in range(start, len(begins)):
        begin, end = begins[i], finals[i]
        at = hash_run(data, begin, end)[0] & top
        while True:
            held = table[at] - 1
            if held < 0:
                used = ends[count]
                if count == len(heads) or used + end - begin > len(content):
                    return i, count
                content[used : used + end - begin] = data[begin:end]
                ends[count + 1] = used + end - begin
                heads[count] = head_of(data, begin, end)
                table[at] = count + 1
                ids[i] = count
                count += 1
                break
            if same_run(ends, content, held, data, begin, end):
                ids[i] = held
                break
            at = (at + np.uint64(1)) & top
    return len(begins), count


@compiled_for(output(np.int64), column(np.int64), column(np.uint8), INTEGER)
def refill_table(table: Ids, ends: Offsets, content: Bytes, count: int) -> None:
    top = np.uint64(len(table) - 1)
    for number in range(count):
        at = hash_run(content, ends[number], ends[number + 1])[0] & top
        while table[at] != 0:
            at = (at + np.uint64(1)) & top
        table[at] = number + 1


@compiled_for(
    column(np.int64), column(np.int64), column(np.uint8), column(np.int64), output(np.uint8)
)
def copy_values(ids: Ids, ends: Offsets, content: Bytes, places: Offsets, out: Bytes) -> None:
    """Write the bytes of value ids[i] to out[places[i]:]."""
    for i in range(len(ids)):
        begin, at = ends[ids[i]], places[i]
        for k in range(ends[ids[i] + 1] - begin):
            out[np.uint64(at + k)] = content[np.uint64(begin + k)]
