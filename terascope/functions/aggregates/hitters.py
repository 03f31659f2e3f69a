"""Heavy hitters: the identifiers with the largest sums of weights (paper 1, 4.2).

`hitters(id, weight)` is the state itself, a value that queries chain, join and compare with the
functions of terascope.functions.scalars.hitters. `heavy_hitters(id, weight, k)` and `top_k(id,
weight, k)` are lists in JSON. A weight that is left out is 1; tuples whose weight is not positive
are passed over. An argument of type BINARY is a state, and states are merged; their weight does not
matter.

The reference keeps all pairs, and its answer is exact. Engines keep the states of the strategy
that a query names, or the optimiser chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from terascope.functions.aggregates.folding import Collecting, Runs, items
from terascope.functions.base import Value, ValueMistake
from terascope.functions.bounds import ErrorBound, Errors
from terascope.functions.hitter_columns import listed_column
from terascope.functions.hitter_errors import list_errors, state_errors
from terascope.functions.hitter_lists import as_json, count_of, listed, read_state
from terascope.functions.signatures import ANYTHING, INTEGER
from terascope.functions.values import distinct_key
from terascope.sketches.base import FORCED, StateColumn, StateKind, Traffic, packed_states
from terascope.sketches.count_min import SketchSize
from terascope.sketches.frequent_items import CAPACITY
from terascope.sketches.hitter_answers import exact_state
from terascope.sketches.hitter_high import EXACT, MOST_EXACT, HitterStates
from terascope.sketches.hitter_ids import IdKind, kind_of
from terascope.sketches.hitter_low import PAIRS, BufferedPairs, HashedPairs
from terascope.types import Type

STRATEGIES: Final[Mapping[str, str]] = {
    "buffer+direct": "low: pairs as they arrive; high: a sketch for every group",
    "buffer+adaptive": "low: pairs as they arrive; high: exact up to 64 identifiers, or"
    " as buffer+adaptive(n) says, then a sketch",
    "hash+direct": "low: a hash table; high: a sketch for every group",
    "hash+adaptive": "low: a hash table; high: exact up to 64 identifiers, or as hash+adaptive(n)"
    " says, then a sketch",
    "compress+direct": "low: a hash table that leaves without gaps; high: a sketch for every group",
    "compress+adaptive": "low: a hash table that leaves without gaps; high: exact up to 64"
    " identifiers, or as compress+adaptive(n) says, then a sketch",
    "low_sketch": "low: a sketch for every group; high: sketches are added",
    "frequent_items": "low: a hash table that leaves without gaps; high: the 384 heaviest, purged",
    "high_only": "low: each tuple is forwarded; high: exact up to 64 identifiers, then a sketch",
}
"""Each pair of a low-level and a high-level column."""


SMALL: Final = 64
"""The bytes of a state that may be empty."""
CHOSEN: Final = 2048
"""Identifiers that a state counts exactly where the query names no strategy. A pair costs one probe
and 8 bytes when packed, a sketch seven counters and 8 KB: an exact table is faster than a sketch
and takes up to twice its room."""
CHOSEN_FEWER: Final = 512
"""The same where exact tables would take much memory: as much as a sketch takes."""
MUCH_MEMORY: Final = 256 << 20
PAIR_BYTES: Final = 16
USUAL: Final = f"compress+adaptive({CHOSEN})"


def exact_of(strategy: str) -> tuple[str, int] | None:
    """The strategy without the number of identifiers that are counted exactly, and that number;
    None: there is no such strategy.
    """
    if strategy in STRATEGIES:
        return strategy, EXACT
    found = re.fullmatch(r"(.+\+adaptive)\(([0-9]{1,6})\)", strategy)
    if found is None or found[1] not in STRATEGIES or not 1 <= int(found[2]) <= MOST_EXACT:
        return None
    return found[1], int(found[2])


def state_kind(
    kind: IdKind, strategy: str, is_open: bool = False, is_chosen: bool = False
) -> StateKind:
    """The columns of a strategy for identifiers of a kind. `is_open`: the traffic may change it.
    `is_chosen`: nobody asked for the paper's table of 128 pairs. A table next to the source is then
    as large as one of the high level, and its groups need no work there.
    """
    known = exact_of(strategy)
    assert known is not None
    low, _, high = known[0].partition("+")
    exact = known[1]
    pairs, slots = (exact, 2 * exact) if is_chosen else (PAIRS, PAIRS)
    finished = exact if high == "adaptive" else 0
    lows: dict[str, Callable[[], StateColumn]] = {
        "buffer": partial(BufferedPairs, kind),
        "hash": partial(HashedPairs, kind, whole_tables=True),
        "compress": partial(HashedPairs, kind, pairs, exact=finished, slots=slots),
        "low_sketch": partial(HitterStates, kind, 0),
        "frequent_items": partial(HashedPairs, kind),
        "high_only": partial(BufferedPairs, kind, 1),
    }
    highs: dict[str, Callable[[], StateColumn]] = {
        "direct": partial(HitterStates, kind, 0),
        "adaptive": partial(HitterStates, kind, exact),
        "low_sketch": partial(HitterStates, kind, 0),
        "frequent_items": partial(HitterStates, kind, CAPACITY, purged=True),
        "high_only": partial(HitterStates, kind),
    }
    family = "frequent_items" if strategy == "frequent_items" else "sketch"
    return StateKind(
        f"hitters({kind.name.lower()}) {family}",
        lows[low],
        highs[high or low],
        strategy=strategy,
        why="" if is_open else FORCED,
        choose=partial(chosen_kind, kind) if is_open and family == "sketch" else None,
    )


def chosen_kind(kind: IdKind, traffic: Traffic) -> StateKind:
    """The strategy that suits some traffic: how many identifiers of a group are counted exactly.
    The number never depends on the tuples that a single task sees, so that a group has a sketch if
    and only if it has more identifiers, however its tuples are split.
    """
    largest = PAIR_BYTES * traffic.groups * min(traffic.per_group, CHOSEN)
    exact = CHOSEN if largest <= MUCH_MEMORY else CHOSEN_FEWER
    made = state_kind(kind, f"compress+adaptive({exact})", is_chosen=True)
    why = f"up to {largest / (1 << 20):,.0f} MB of exact tables in an epoch"
    return replace(made, why=f"{traffic.per_group:,.0f} tuples a group, {why}")


class HittersState(Collecting):
    """The state; the base of the aggregates that list what it names."""

    name = "hitters"
    arity = 2
    state_parameters = 1
    takes = (ANYTHING, INTEGER)
    returns = Type.BINARY
    sampling = "none"
    example_parameters: ClassVar[tuple[Value, ...]] = ("",)
    default_parameters: ClassVar[tuple[Value, ...]] = ("",)
    """The strategy; '' leaves it to the optimiser."""
    optional_arguments: ClassVar[tuple[Value, ...]] = (1,)
    """The weight of a call that names none."""
    takes_states: ClassVar[bool] = True
    """An argument of type BINARY is a packed state of `hitters`, not any bytes."""
    strategies: ClassVar[Mapping[str, str]] = STRATEGIES
    usual_strategy: ClassVar[str] = USUAL
    """The strategy where nothing is known of the traffic."""
    doc = "hitters(id [, weight]): a state from which hitters_of lists the heaviest identifiers"

    def zero(self, *parameters: Value) -> Runs:
        strategy = parameters[0] if parameters else ""
        if strategy and not self.has_strategy(strategy):
            known = ", ".join(self.strategies)
            raise ValueMistake(f"{self.name} has no strategy '{strategy}'; there are {known}")
        return ()

    def has_strategy(self, strategy: str) -> bool:
        return exact_of(strategy) is not None

    def reduce(self, state: Runs, *args: Value) -> Runs:
        return super().reduce(state, *args) if args[1] > 0 else state

    def finish(self, state: Runs, *parameters: Value) -> Value:
        return self.finish_state(exact(self.name, state) if state else None, *parameters)

    def state(self, args: tuple[Type, ...], parameters: tuple[Value, ...]) -> StateKind | None:
        """The columns of states. An argument of type BINARY is a state."""
        given = parameters[0] if parameters else ""
        strategy = given or self.usual_strategy
        if args[0] is Type.BINARY:
            return state_kind(IdKind.NOTHING, strategy).merging
        is_chosen = not given and strategy == USUAL
        return state_kind(kind_of(args[0]), strategy, is_open=not given, is_chosen=is_chosen)

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        """The value of a call, from the packed state; None over no tuples with a weight."""
        if packed is None or (len(packed) < SMALL and not read_state(self.name, packed).total):
            return None
        return packed

    def bound(self, *parameters: Value) -> ErrorBound:
        given = parameters[0] if parameters else ""
        found = bound_of(given or self.usual_strategy)
        # Where nobody names a strategy, the memory decides how many identifiers are exact.
        return found if given else replace(found, exact_to=min(found.exact_to, CHOSEN_FEWER))

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        return state_errors(columns, found)


def bound_of(strategy: str) -> ErrorBound:
    """The bound on the estimates of a strategy."""
    whole = "the weight of the group"
    if strategy == "frequent_items":
        return ErrorBound(2 / CAPACITY, whole, exact_to=CAPACITY, never_below=True)
    size, known = SketchSize(), exact_of(strategy)
    assert known is not None
    return ErrorBound(
        math.e / size.width,
        whole,
        cases=0.99,
        values=1 - math.exp(-size.depth),
        exact_to=known[1] if known[0].endswith(("adaptive", "high_only")) else 0,
        never_below=True,
    )


def exact(name: str, state: Runs) -> bytes:
    """The packed state of all pairs, or that of all states."""
    first, _ = next(items(state))
    if isinstance(first, bytes) and (first[:1], len(first)) not in ((b"\4", 5), (b"\6", 17)):
        return merged(name, [held for held, _ in items(state)])
    sums: dict[Value, int] = {}
    values: dict[Value, Value] = {}
    for value, weight in items(state):
        key = distinct_key(value)
        values.setdefault(key, value)
        sums[key] = sums.get(key, 0) + weight
    return exact_state((values[key], weight) for key, weight in sums.items())


def merged(name: str, states: list[bytes]) -> bytes:
    """The state of several states."""
    column = HitterStates(exact=CHOSEN)
    try:
        column.merge(np.zeros(len(states), np.int64), packed_states(states))
    except ValueError as problem:
        raise ValueMistake(f"{name}: {problem}") from problem
    (packed,) = column.pack(np.zeros(1, np.int64))
    state: bytes = packed.as_py()
    return state


class HeavyHitters(HittersState):
    name = "heavy_hitters"
    returns = Type.STRING
    finish_parameters = 1
    example_parameters = ("", 5)
    with_other: ClassVar[bool] = False
    """The last entry is the weight of all others."""
    doc = (
        "heavy_hitters(id [, weight], k): the k identifiers with the largest sums of weights, as a"
        " JSON list of id, estimate and error"
    )

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        k = count_of(self.name, parameters[-1])
        held = None if packed is None else read_state(self.name, packed)
        return as_json(listed(held.hits()[:k])) if held is not None and held.total else None

    def finish_states(self, packed: pa.Array, *parameters: Value) -> pa.Array | None:
        k = count_of(self.name, parameters[-1])
        return listed_column(
            packed, k, self.with_other, lambda one: self.finish_state(one, *parameters)
        )

    def errors(self, columns: Sequence[pa.Array], found: Value, *parameters: Value) -> Errors:
        return list_errors(columns, found, parameters[-1])


class TopK(HeavyHitters):
    name = "top_k"
    usual_strategy = "frequent_items"
    with_other = True
    doc = (
        "top_k(id [, weight], k): as heavy_hitters, exact for groups of up to 384 identifiers, and"
        " with the weight of all others as the last entry"
    )

    def finish_state(self, packed: bytes | None, *parameters: Value) -> Value:
        k = count_of(self.name, parameters[-1])
        state = None if packed is None else read_state(self.name, packed)
        if state is None or not state.total:
            return None
        hits = state.hits()[:k]
        other = max(0, state.total - sum(hit.estimate - hit.error for hit in hits))
        return as_json([*listed(hits), {"id": None, "other": other}])
