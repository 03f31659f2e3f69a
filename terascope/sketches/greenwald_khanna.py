"""The quantile summaries of Greenwald and Khanna, and the strategies to keep them (paper 1, 4.1).

In: an eps and the name of a strategy. Out: the `StateKind` of the column for the low level and the
one that merges. With every strategy an answer is wrong by at most floor(eps n) ranks of n, after
any tree of merges (terascope.sketches.quantile_entries has the proof), but for `kll`, where that
holds for 99 answers in 100.

- `gk_lite`: the low level only collects values, and hands them on when the scratchpad is full. The
  cheapest low level; best where it shares a core with nobody, or groups are short.
- `gk_heavy`: the low level keeps a compressed summary. It hands on least; best on skewed traffic
  with values that repeat, such as packet lengths.
- `gk_medium`: the low level keeps a skip list, compressed a little with every value. The work per
  tuple is steady, and the largest.
- `kll`: the low level collects values, and the high level has sketches of DataSketches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.sketches.base import StateColumn, StateKind, Traffic, packed_states
from terascope.sketches.kll import KllSketches, quantiles_of
from terascope.sketches.quantile_bytes import WIDEST
from terascope.sketches.quantile_columns import SCRATCHPAD, Summaries, ValueBuffers, keys_of
from terascope.sketches.quantile_skip_lists import SkipLists

Maker = Callable[..., StateColumn]

STRATEGIES: Final[Mapping[str, tuple[Maker, Maker]]] = {
    "gk_lite": (ValueBuffers, Summaries),
    "gk_heavy": (Summaries, Summaries),
    "gk_medium": (SkipLists, Summaries),
    "kll": (ValueBuffers, KllSketches),
}
"""The columns of the low level, which take an eps and a scratchpad, and those that merge."""
SHORT_GROUP: Final = 16
"""Groups of fewer tuples on average hold nothing that a summary could compress."""


def quantile_kind(eps: float, strategy: str = "", scratchpad: int = SCRATCHPAD) -> StateKind:
    """The columns of a strategy; without one it is chosen by the traffic. A scratchpad too small
    for any state is a ValueError.
    """
    low, high = STRATEGIES[strategy or "gk_heavy"]
    family = "kll" if strategy == "kll" else "gk"
    return StateKind(
        f"quantile({eps!r}) {family}",
        partial(low, eps, scratchpad),
        partial(high, eps),
        strategy=strategy or "gk_heavy",
        why="the query says so" if strategy else "",
        choose=None if strategy else partial(chosen_quantile, eps, scratchpad),
    )


def chosen_quantile(eps: float, scratchpad: int, traffic: Traffic) -> StateKind:
    """The strategy that suits some traffic."""
    per_group = traffic.per_group
    short = per_group < SHORT_GROUP and traffic.exponent < 1.0
    kind = quantile_kind(eps, "gk_lite" if short else "gk_heavy", scratchpad)
    what = "too few to compress" if short else "summaries hand on less than values"
    return replace(kind, why=f"{per_group:,.0f} tuples a group: {what}")


def merging_kind(eps: float) -> StateKind:
    """The kind that merges packed states of any strategy, which are only known at run time."""
    high = partial(KllSketches, eps, None)
    return StateKind(f"quantile({eps!r})", high, high).merging


def exact_state(values: Sequence[int | float] | NDArray[Any], eps: float) -> bytes:
    """A packed state of these values, of which there is one, without any loss."""
    floats = isinstance(values[0], float)
    keys, _ = keys_of(np.array(values, np.float64 if floats else np.int64))
    head = struct.pack("<2sBBd", b"TQ", 1, WIDEST | floats, eps)
    return head + np.sort(keys).astype("<i8").tobytes()


def merged_state(states: Sequence[bytes], eps: float) -> bytes:
    """One packed state of all values of several; ValueError when one of them is none. If it is
    exact it does not depend on their order.
    """
    column = merging_kind(eps).high()
    column.merge(np.zeros(len(states), np.int64), packed_states(states))
    state = bytes(column.pack(np.zeros(1, np.int64))[0].as_py())
    held = quantiles_of(state)
    if held.error or not held.count:
        return state
    return exact_state(np.repeat(held.values, held.upto - held.below), eps)
