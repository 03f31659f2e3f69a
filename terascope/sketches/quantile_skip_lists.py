"""Quantile states in skip lists: the medium variant of paper 1, 4.1.

In: values of groups. Out: `SkipLists`, a column of the low level.

A state begins as a few values. When there are more, its region becomes the scratchpad, and its
entries (terascope.sketches.quantile_entries) become the nodes of a skip list in it, so that a value
finds its place in logarithmic time. A value that is there already counts one copy more. A new one
enters with the delta of the paper. The summary is compressed in two places only: beside the new
value (the local probe), and at a random node (the random probe). So the work on a tuple is small
and steady, but the summary is larger than a compressed one; the high level compresses it before the
merge. A state without a free node leaves, and so does one whose counts outgrow their fields.

Two words begin the region: the number of values, and the number of nodes that were ever used with
the first node that is free again in the upper half. Nodes of three words follow: the value; c, h
and d in fields of 21 bits; and the next node of each of four levels in fields of 16 bits. Node 0
is the head of all lists and, as a link, their end. A node is free when its c is 0.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.hashing import mix
from terascope.machine_code import INTEGER, REAL, column, compiled_for, inlined, output
from terascope.sketches.base import Numbers
from terascope.sketches.quantile_bytes import buffer_bound, entries_bound, put_buffer, put_entries
from terascope.sketches.quantile_columns import SCRATCHPAD, LowColumn, PackedStates
from terascope.sketches.quantile_entries import ENTRY, FIELD, LIMIT
from terascope.sketches.quantile_kernels import MEMORY, OUTBOX, WORK, box_add, box_start
from terascope.sketches.quantile_regions import (
    DONE,
    META,
    NEEDS_ARENA,
    NEEDS_OUTBOX,
    NEEDS_WORK,
    SIZE,
    free_region,
    move_values,
    region_words,
    size_for,
    take_region,
)
from terascope.sketches.quantile_states import FULL, shape_of

LIST: Final = 64
"""Flag of a description: the region has a skip list."""
LEVELS: Final = 4
NODE: Final = 3
"""Words of a node."""
MOST_NODES: Final = 1 << 16
FEW: Final = 32
"""States of about so many values are values."""


# ---- nodes ---------------------------------------------------------------------------------------
# In all of these, `list` is the first word of the region.


@inlined
def _at(list: Any, node: Any) -> Any:
    return list + 2 + NODE * node


@inlined
def _next(arena: Any, list: Any, node: Any, level: Any) -> Any:
    return (arena[_at(list, node) + 2] >> (16 * level)) & 0xFFFF


@inlined
def _link(arena: Any, list: Any, node: Any, level: Any, to: Any) -> None:
    at, shift = _at(list, node) + 2, 16 * level
    arena[at] = (arena[at] & ~(np.int64(0xFFFF) << shift)) | (to << shift)


@inlined
def _copies(arena: Any, list: Any, node: Any) -> Any:
    return arena[_at(list, node) + 1] & LIMIT


@inlined
def _hidden(arena: Any, list: Any, node: Any) -> Any:
    return (arena[_at(list, node) + 1] >> FIELD) & LIMIT


@inlined
def _unsure(arena: Any, list: Any, node: Any) -> Any:
    """The h + d of a node."""
    return _hidden(arena, list, node) + (arena[_at(list, node) + 1] >> (2 * FIELD))


@inlined
def _clear_list(arena: Any, list: Any) -> None:
    for k in range(2 + NODE):
        arena[list + k] = 0


@inlined
def _find(arena: Any, list: Any, value: Any, path: Any) -> Any:
    """The first node whose value is not smaller; `path` gets the node before it on each level."""
    node = np.int64(0)
    for level in range(LEVELS - 1, -1, -1):
        following = _next(arena, list, node, level)
        while following and arena[_at(list, following)] < value:
            node = following
            following = _next(arena, list, node, level)
        path[level] = node
    return _next(arena, list, node, 0)


@inlined
def _give_up(arena: Any, list: Any, node: Any, bound: Any, path: Any) -> None:
    """Add a node to the one behind it, if neither is missing, it is not the first, and the next one
    keeps its bound.
    """
    following = _next(arena, list, node, 0)
    if following == 0 or node == 0 or node == _next(arena, list, 0, 0):
        return
    part = _copies(arena, list, node) + _hidden(arena, list, node)
    if part + _unsure(arena, list, following) + 1 > bound:
        return
    arena[_at(list, following) + 1] += part << FIELD
    _find(arena, list, arena[_at(list, node)], path)
    for level in range(LEVELS):
        if _next(arena, list, path[level], level) == node:
            _link(arena, list, path[level], level, _next(arena, list, node, level))
    arena[_at(list, node) + 1] = 0
    arena[_at(list, node)] = arena[list + 1] >> 32
    arena[list + 1] = (arena[list + 1] & 0xFFFFFFFF) | (node << 32)


@inlined
def _new_node(arena: Any, list: Any, nodes: Any) -> Any:
    """A free node; 0 when there is none."""
    used, node = arena[list + 1] & 0xFFFFFFFF, arena[list + 1] >> 32
    if node:
        arena[list + 1] = used | (arena[_at(list, node)] << 32)
    elif used + 1 < nodes:
        node = used + 1
        arena[list + 1] = node
    return node


@inlined
def insert(arena: Any, list: Any, nodes: Any, value: Any, eps: Any, chance: Any, path: Any) -> Any:
    """Take a value in; `chance` is a random word. DONE, or FULL: nothing was changed."""
    bound = min(np.int64(np.floor(2.0 * eps * (arena[list] + 1))), np.int64(LIMIT))
    following = _find(arena, list, value, path)
    before = path[0]
    if following and arena[_at(list, following)] == value:
        if _copies(arena, list, following) == LIMIT:
            return FULL
        arena[_at(list, following) + 1] += 1
        arena[list] += 1
        return DONE
    delta = _unsure(arena, list, following) if following else np.int64(0)
    if before and following and delta + 2 <= bound:  # it would be given up at once
        arena[_at(list, following) + 1] += np.int64(1) << FIELD
        arena[list] += 1
        return DONE
    node = _new_node(arena, list, nodes)
    if node == 0:
        return FULL
    arena[list] += 1
    at = _at(list, node)
    arena[at], arena[at + 1], arena[at + 2] = value, 1 | (delta << (2 * FIELD)), 0
    levels = 1
    while levels < LEVELS and (chance >> np.uint64(2 * levels)) & np.uint64(3) == 0:
        levels += 1
    for level in range(levels):
        _link(arena, list, node, level, _next(arena, list, path[level], level))
        _link(arena, list, path[level], level, node)
    _give_up(arena, list, before, bound, path)
    random = np.int64((chance >> np.uint64(32)) % np.uint64(arena[list + 1] & 0xFFFFFFFF)) + 1
    if _copies(arena, list, random):
        _give_up(arena, list, random, bound, path)
    return DONE


@inlined
def read_list(arena: Any, list: Any, entries: Any) -> Any:
    """The entries of a list; return how many."""
    count = np.int64(0)
    node = _next(arena, list, 0, 0)
    while node:
        at, parts = count * ENTRY, arena[_at(list, node) + 1]
        entries[at] = arena[_at(list, node)]
        entries[at + 1] = parts & LIMIT
        entries[at + 2] = (parts >> FIELD) & LIMIT
        entries[at + 3] = parts >> (2 * FIELD)
        count += 1
        node = _next(arena, list, node, 0)
    return count


@inlined
def begin_list(
    meta: Any, arena: Any, at: Any, most: Any, nodes: Any, eps: Any, chance: Any, path: Any
) -> Any:
    """Make a skip list of the values of a state. DONE or NEEDS_ARENA."""
    size = size_for(most, most)
    list = take_region(arena, size, most)
    if list == 0:
        return NEEDS_ARENA
    _clear_list(arena, list)
    old_size, old, _, _, count = shape_of(meta, at, most)
    for i in range(count):
        insert(arena, list, nodes, arena[old + i], eps, mix(chance + np.uint64(i)), path)
    free_region(arena, old_size, old)
    meta[at] = meta[at + 1] = list + region_words(size, most)
    meta[at + 2] = size | LIST
    return DONE


# ---- kernels -------------------------------------------------------------------------------------


@compiled_for(
    INTEGER, column(np.int64), column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER,
    output(np.uint64), output(np.int64),
)  # fmt: skip
def fill_lists(
    begin: Any, numbers: Any, values: Any, memory: Any, work: Any, box: Any, eps: Any, floats: Any,
    most: Any, chances: Any, report: Any,
) -> None:  # fmt: skip
    """Take values in; a list without a free node leaves. `chances` counts random words."""
    meta, _, arena = memory
    _, path, _, made, _, eps_word, eps_bytes = work
    data, ends, owners, count = box
    nodes = min((most - 2) // NODE, MOST_NODES)
    few = min(FEW, nodes // 2)  # a region of twice as many values fits the list
    eps_word[0] = eps
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        if meta[at + 2] & LIST == 0:
            if meta[at] == meta[at + 1]:
                size = meta[at + 2] & SIZE
                if region_words(size, most) < few:
                    moved = move_values(meta, arena, at, size + 1, most)
                    status = DONE if moved else NEEDS_ARENA
                else:
                    chances[0] += np.uint64(FEW)
                    status = begin_list(meta, arena, at, most, nodes, eps, chances[0], path)
                if status != DONE:
                    report[0], report[1] = i, status
                    return
            if meta[at + 2] & LIST == 0:
                arena[meta[at]] = values[i]
                meta[at] += 1
                continue
        list = meta[at + 1] - most
        chances[0] += np.uint64(1)
        chance = mix(chances[0])
        if insert(arena, list, nodes, values[i], eps, chance, path) == FULL:
            room = box_start(data, ends, count, entries_bound(nodes))
            if room < 0 or ENTRY * nodes > len(made):
                report[0], report[1] = i, NEEDS_OUTBOX if room < 0 else NEEDS_WORK
                report[2] = entries_bound(nodes) if room < 0 else nodes
                return
            end = put_entries(data, room, floats, eps_bytes, made, read_list(arena, list, made))
            box_add(ends, owners, count, numbers[i], end)
            _clear_list(arena, list)
            insert(arena, list, nodes, values[i], eps, chance, path)
    report[0] = len(numbers)


@compiled_for(
    INTEGER, column(np.int64), MEMORY, WORK, OUTBOX, REAL, INTEGER, INTEGER, output(np.int64)
)
def pack_lists(
    begin: Any, numbers: Any, memory: Any, work: Any, box: Any, eps: Any, floats: Any, most: Any,
    report: Any,
) -> None:  # fmt: skip
    """Write states as entries, those of a few values as they are."""
    meta, _, arena = memory
    _, _, _, made, _, eps_word, eps_bytes = work
    data, ends, owners, count = box
    nodes = min((most - 2) // NODE, MOST_NODES)
    eps_word[0] = eps
    report[1] = DONE
    for i in range(begin, len(numbers)):
        at = numbers[i] * META
        is_list = meta[at + 2] & LIST != 0
        size = entries_bound(nodes) if is_list else buffer_bound(2 * FEW)
        room = box_start(data, ends, count, size)
        if room < 0 or (is_list and ENTRY * nodes > len(made)):
            report[0], report[1] = i, NEEDS_OUTBOX if room < 0 else NEEDS_WORK
            report[2] = size if room < 0 else nodes
            return
        found = read_list(arena, meta[at + 1] - most, made) if is_list else np.int64(0)
        if found:
            end = put_entries(data, room, floats, eps_bytes, made, found)
        elif is_list:
            end = put_buffer(data, room, floats, eps_bytes, made, 0, 0)
        else:
            _, start, _, _, pending = shape_of(meta, at, most)
            end = put_buffer(data, room, floats, eps_bytes, arena, start, pending)
        box_add(ends, owners, count, numbers[i], end)
    report[0] = len(numbers)


class SkipLists(LowColumn):
    """States that are skip lists, each compressed where a value enters and at a random place."""

    def __init__(self, eps: float, scratchpad: int = SCRATCHPAD) -> None:
        super().__init__(eps, scratchpad)
        self._chances = np.zeros(1, np.uint64)

    def _fill(self, begin: int, numbers: Numbers, keys: NDArray[np.int64]) -> None:
        fill_lists(
            begin, numbers, keys, self._memory, self._work, self._leaving.box, self._eps,
            int(bool(self._floats)), self._most, self._chances, self._report,
        )  # fmt: skip

    def _pack(self, begin: int, numbers: Numbers, states: PackedStates) -> None:
        pack_lists(
            begin, numbers, self._memory, self._work, states.box, self._eps,
            int(bool(self._floats)), self._most, self._report,
        )  # fmt: skip
