"""Grouping many tuples at once: first apart by one key, then part by part within the cache.

In: the tuples of one epoch, many of them. Out: their groups, each once. A table of many groups is
larger than the cache, and every tuple waits for memory. Here the tuples are first put in order of a
hash of one key (once for all queries that have that key), so that the tuples of a group stand near
each other; a part of a few thousand of them is then grouped in a table that fits the cache.
docs/decisions.md has the figures.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from terascope.hashing import multiplied, table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.columns.arrays import Codes, Ints, Rows, Values, all_valid
from terascope.kernels.tables import slots
from terascope.kernels.tables.slots import Shape, TableColumns
from terascope.machine_code import INTEGER, column, compiled_for, output

PART_ROWS: Final = 1 << 11
"""About as many tuples as a part has."""
MOST_PARTS: Final = 1 << 12
STRETCH_ROWS: Final = 1 << 16
"""Tuples that are put in order at a time: a vector of them is half of a core's own cache."""


class Apart:
    """The tuples `rows` apart by one of their keys, and the vectors that were put in that order."""

    def __init__(self, codes: Codes, rows: Codes) -> None:
        self._rows = rows  # kept: no others can get their identity
        self._places, self.edges = partition(codes, rows)
        self._vectors: dict[int, tuple[Values, Values]] = {}

    def vector(self, vector: Values) -> Values:
        """A vector of the batch, which is kept: no other can get its identity."""
        known = self._vectors.get(id(vector))
        if known is None:
            known = self._vectors[id(vector)] = vector, in_order(vector, self._rows, self._places)
        return known[1]


def partition(codes: Codes, rows: Codes) -> tuple[Codes, Ints]:
    """The tuples `rows`, partitioned by the hash of a key, one stretch after the other, so that
    each stretch fits into the cache. Returns the position of each tuple in that order; and for each
    stretch the start of each of its parts, and the end of the last.
    """
    bits = max(1, (max(1, len(rows) // PART_ROWS)).bit_length())
    parts = min(1 << bits, MOST_PARTS)
    stretches = max(1, -(-len(rows) // STRETCH_ROWS))
    edges = np.zeros((stretches, parts + 1), np.int64)
    places = np.empty(len(rows), np.int32)
    spread(codes, rows, parts.bit_length() - 1, STRETCH_ROWS, edges, places)
    return places, edges


@compiled_for(
    column(np.int32), column(np.int32), INTEGER, INTEGER, output(np.int64, 2), output(np.int32)
)
def spread(codes: Codes, rows: Codes, bits: int, length: int, edges: Ints, places: Codes) -> None:
    """Count, then place: two passes over the key of each stretch."""
    shift = np.uint64(64 - bits)
    parts = edges.shape[1] - 1
    at = np.empty(parts, np.int64)
    for stretch in range(len(edges)):
        begin = stretch * length
        end = min(begin + length, len(rows))
        own = edges[stretch]
        for r in range(begin, end):
            own[multiplied(codes[np.uint32(rows[r])], shift) + np.uint64(1)] += 1
        own[0] = begin
        for part in range(parts):
            own[part + 1] += own[part]
            at[part] = own[part]
        for r in range(begin, end):
            own_part = multiplied(codes[np.uint32(rows[r])], shift)
            places[r] = at[own_part]
            at[own_part] += 1


def in_order(vector: Values, rows: Codes, places: Codes) -> Values:
    """A vector in the order of the parts."""
    if vector.base is all_valid(1).base:
        return all_valid(len(rows))
    out = np.empty(len(rows), vector.dtype)
    scatters[vector.dtype.type](vector, rows, places, out)
    return out


def scatter(vector: Values, rows: Codes, places: Codes, out: Values) -> None:
    """Read one after the other and written to as many places as there are parts: the other way
    round every read would be of another line of the cache.
    """
    for i in range(len(rows)):
        out[np.uint32(places[i])] = vector[np.uint32(rows[i])]


scatters: Final = {
    kind: compiled_for(column(kind), column(np.int32), column(np.int32), output(kind))(scatter)
    for kind in (np.int32, np.int64, np.float64, np.uint8)
}


def group_parts(
    shape: Shape, edges: Ints, columns: TableColumns, sure: bool
) -> tuple[Rows, Ints] | None:
    """The groups of tuples that stand in the order of their parts, and edges again, where each part
    of the groups begins; None when a sum overflows.

    `sure`: no argument is NULL, and no sum can overflow. The rows are a view of the room all tuples
    might have needed: whoever keeps them for long should copy them.
    """
    longest = int(np.diff(edges).sum(axis=0).max(initial=0))
    places = np.zeros(1 << max(1, (2 * longest - 1).bit_length()), np.int32)
    groups = np.empty(int(edges[-1, -1]) * shape.stride, np.int64)
    kernel = group_kernel(shape, sure)
    floats = groups.view(np.float64)
    begins = np.zeros((1, edges.shape[1]), np.int64)
    count = kernel(places, groups, floats, edges, begins, *columns.arrays(sure))
    if count < 0:
        return None
    return groups[: count * shape.stride].reshape(count, shape.stride), begins


@cache
def group_kernel(shape: Shape, sure: bool) -> Any:
    """Groups tuples part by part. `places` has the numbers of groups by their hash; groups are made
    one behind the other.
    """
    body = [
        "count = np.int64(0)",
        "for part in range(edges.shape[1] - 1):",
        "    number = np.int64(0)",
        "    for stretch in range(len(edges)):",
        "        number += edges[stretch, part + 1] - edges[stretch, part]",
        "    bits = np.int64(1)",
        "    while (np.int64(1) << bits) < 2 * number:",
        "        bits += 1",
        "    top = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)",
        "    shift = np.uint64(64 - bits)",
        "    first = count",
        "    places[: np.int64(1) << bits] = 0",
        "    for stretch in range(len(edges)):",
        "        end = np.uint64(edges[stretch, part + 1])",
        "        for i in range(np.uint64(edges[stretch, part]), end):",
        *indent(slots.load_words(shape), 3),
        f"            at = ({table_hash(shape.word_names)} >> shift) & top",
        "            while True:",
        "                known = np.int64(places[at])",
        "                if known == 0:",
        "                    places[at] = np.int32(count - first + 1)",
        f"                    base = np.uint64(count) * np.uint64({shape.stride})",
        "                    count += 1",
        "                    seen = np.int64(1)",
        *indent(
            [*slots.new_words(shape), *slots.zero_slots(shape), *slots.new_slots(shape, sure)], 5
        ),
        "                    break",
        f"                base = np.uint64(first + known - 1) * np.uint64({shape.stride})",
        f"                if {slots.same_words(shape)}:",
        "                    seen = entries[base]",
        "                    break",
        "                at = (at + np.uint64(1)) & top",
        *indent(slots.update_slots(shape, sure, ["return np.int64(-1)"]), 3),
        "    begins[0, part + 1] = count",
        "return count",
    ]
    head = output(np.int32), output(np.int64), output(np.float64), column(np.int64, 2)
    name = f"group_parts(places, entries, floats, edges, begins{slots.column_names(shape, sure)})"
    types = *head, output(np.int64, 2), *slots.column_types(shape, sure)
    return GeneratedKernel(name, body, *types).compile()
