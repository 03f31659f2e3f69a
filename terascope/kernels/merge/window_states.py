"""The states of windows, from the states of their slices.

In: the slices of groups, those of a group beside each other and in order of time, and for each
window the run of slices it has. Out: a state for each window. A window of a few slices merges them.
Where windows have many, runs of 2, 4, 8, ... slices are merged once for all windows, and each
window then merges the few runs it is made of: a window of n slices costs 2 log n merges, and each
slice one more.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.kernels.columns.arrays import Flags, Ints, Rows
from terascope.kernels.merge.states import StateStore, StoredStates, merge_members, seen_rows

FEW_SLICES: Final = 8
"""Windows of no more slices merge them one by one."""
NOTHING: Final = -1
"""The number of a run of slices without any state."""


def window_states(out: Rows, rows: Rows, states: StoredStates, to: StoredStates) -> None:
    """Put the states of windows together. Each row of `out` is a window whose word of a state says
    which rows of slices it has: the first in the upper half, the end in the lower.
    """
    for (j, word, store), target in zip(states.places, to.stores, strict=True):
        windows = seen_rows(out, j)
        firsts, ends = out[windows, word] >> 32, out[windows, word] & 0xFFFFFFFF
        numbers = np.where(rows[:, 0] >> np.int64(j + 1) & 1, rows[:, word], NOTHING)
        members, groups, made = runs_of_windows(numbers, firsts, ends, store)
        out[windows, word] = merge_members(store, target, members, groups)
        store.drop(made)


def runs_of_windows(
    numbers: Ints, firsts: Ints, ends: Ints, store: StateStore
) -> tuple[Ints, Ints, Ints]:
    """The states that each window is made of, and the window of each; and those that were made for
    it: of runs of slices.
    """
    longest = int((ends - firsts).max(initial=0))
    many = longest > FEW_SLICES
    windows = np.arange(len(firsts))
    first, end = firsts.copy(), ends.copy()
    members: list[Ints] = []
    owners: list[Ints] = []
    made: list[Ints] = []

    def take(some: Ints, places: Ints) -> None:
        found = numbers[places]
        members.append(found[found != NOTHING])
        owners.append(windows[some][found != NOTHING])

    while many and longest > 1:
        left = np.flatnonzero((first < end) & (first & 1 == 1))
        take(left, first[left])
        first[left] += 1
        right = np.flatnonzero((first < end) & (end & 1 == 1))
        end[right] -= 1
        take(right, end[right])
        wanted = np.zeros(len(numbers) // 2, np.bool_)
        rest = np.flatnonzero(first < end)
        first, end = first >> 1, end >> 1
        mark_runs(first[rest], end[rest], wanted)
        numbers, fresh = pairs_merged(numbers, wanted, store)
        made.append(fresh)
        longest >>= 1
    counts = np.maximum(end - first, 0)
    each = np.repeat(windows, counts)
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    take(each, first[each] + place)
    groups = np.concatenate(owners)
    order = np.argsort(groups, kind="stable")
    empty = np.empty(0, np.int64)
    return np.concatenate(members)[order], groups[order], np.concatenate([empty, *made])


def mark_runs(firsts: Ints, ends: Ints, wanted: Flags) -> None:
    """Mark all places that lie in one of some runs."""
    edges = np.zeros(len(wanted) + 1, np.int64)
    np.add.at(edges, firsts, 1)
    np.add.at(edges, ends, -1)
    wanted[:] = np.cumsum(edges)[:-1] > 0


def pairs_merged(numbers: Ints, wanted: Flags, store: StateStore) -> tuple[Ints, Ints]:
    """The states of pairs of runs, and those of them that are new. Only wanted ones are made."""
    count = len(wanted)
    left, right = numbers[0 : 2 * count : 2], numbers[1 : 2 * count : 2]
    made = np.where(wanted, np.maximum(left, right), NOTHING)
    both = np.flatnonzero(wanted & (left != NOTHING) & (right != NOTHING))
    pairs = np.column_stack([left[both], right[both]]).reshape(-1)
    fresh = merge_members(store, store, pairs, np.repeat(np.arange(len(both)), 2))
    made[both] = fresh
    return made, fresh
