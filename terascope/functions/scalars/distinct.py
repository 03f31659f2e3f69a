"""Scalars of distinct states: counts, set operations, similarity (terascope.sketches.distinct)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa

from terascope.functions.base import ValueMistake
from terascope.functions.signatures import Want, builtin
from terascope.sketches.distinct import (
    distinct_estimate,
    intersected,
    jaccard,
    sketch_bytes,
    state_of_sketch,
    subtracted,
    united,
)
from terascope.sketches.distinct_answers import distinct_columns
from terascope.types import Type

STATE: Final = Want("a state of distinct_state", lambda t: t is Type.BINARY)

SKETCH: Final = Want("a sketch as BINARY", lambda t: t is Type.BINARY)

Answer = TypeVar("Answer")


def _read(name: str, read: Callable[..., Answer], *states: bytes) -> Answer:
    try:
        return read(*states)
    except ValueError as mistake:
        raise ValueMistake(f"{name}: {mistake}") from mistake


def _distinct_column(states: pa.Array) -> pa.Array | None:
    sizes = _read("distinct_of", distinct_columns, states)
    absent = states.is_null().to_numpy(zero_copy_only=False)
    return None if sizes is None else pa.array(sizes[1], mask=absent)


@builtin(STATE, returns=Type.ULLONG, of_states=True, cost_ns=5_000, columns=_distinct_column)
def distinct_of(state: bytes) -> int:
    """distinct_of(state): about how many different values a state has seen."""
    return round(_read("distinct_of", distinct_estimate, state))


@builtin(STATE, returns=Type.BINARY, of_states=True, cost_ns=5_000)
def distinct_bytes(state: bytes) -> bytes:
    """distinct_bytes(state): a Theta sketch that Spark's theta functions and DataSketches read."""
    return _read("distinct_bytes", sketch_bytes, state)


@builtin(SKETCH, returns=Type.BINARY, of_states=True, cost_ns=50_000)
def distinct_from_bytes(sketch: bytes) -> bytes:
    """distinct_from_bytes(sketch): the state of a Theta sketch that others have made."""
    return _read("distinct_from_bytes", state_of_sketch, sketch)


@builtin(STATE, STATE, returns=Type.BINARY, of_states=True, cost_ns=50_000)
def distinct_union(left: bytes, right: bytes) -> bytes:
    """distinct_union(a, b): the state of the values that either has seen."""
    return _read("distinct_union", united, left, right)


@builtin(STATE, STATE, returns=Type.BINARY, of_states=True, cost_ns=50_000)
def distinct_intersection(left: bytes, right: bytes) -> bytes:
    """distinct_intersection(a, b): the state of the values that both have seen."""
    return _read("distinct_intersection", intersected, left, right)


@builtin(STATE, STATE, returns=Type.BINARY, of_states=True, cost_ns=50_000)
def distinct_difference(left: bytes, right: bytes) -> bytes:
    """distinct_difference(a, b): the state of the values that only the first has seen."""
    return _read("distinct_difference", subtracted, left, right)


@builtin(STATE, STATE, returns=Type.FLOAT, of_states=True, cost_ns=50_000)
def distinct_jaccard(left: bytes, right: bytes) -> float:
    """distinct_jaccard(a, b): the share of all values of the two that both have seen, 0 to 1."""
    return _read("distinct_jaccard", jaccard, left, right)
