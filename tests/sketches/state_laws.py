"""Columns of states against plain Python: random groups, cut into parts that are packed apart and
merged in random trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.connectors.base import arrow_type
from terascope.kernels.columns.dictionary import Dictionary, dictionary_for
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_states,
)
from terascope.types import Type

Values = Sequence[Any]


def argument(type_: Type, values: Values, dictionary: Dictionary | None = None) -> Argument:
    """The values of an argument, as tables hand them to a column."""
    if type_ is Type.FLOAT:
        return np.array(values, np.float64)
    if type_ is Type.BOOL or type_.is_whole:
        return np.array(values, np.int64)
    known = dictionary or dictionary_for(type_)
    return CodedValues(known.encode(pa.array(values, arrow_type(type_))), known)


def part_states(
    kind: StateKind,
    types: Sequence[Type],
    numbers: Numbers,
    rows: Sequence[tuple[Any, ...]],
    batch: int,
) -> list[tuple[int, bytes]]:
    """The packed states of one part, which a low column takes in batches; what it flushes comes
    first.
    """
    low = kind.low()
    dictionaries = [
        None if t in (Type.FLOAT, Type.BOOL) or t.is_whole else dictionary_for(t) for t in types
    ]
    out: list[tuple[int, bytes]] = []
    for at in range(0, len(rows), batch):
        some = rows[at : at + batch]
        columns = [
            argument(type_, [row[k] for row in some], dictionaries[k])
            for k, type_ in enumerate(types)
        ]
        low.iterate(numbers[at : at + batch], columns)
        if (full := low.flushed()) is not None:
            out += zip(full[0].tolist(), full[1].to_pylist(), strict=True)
    present = np.unique(numbers)
    return out + list(zip(present.tolist(), low.pack(present).to_pylist(), strict=True))


def merged(kind: StateKind, states: Sequence[tuple[int, bytes]], groups: int) -> StateColumn:
    high = kind.high()
    high.merge(np.array([n for n, _ in states], np.int64), packed_states([s for _, s in states]))
    high.merge(np.arange(groups), high_empty(kind, groups))
    return high


def high_empty(kind: StateKind, groups: int) -> Packed:
    """Empty states: merging them changes nothing."""
    return kind.high().pack(np.arange(groups))


def states_of(
    kind: StateKind,
    types: Sequence[Type],
    numbers: NDArray[np.int64],
    rows: Sequence[tuple[Any, ...]],
    groups: int,
    rng: np.random.Generator,
    depth: int = 3,
) -> list[bytes]:
    """The state of each group, after the tuples were cut into parts and merged over `depth` levels
    in random order.
    """
    parts = 2 ** min(depth, 3)
    where = rng.integers(0, parts, len(rows))
    states = []
    for part in range(parts):
        chosen = np.flatnonzero(where == part)
        some = [rows[i] for i in chosen.tolist()]
        states.append(part_states(kind, types, numbers[chosen], some, int(rng.integers(1, 400))))
    while len(states) > 1:
        left, right = states.pop(), states.pop(int(rng.integers(0, len(states))))
        both = left + right
        order = rng.permutation(len(both))
        high = merged(kind, [both[i] for i in order.tolist()], groups)
        packed = high.pack(np.arange(groups)).to_pylist()
        states.append(list(enumerate(packed)))
    return [state for _, state in states[0]]


def folded(
    aggregate: Any,
    numbers: NDArray[np.int64],
    rows: Sequence[tuple[Any, ...]],
    groups: int,
    parameters: Sequence[Any] = (),
    key: Callable[[tuple[Any, ...]], Any] | None = None,
    arity: int = 1,
) -> list[Any]:
    """The states of the same groups by reduce(), in the order of `key`."""
    order = (
        range(len(rows)) if key is None else sorted(range(len(rows)), key=lambda i: key(rows[i]))
    )
    states = [aggregate.zero(*parameters) for _ in range(groups)]
    for i in order:
        states[numbers[i]] = aggregate.reduce(states[numbers[i]], *rows[i][:arity])
    return states
