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
from terascope.functions.base import ValueMistake
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


# ---- values of whole columns ---------------------------------------------------------------------


def same_column(
    states: Sequence[bytes],
    one: Callable[[bytes | None], Any],
    whole: Callable[[pa.Array], pa.Array | None],
) -> None:
    """The values of a column of states are those of the states one by one: with NULLs, without, of
    a slice, and of no states.
    """
    held = [part for state in states for part in (state, None)]
    large, small = pa.array(held, pa.large_binary()), pa.array(states, pa.binary())
    columns = (large, small, large[3:], large[2:2], pa.array([None], pa.binary()), small[:0])
    for packed in columns:
        found = whole(packed)
        assert found is not None
        wanted = [one(state) for state in packed.to_pylist()]
        assert len(found) == len(wanted)
        for left, right in zip(found.to_pylist(), wanted, strict=True):
            assert repr(left) == repr(right)  # tells -0.0 from 0.0, and NaN equals NaN


def damaged(state: bytes, rng: np.random.Generator, count: int) -> list[bytes]:
    """The state cut short, with more bytes, and with some other byte in the first ones."""
    made = [state[:cut] for cut in range(0, len(state), max(1, len(state) // 12))]
    made += [state + b"\0", state + b"\1" * 8]
    for _ in range(count):
        place = int(rng.integers(0, min(len(state), 40)))
        made.append(state[:place] + rng.bytes(1) + state[place + 1 :])
    return made


def outcome(compute: Callable[[], Any]) -> str:
    """The value of a call, or the error that it raises, as text."""
    try:
        return repr(compute())
    except (ValueError, ValueMistake) as mistake:
        return f"{type(mistake).__name__}: {mistake}"


def same_outcome(
    state: bytes,
    wrong: bytes,
    one: Callable[[bytes | None], Any],
    whole: Callable[[pa.Array], pa.Array | None],
) -> None:
    """A damaged state behind another has the value, or raises the error, that it does alone. Where
    there is no column, engines read states one by one.
    """

    def last() -> Any:
        found = whole(pa.array([state, wrong], pa.binary()))
        return one(wrong) if found is None else found[1].as_py()

    assert outcome(last) == outcome(lambda: one(wrong))
