"""Rows in the order of their keys, so that the rows of a group are neighbours.

In: rows, and the words that distinguish groups. Out: an order, and the start of each group.
"""

from __future__ import annotations

import numpy as np

from terascope.hashing import mix
from terascope.kernels.columns.dictionary import Ints
from terascope.kernels.merge.groups import Rows
from terascope.machine_code import INTEGER, column, compiled_for, output


def by_key(rows: Rows, first_word: int, end: int) -> tuple[Ints, Ints]:
    """The places of rows in the order of their groups, and where each group begins."""
    groups = np.empty(len(rows), np.int64)
    places = np.full(1 << max(4, (2 * len(rows)).bit_length()), -1, np.int64)
    number = number_groups(rows, first_word, end, places, groups)
    edges = np.zeros(number + 1, np.int64)
    order = np.empty(len(rows), np.int64)
    put_in_order(groups, edges, order)
    return order, edges


@compiled_for(column(np.int64, 2), INTEGER, INTEGER, output(np.int64), output(np.int64))
def number_groups(rows: Rows, first_word: int, end: int, places: Ints, groups: Ints) -> int:
    """A number for each different key, in the order they come. `places`: -1, a power of two."""
    top = len(places) - 1
    first = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        h = np.uint64(0)
        for k in range(first_word, end):
            h = mix(h ^ np.uint64(rows[i, k]))
        at = np.int64(h) & top
        while True:
            known = places[at]
            if known < 0:
                places[at] = count
                first[count] = i
                groups[i] = count
                count += 1
                break
            same = True
            for k in range(first_word, end):
                if rows[first[known], k] != rows[i, k]:
                    same = False
                    break
            if same:
                groups[i] = known
                break
            at = (at + 1) & top
    return count


@compiled_for(column(np.int64), output(np.int64), output(np.int64))
def put_in_order(groups: Ints, edges: Ints, order: Ints) -> None:
    """Count, then place; rows of a group keep their order."""
    for i in range(len(groups)):
        edges[groups[i] + 1] += 1
    for g in range(len(edges) - 1):
        edges[g + 1] += edges[g]
    cursors = edges[:-1].copy()
    for i in range(len(groups)):
        order[cursors[groups[i]]] = i
        cursors[groups[i]] += 1
