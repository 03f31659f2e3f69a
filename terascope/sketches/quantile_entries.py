"""Quantile summaries: sorted entries, their merge and their compression (paper 1, 4.1, Figure 1).

In: values, or entries of two summaries. Out: parts of kernels that make sorted entries of values
and merge two summaries into one.

The summary of Greenwald and Khanna has tuples (v, g, delta): v is one of the values, g is the
number of values that the tuple stands for, and delta is the uncertainty of its rank. With many
equal values, as packet lengths are, g of the common ones is large although nothing is uncertain
about them. So g is kept in two parts here. An entry (v, c, h, d) says:

- c values equal v (the copies; the paper's tuple has c = 1);
- h values are smaller than v and larger than the v of the entry before (the hidden values), and
  g = c + h;
- up to d values that later entries stand for may be smaller than v or equal to it (delta).

With G the sum of g up to and with an entry, at least G - c and at most G - c + d values are smaller
than v. A query for rank r takes an entry whose copies are surely near: its error is at most
max(0, G - c + d + 1 - r, r - G). Between the copies of two neighbours there are at most h + d + 1
steps, so the nearer of the two is wrong by at most ceil((h + d) / 2) ranks. Hence the invariant

    h + d + 1 <= max(1, floor(2 eps n))  for every entry

bounds the error by floor(eps n). It is the paper's condition g + delta <= 2 eps n where c = 1. A
summary with h = d = 0 everywhere is exact.

Merge. Let v of A lie below w, the next larger value of B, with (c', h', d'). Of the values of B,
those before w are surely below v, but for the h' + d' that may be on either side: the delta of v
grows by h' + d', which is the paper's g' + delta' - 1. Behind the last entry of B it grows by 0.
Equal values add up in all parts. So every entry of the result has

    h + d  <=  (h + d of A) + (h' + d' of B)
           <=  max(0, floor(2 eps m) - 1) + max(0, floor(2 eps n) - 1)
           <=  max(0, floor(2 eps (m + n)) - 1),

because floor(x) + floor(y) <= floor(x + y): the invariant holds again, with the same eps, over any
tree of merges. If the two have different eps it holds for the larger one. The merge ends when both
summaries are used up; Figure 1 as printed counts M + N steps, and runs past its sentinels by one
step for each pair of equal values.

Compression gives an entry up, and adds its c + h to the h of the next one, if that keeps the
invariant for it. The first entry is never given up, and the last one has no next. So the first has
h = d = 0 and the last d = 0, always: by the rule above a new minimum or maximum enters with d = 0.

Both go from the largest value to the smallest: in a merge the next larger entry of the other
summary is then the one passed last.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from terascope.machine_code import inlined

ENTRY: Final = 4
"""Words of an entry at work: v, c, h, d."""
FIELD: Final = 21
"""Bits of c, h and d in a narrow entry, which has two words: v, and the three of them."""
LIMIT: Final = (1 << FIELD) - 1
BUCKETS: Final = 1 << 16
"""Values within so wide a range are counted; others are sorted."""
COUNTS: Final = BUCKETS + BUCKETS // 64
"""Words that counting takes."""
PARTS: Final = 256
"""Other values are first put into so many parts, in the order of the parts."""
FEW: Final = 12
"""So few values are sorted by insertion."""
MANY: Final = 24
"""So are parts of at most so many values."""


@inlined
def counted(raw: Any, count: Any, entries: Any, counts: Any) -> Any:
    """Make exact entries of the first values of `raw`; return how many. `counts`, where a bit for
    each count follows the counts, is 0 before and afterwards.
    """
    if count <= FEW:
        _insertion_sort(raw, np.int64(0), count)
        return _runs(raw, count, entries)
    low = high = raw[0]
    for i in range(1, count):
        low = min(low, raw[i])
        high = max(high, raw[i])
    span = np.uint64(high) - np.uint64(low)
    if span >= np.uint64(BUCKETS) or span > np.uint64(512 * count):
        _bucket_sort(raw, count, low, span, entries, counts)
        return _runs(raw, count, entries)
    for i in range(count):
        place = np.uint64(raw[i]) - np.uint64(low)
        counts[place] += 1
        counts[np.uint64(BUCKETS) + (place >> np.uint64(6))] |= np.int64(1) << np.int64(
            place & np.uint64(63)
        )
    made = np.int64(0)
    for word in range((np.int64(span) >> 6) + 1):
        bits = np.uint64(counts[BUCKETS + word])
        counts[BUCKETS + word] = 0
        while bits != 0:
            lowest = bits & (~bits + np.uint64(1))
            found = np.int64(word * 64 + _ones(lowest - np.uint64(1)))
            at = made * ENTRY
            entries[at] = low + found
            entries[at + 1] = counts[found]
            entries[at + 2] = 0
            entries[at + 3] = 0
            counts[found] = 0
            bits ^= lowest
            made += 1
    return made


@inlined
def _insertion_sort(raw: Any, start: Any, end: Any) -> None:
    for i in range(start + 1, end):
        value = raw[i]
        j = i
        while j > start and raw[j - 1] > value:
            raw[j] = raw[j - 1]
            j -= 1
        raw[j] = value


@inlined
def _bucket_sort(raw: Any, count: Any, low: Any, span: Any, spare: Any, counts: Any) -> None:
    """Sort values: first into 256 parts of equal width, then each part. `spare` has room for as
    many; `counts` is 0 before and afterwards.
    """
    shift = np.uint64(0)
    while span >> shift >= np.uint64(PARTS):
        shift += np.uint64(1)
    for i in range(count):
        spare[i] = raw[i]
        counts[(np.uint64(raw[i]) - np.uint64(low)) >> shift] += 1
    start = np.int64(0)
    for part in range(PARTS):
        start += counts[part]
        counts[part] = start
    for i in range(count):
        place = (np.uint64(spare[i]) - np.uint64(low)) >> shift
        counts[place] -= 1
        raw[np.uint64(counts[place])] = spare[i]
    for part in range(PARTS):
        begin = counts[part]
        end = counts[part + 1] if part + 1 < PARTS else count
        counts[part] = 0
        if end - begin <= MANY:
            _insertion_sort(raw, begin, end)
        else:
            raw[begin:end].sort()


@inlined
def _ones(word: Any) -> Any:
    """The number of bits set in a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def _runs(raw: Any, count: Any, entries: Any) -> Any:
    """An entry for each run of equal values."""
    made = np.int64(0)
    at = np.int64(-ENTRY)
    for i in range(count):
        if made and raw[i] == entries[at]:
            entries[at + 1] += 1
        else:
            at += ENTRY
            made += 1
            entries[at] = raw[i]
            entries[at + 1] = 1
            entries[at + 2] = 0
            entries[at + 3] = 0
    return made


@inlined
def total(entries: Any, count: Any) -> Any:
    """The number of values that entries stand for."""
    n = np.int64(0)
    for i in range(count):
        n += entries[i * ENTRY + 1] + entries[i * ENTRY + 2]
    return n


@inlined
def joined(a: Any, left: Any, b: Any, right: Any, out: Any) -> Any:
    """Merge `left` entries of a with `right` entries of b. Return how many there are; they begin at
    out[0].
    """
    last = ENTRY * (left + right)
    at = last  # entries are written from here downwards
    i, j = ENTRY * (left - 1), ENTRY * (right - 1)
    above_a = above_b = np.int64(0)  # h + d of the next larger entry of each
    while i >= 0 or j >= 0:
        at -= ENTRY
        if j < 0 or (i >= 0 and a[i] > b[j]):
            out[at], out[at + 1], out[at + 2], out[at + 3] = a[i], a[i + 1], a[i + 2], a[i + 3]
            out[at + 3] += above_b
            above_a = a[i + 2] + a[i + 3]
            i -= ENTRY
        elif i < 0 or b[j] > a[i]:
            out[at], out[at + 1], out[at + 2], out[at + 3] = b[j], b[j + 1], b[j + 2], b[j + 3]
            out[at + 3] += above_a
            above_b = b[j + 2] + b[j + 3]
            j -= ENTRY
        else:
            out[at], out[at + 1] = a[i], a[i + 1] + b[j + 1]
            out[at + 2], out[at + 3] = a[i + 2] + b[j + 2], a[i + 3] + b[j + 3]
            above_a, above_b = a[i + 2] + a[i + 3], b[j + 2] + b[j + 3]
            i -= ENTRY
            j -= ENTRY
    if at > 0:
        for k in range(last - at):
            out[k] = out[at + k]
    return (last - at) // ENTRY


@inlined
def shrink(entries: Any, count: Any, eps: Any, keep: Any) -> Any:
    """Compress entries to about `keep`, if eps allows that; return how many are left. A quarter of
    the error that is left is spent at a time, and the more of it is spent, the more entries may
    stay, up to twice as many: summaries that always spend all of it grow by more than half with
    each level of merges.
    """
    if count <= keep:
        return count
    n = total(entries, count)
    most = np.int64(np.floor(2.0 * eps * n))
    bound = np.int64(0)
    for i in range(count):
        bound = max(bound, entries[i * ENTRY + 2] + entries[i * ENTRY + 3] + 1)
    while bound < most and (count > 2 * keep or 2 * count * (most - bound) > keep * most):
        bound += max((most - bound) // 4, np.int64(1))
        count = compress(entries, count, bound)
    return count


@inlined
def compress(entries: Any, count: Any, bound: Any) -> Any:
    """Give entries up while h + d + 1 of the next one is at most `bound`; return how many are left,
    which begin at entries[0].
    """
    last = ENTRY * (count - 1)
    kept = last  # the entry that may still take others in
    for i in range(last - ENTRY, -ENTRY, -ENTRY):
        part = entries[i + 1] + entries[i + 2]
        if i > 0 and part + entries[kept + 2] + entries[kept + 3] + 1 <= bound:
            entries[kept + 2] += part
        else:
            kept -= ENTRY
            for k in range(ENTRY):
                entries[kept + k] = entries[i + k]
    if kept > 0:
        for k in range(last + ENTRY - kept):
            entries[k] = entries[kept + k]
    return (last - kept) // ENTRY + 1


@inlined
def is_exact(entries: Any, count: Any) -> Any:
    unsure = np.int64(0)
    for i in range(count):
        unsure |= entries[i * ENTRY + 2] | entries[i * ENTRY + 3]
    return unsure == 0


# ---- entries in a region -------------------------------------------------------------------------


@inlined
def entry_words(entries: Any, count: Any) -> Any:
    """The words that one of these entries takes in a region: 2, or 4 where a number is large."""
    largest = np.int64(0)
    for i in range(count):
        largest |= entries[i * ENTRY + 1] | entries[i * ENTRY + 2] | entries[i * ENTRY + 3]
    return np.int64(2 if largest <= LIMIT else ENTRY)


@inlined
def store_entries(entries: Any, count: Any, words: Any, arena: Any, start: Any) -> None:
    if words == 2:
        for i in range(count):
            at = i * ENTRY
            arena[start + 2 * i] = entries[at]
            large = (entries[at + 2] << FIELD) | (entries[at + 3] << (2 * FIELD))
            arena[start + 2 * i + 1] = entries[at + 1] | large
    else:
        for i in range(ENTRY * count):
            arena[start + i] = entries[i]


@inlined
def load_entries(arena: Any, start: Any, count: Any, words: Any, entries: Any) -> None:
    if words == 2:
        for i in range(count):
            at, parts = i * ENTRY, arena[start + 2 * i + 1]
            entries[at] = arena[start + 2 * i]
            entries[at + 1] = parts & LIMIT
            entries[at + 2] = (parts >> FIELD) & LIMIT
            entries[at + 3] = parts >> (2 * FIELD)
    else:
        for i in range(ENTRY * count):
            entries[i] = arena[start + i]
