"""Random groups for trials of error bounds: values of many distributions, in many orders.

In: a generator of random numbers. Out: `TrialGroup`, the arguments of up to 20,000 tuples as Arrow
columns. Some orders are hard for the summaries of Greenwald and Khanna.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.functions.base import AggregateFunction, TypeMistake
from terascope.functions.vector_dictionary import coded
from terascope.sketches.base import Argument
from terascope.types import Type

Numbers: TypeAlias = NDArray[np.int64]
Random: TypeAlias = np.random.Generator

MOST_TUPLES: Final = 20_000
TRIED_TYPES: Final = (Type.INT, Type.FLOAT, Type.STRING, Type.IP, Type.BOOL)
WEIGHTS: Final = 1500
"""The largest value of a second argument, such as a packet's length."""


def uniform(count: int, random: Random) -> Numbers:
    return random.integers(0, max(1, int(random.choice([50, count, 10 * count, 1 << 40]))), count)


def zipf(count: int, random: Random) -> Numbers:
    return np.minimum(random.zipf(random.uniform(1.05, 2.5), count), 1 << 40)


def constant(count: int, random: Random) -> Numbers:
    return np.full(count, random.integers(0, 1000))


def all_different(count: int, random: Random) -> Numbers:
    return random.permutation(count)


def few(count: int, random: Random) -> Numbers:
    return random.integers(0, random.integers(2, 10), count) * 1000


DISTRIBUTIONS: Final[tuple[Callable[[int, Random], Numbers], ...]] = (
    uniform,
    zipf,
    constant,
    all_different,
    few,
)


# ---- orders --------------------------------------------------------------------------------------
# Each takes values in ascending order.


def shuffled(values: Numbers, random: Random) -> Numbers:
    return random.permutation(values)


def ascending(values: Numbers, random: Random) -> Numbers:
    return values


def descending(values: Numbers, random: Random) -> Numbers:
    return values[::-1]


def outside_in(values: Numbers, random: Random) -> Numbers:
    """The smallest, the largest, the next smallest: every value falls into the same gap."""
    made = np.empty_like(values)
    half = (len(values) + 1) // 2
    made[::2], made[1::2] = values[:half], values[half:][::-1]
    return made


def inside_out(values: Numbers, random: Random) -> Numbers:
    """Every value is a new minimum or a new maximum."""
    return outside_in(values, random)[::-1]


def halving(values: Numbers, random: Random) -> Numbers:
    """The middle first, then the middles of both halves: every gap is split again and again."""
    bits = max(1, int(len(values) - 1).bit_length())
    places = np.arange(1 << bits)
    turned = np.zeros_like(places)
    for bit in range(bits):
        turned |= (places >> bit & 1) << (bits - 1 - bit)
    return values[turned[turned < len(values)]]


def sawtooth(values: Numbers, random: Random) -> Numbers:
    """Ascending again and again, each time a little further."""
    return np.concatenate([values[k::7] for k in range(7)])


ORDERS: Final[tuple[Callable[[Numbers, Random], Numbers], ...]] = (
    shuffled,
    ascending,
    descending,
    outside_in,
    inside_out,
    halving,
    sawtooth,
)


# ---- groups --------------------------------------------------------------------------------------


def argument_types(aggregate: AggregateFunction) -> list[tuple[Type, ...]]:
    """The types that an aggregate takes: any for its first argument, numbers for the others."""
    found = []
    for first in TRIED_TYPES:
        types = (first, *[Type.INT] * (aggregate.arity - 1))
        try:
            aggregate.type_rule(types)
        except TypeMistake:
            continue
        found.append(types)
    return found


@dataclass(frozen=True)
class TrialGroup:
    """The arguments of all tuples of a group, as Arrow columns."""

    types: tuple[Type, ...]
    columns: tuple[pa.Array, ...]

    @staticmethod
    def of(types: Sequence[tuple[Type, ...]], random: Random) -> TrialGroup:
        """A random group. Every second one is so large that few states are exact."""
        chosen = types[int(random.integers(len(types)))]
        least = MOST_TUPLES / 10 if random.random() < 0.5 else 1
        count = int(math.exp(random.uniform(math.log(least), math.log(MOST_TUPLES + 1))))
        distribution = DISTRIBUTIONS[int(random.integers(len(DISTRIBUTIONS)))]
        order = ORDERS[int(random.integers(len(ORDERS)))]
        values = order(np.sort(distribution(count, random)), random)
        most = int(random.choice([1, WEIGHTS]))
        others = [pa.array(random.integers(1, most + 1, count)) for _ in chosen[1:]]
        return TrialGroup(chosen, (column_of(values, chosen[0], random), *others))

    def __len__(self) -> int:
        return len(self.columns[0])

    def arguments(self, rows: Numbers) -> list[Argument]:
        """The values of some tuples, as an engine hands them to a column of states."""
        pairs = zip(self.types, self.columns, strict=True)
        return [argument_of(column.take(pa.array(rows)), type) for type, column in pairs]


def column_of(values: Numbers, type: Type, random: Random) -> pa.Array:
    """Numbers as values of a type, different ones for different numbers, but for BOOL. Integers are
    below 2^53: KLL sketches keep FLOATs.
    """
    stride, start = int(random.choice([1, 1, 256, 4097])), int(random.integers(-1000, 1 << 20))
    if type is Type.BOOL:
        return pa.array(values % 2 == 1)
    if type is Type.STRING:
        return pc.binary_join_element_wise("host", pa.array(values).cast(pa.string()), ".")
    if type is Type.IP:
        head, size = (b"\x04", 4) if random.random() < 0.7 else (b"\x06", 16)
        numbers = ((values * stride + start) % (1 << 32)).tolist()
        return pa.array([head + n.to_bytes(size, "big") for n in numbers], pa.binary())
    if type is Type.FLOAT:
        return pa.array((values + start) / 4.0)
    return pa.array(values * stride + start)


def argument_of(column: pa.Array, type: Type) -> Argument:
    if pa.types.is_floating(column.type):
        return np.asarray(column)
    if type.is_whole or type is Type.BOOL:
        return np.asarray(column.cast(pa.int64()))
    return coded(column)
