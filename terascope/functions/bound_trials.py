"""Trials of declared error bounds: random groups, merged over random trees (paper 1, 4).

In: an approximate aggregate, the constants of a call, and a seed. Out: how many times the allowed
error its answer is. The seed gives the values of a group of up to 20,000 tuples, their order, and a
tree: the tuples are cut into parts, columns of the low level take the parts in batches, and the
packed states are merged over 1 to 4 levels, at each of them by a new column and as bytes.

Whatever is registered is tried: an aggregate says its bound and measures its errors by itself
(AggregateFunction.bound, .errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from terascope.functions.base import AggregateFunction, Value
from terascope.functions.bound_groups import Numbers, Random, TrialGroup, argument_types
from terascope.functions.bounds import ErrorBound
from terascope.functions.halves import finished, kind_of
from terascope.sketches.base import StateKind, packed_states

DEEPEST: Final = 4
MOST_CHILDREN: Final = 4


@dataclass(frozen=True)
class BoundedCall:
    """An aggregate with all constants of a call."""

    aggregate: AggregateFunction
    parameters: tuple[Value, ...]

    @property
    def state_parameters(self) -> tuple[Value, ...]:
        return self.parameters[: self.aggregate.state_parameters]

    @property
    def bound(self) -> ErrorBound:
        found = self.aggregate.bound(*self.state_parameters)
        assert found is not None
        return found

    @property
    def strategy(self) -> str:
        return str(self.state_parameters[-1]) if self.aggregate.strategies else ""

    def __str__(self) -> str:
        given = [str(each) for each in self.parameters if each not in ("", self.strategy)]
        constants = f"({', '.join(given)})" if given else ""
        return f"{self.aggregate.name}{constants} {self.strategy}".strip()


def calls_of(aggregates: Iterable[AggregateFunction]) -> list[BoundedCall]:
    """The calls of all aggregates with a declared bound, once for each strategy."""
    found = []
    for aggregate in sorted(set(aggregates), key=lambda one: one.name):
        if aggregate.bound(*aggregate.example_parameters[: aggregate.state_parameters]) is None:
            continue
        for given in (aggregate.example_parameters, *aggregate.further_parameters):
            cut = aggregate.state_parameters
            found += [
                BoundedCall(aggregate, (*given[: cut - 1], strategy, *given[cut:]))
                for strategy in strategies_of(aggregate, given[:cut])
            ] or [BoundedCall(aggregate, given)]
    return found


def strategies_of(aggregate: AggregateFunction, parameters: tuple[Value, ...]) -> list[str]:
    """The strategies of an aggregate, and '' if that stands for yet another one."""
    known = list(aggregate.strategies)
    if not known:
        return []
    usual = kind_of(aggregate, argument_types(aggregate)[0], (*parameters[:-1], ""))
    assert usual is not None
    return known if usual.strategy in ("", *known) else [*known, ""]


def excess(call: BoundedCall, seed: int) -> float:
    """How many times the allowed error an answer is; above 1 it breaks the bound."""
    random = np.random.default_rng(seed)
    group = TrialGroup.of(argument_types(call.aggregate), random)
    errors = call.aggregate.errors(group.columns, answer(call, group, random), *call.parameters)
    return call.bound.excess(errors, pc.count_distinct(group.columns[0]).as_py())


def allowed_failures(share: float, trials: int) -> int:
    """The most trials that may break a bound which holds in a share of cases: with more of them the
    bound is wrong, but for one time in a thousand.
    """
    if share >= 1:
        return 0
    chance, sum_, count = share**trials, 0.0, -1
    while sum_ < 0.999:
        sum_ += chance
        count += 1
        chance *= (trials - count) / (count + 1) * (1 - share) / share
    return count


# ---- states --------------------------------------------------------------------------------------


def answer(call: BoundedCall, group: TrialGroup, random: Random) -> Value:
    """The value of a group whose states were merged over a random tree."""
    kind = kind_of(call.aggregate, group.types, call.state_parameters)
    assert kind is not None, f"{call.aggregate.name} has no states"
    depth = int(random.integers(1, DEEPEST + 1))
    (state,) = merged_tree(kind, group, np.arange(len(group)), depth, random)
    return finished(call.aggregate, state, *call.parameters)


def merged_tree(
    kind: StateKind, group: TrialGroup, rows: Numbers, depth: int, random: Random
) -> list[bytes]:
    """The packed state of some tuples after a tree of merges; at depth 0 those that the low level
    sends.
    """
    if not depth:
        return low_states(kind, group, rows, random)
    states: list[bytes] = []
    for place, part in enumerate(parts_of(rows, random)):
        below = depth - 1 if not place else int(random.integers(0, depth))
        states += merged_tree(kind, group, part, below, random)
    high = kind.high()
    shuffled_states = [states[i] for i in random.permutation(len(states))]
    high.merge(np.zeros(len(states), np.int64), packed_states(shuffled_states))
    return packed_bytes(high.pack(np.zeros(1, np.int64)))


def parts_of(rows: Numbers, random: Random) -> Iterator[Numbers]:
    """The tuples cut into parts, some of them perhaps empty: runs, or tuples drawn by lot."""
    count = int(random.integers(1, MOST_CHILDREN + 1))
    if random.random() < 0.5:
        edges = np.sort(random.integers(0, len(rows) + 1, count - 1))
        yield from np.split(rows, edges)
    else:
        owner = random.integers(0, count, len(rows))
        yield from (rows[owner == part] for part in range(count))


def low_states(kind: StateKind, group: TrialGroup, rows: Numbers, random: Random) -> list[bytes]:
    """The packed states of some tuples next to the source; those that were full come first."""
    low, states = kind.low(), list[bytes]()
    batch = int(random.integers(1 if len(rows) < 200 else 50, 5000))
    for at in range(0, len(rows), batch):
        some = rows[at : at + batch]
        low.iterate(np.zeros(len(some), np.int64), group.arguments(some))
        full = low.flushed()
        states += [] if full is None else packed_bytes(full[1])
    return [*states, *packed_bytes(low.pack(np.zeros(1, np.int64)))]


def packed_bytes(packed: Any) -> list[bytes]:
    return [bytes(state) for state in packed.to_pylist()]
