"""The quantile summaries of Greenwald and Khanna, and the strategies to keep them (paper 1, 4.1).

In: an eps and the name of a strategy. Out: the `StateKind` of the column for the low level and the
one that merges. With every strategy an answer is wrong by at most floor(eps n) ranks of n, after
any tree of merges (terascope.sketches.quantile_entries has the proof), but for `kll`, where that
holds for 99 answers in 100.

The choice. Of the two levels together `gk_lite` takes the least time: a value is written to a
buffer, and a full buffer is sorted and merged at once. `gk_heavy` does the same work in the low
level and sends next to nothing: large groups of few different values stay there. It pays when the
high level runs on cores of its own, each of which merges what five cores or more of the low level
send, and groups are much larger than a buffer. `gk_medium` spends the most time, and `kll` has
another kind of state, so these two are only used where a query asks for them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.sketches.base import FORCED, StateColumn, StateKind, Traffic, packed_states
from terascope.sketches.kll import KllSketches, quantiles_of
from terascope.sketches.quantile_bytes import WIDEST
from terascope.sketches.quantile_columns import SCRATCHPAD, Summaries, ValueBuffers, keys_of
from terascope.sketches.quantile_skip_lists import SkipLists

Maker = Callable[..., StateColumn]

STRATEGIES: Final[Mapping[str, str]] = {
    "gk_lite": "the low level collects values, the high level summarises them",
    "gk_heavy": "the low level keeps compressed summaries, and sends least",
    "gk_medium": "the low level keeps skip lists, which are compressed a little with every value",
    "kll": "the low level collects values, the high level has KLL sketches of DataSketches",
}
_COLUMNS: Final[Mapping[str, tuple[Maker, Maker]]] = {
    "gk_lite": (ValueBuffers, Summaries),
    "gk_heavy": (Summaries, Summaries),
    "gk_medium": (SkipLists, Summaries),
    "kll": (ValueBuffers, KllSketches),
}
"""The columns of the low level, which take an eps and a scratchpad, and those that merge."""
DEFAULT_STRATEGY: Final = "gk_lite"
LARGE: Final = 4
"""Groups that fill so many scratchpads are large: only then heavy summaries send less."""
COSTS: Final[Mapping[str, tuple[float, float]]] = {
    "gk_lite": (42.2, 20.8),
    "gk_heavy": (96.1, 3.1),
}
"""The nanoseconds a tuple of large groups in the low and the high level, without those of a plain
sum: `terascope bench table3-quantiles`, real packets."""


def quantile_kind(
    eps: float, strategy: str = "", scratchpad: int = SCRATCHPAD, why: str = FORCED
) -> StateKind:
    """The columns of a strategy; without one it is chosen by the traffic."""
    name = strategy or DEFAULT_STRATEGY
    low, high = _COLUMNS[name]
    return StateKind(
        f"quantile({eps!r}) kll" if high is KllSketches else f"quantile({eps!r})",
        partial(low, eps, scratchpad),
        partial(high, eps),
        strategy=name if scratchpad == SCRATCHPAD else f"{name}({scratchpad})",
        why=why if strategy else "nothing is known of the traffic",
        choose=None if strategy else partial(best_kind, eps, scratchpad),
    )


def best_kind(eps: float, scratchpad: int, traffic: Traffic) -> StateKind:
    """The kind of the strategy that suits some traffic."""
    size = f"{traffic.per_group:,.0f} tuples a group"
    if traffic.per_group < LARGE * (scratchpad // 8):
        why = f"{size} make few full buffers, so that no summary would send less"
        return quantile_kind(eps, "gk_lite", scratchpad, why)
    times = {name: traffic.levels.cost(*costs) for name, costs in COSTS.items()}
    best, other = sorted(times, key=lambda name: times[name])
    why = f"{size}; {traffic.levels.why}: {times[best]:.0f} ns a tuple, {other} {times[other]:.0f}"
    return quantile_kind(eps, best, scratchpad, why)


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
