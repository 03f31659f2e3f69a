"""A growing sequence that is never changed in place, for states that must keep their values.

In: items, one at a time or sequences to join. Out: `Runs`, a tuple of tuples that get shorter from
left to right. Adding joins the last runs while the one before is not longer, so n items cost
O(n log n) in all and a state handed out earlier stays what it was. The order of items is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Any, Final, TypeAlias

Runs: TypeAlias = tuple[tuple[Any, ...], ...]
Sets: TypeAlias = tuple[frozenset[Any], ...]

EMPTY: Final[Runs] = ()


def add(runs: Runs, item: object) -> Runs:
    return _push(runs, (item,))


def join(left: Runs, right: Runs) -> Runs:
    for run in right:
        left = _push(left, run)
    return left


def items(runs: Runs) -> Iterator[Any]:
    return chain.from_iterable(runs)


def include(sets: Sets, item: Hashable) -> Sets:
    """The same for sets: an item that is there already changes nothing."""
    if any(item in run for run in sets):
        return sets
    return _push_set(sets, frozenset((item,)))


def unite(left: Sets, right: Sets) -> Sets:
    for run in right:
        left = _push_set(left, run)
    return left


def members(sets: Sets) -> frozenset[Any]:
    return frozenset().union(*sets)


def _push(runs: Runs, run: tuple[Any, ...]) -> Runs:
    while runs and len(runs[-1]) <= len(run):
        run = runs[-1] + run
        runs = runs[:-1]
    return (*runs, run)


def _push_set(sets: Sets, run: frozenset[Any]) -> Sets:
    while sets and len(sets[-1]) <= len(run):
        run = sets[-1] | run
        sets = sets[:-1]
    return (*sets, run)
