"""Extractors: answers from a state of approx_quantile (paper 1, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from terascope.functions.base import Extractor, Value, ValueMistake
from terascope.functions.signatures import NUMBER, Want, builtin
from terascope.sketches.kll import quantiles_of, sketch_bytes, state_of_sketch
from terascope.sketches.quantile_answers import percentile_column
from terascope.sketches.quantile_reading import Quantiles
from terascope.types import INT_MIN, Type

STATE: Final = Want("a state of approx_quantile", lambda t: t is Type.BINARY)
SKETCH: Final = Want("a sketch as BINARY", lambda t: t is Type.BINARY)

Answer = TypeVar("Answer")


def _read(name: str, read: Callable[[bytes], Answer], state: bytes) -> Answer:
    try:
        return read(state)
    except ValueError as mistake:
        raise ValueMistake(f"{name}: {mistake}") from mistake


def _quantiles(name: str, state: bytes) -> Quantiles:
    return _read(name, quantiles_of, state)


def _percent(value: Value) -> float:
    if not 0 <= value <= 100:
        raise ValueMistake(f"percentile_of takes a number between 0 and 100, not {value}")
    return float(value)


def _check_percent(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        _percent(constants[1])


def _percentile_column(
    states: pa.Array, percents: pa.Array, whole: bool = False
) -> pa.Array | None:
    """The same percentile of a column of states; None when the percentages differ."""
    if not len(percents) or percents.null_count:
        return None
    wanted = percents.to_numpy(zero_copy_only=False)
    if not 0 <= wanted[0] <= 100 or (wanted != wanted[0]).any():
        return None
    try:
        return percentile_column(states, float(wanted[0]), whole)
    except ValueError as mistake:
        raise ValueMistake(f"percentile_of: {mistake}") from mistake


@builtin(
    STATE,
    NUMBER,
    returns=Type.FLOAT,
    check_constants=_check_percent,
    cost_ns=20_000,
    of_states=True,
    of_integers="whole_percentile_of",
    columns=_percentile_column,
)
def percentile_of(state: bytes, percent: int | float) -> float | None:
    """percentile_of(state, p): about the smallest value with p percent of all at or below it."""
    share = _percent(percent)
    found = _quantiles("percentile_of", state).percentile(share)
    return None if found is None else float(found)


@builtin(
    STATE,
    NUMBER,
    returns=Type.LLONG,
    check_constants=_check_percent,
    cost_ns=20_000,
    of_states=True,
    columns=partial(_percentile_column, whole=True),
)
def whole_percentile_of(state: bytes, percent: int | float) -> int | None:
    """whole_percentile_of(state, p): percentile_of of integers, digit by digit; FLOATs are cut."""
    share = _percent(percent)
    found = _quantiles("whole_percentile_of", state).percentile(share)
    if isinstance(found, float) and not INT_MIN <= found < 2.0**63:
        raise ValueMistake(f"whole_percentile_of: {found} is no integer of 64 bits")
    return None if found is None else int(found)


@builtin(STATE, NUMBER, returns=Type.FLOAT, cost_ns=20_000, of_states=True)
def quantile_rank(state: bytes, value: int | float) -> float | None:
    """quantile_rank(state, x): about the share of values that are at most x, from 0 to 1."""
    held = _quantiles("quantile_rank", state)
    if not held.count:
        return None
    return float(held.ranks(np.array([value]))[0] / held.count)


@builtin(STATE, returns=Type.LLONG, cost_ns=20_000, of_states=True)
def quantile_count(state: bytes) -> int:
    """quantile_count(state): how many values a state of approx_quantile has seen."""
    return _quantiles("quantile_count", state).count


@builtin(STATE, returns=Type.LLONG, cost_ns=20_000, of_states=True)
def quantile_error(state: bytes) -> int:
    """quantile_error(state): by how many ranks its answers are wrong at most."""
    return _quantiles("quantile_error", state).error


@builtin(STATE, STATE, returns=Type.FLOAT, cost_ns=50_000, of_states=True)
def quantile_distance(left: bytes, right: bytes) -> float | None:
    """quantile_distance(a, b): the Kolmogorov-Smirnov distance of two states, from 0 to 1: the
    largest difference between their shares of values up to a point.
    """
    held = _quantiles("quantile_distance", left)
    return held.distance(_quantiles("quantile_distance", right))


@builtin(STATE, returns=Type.BINARY, cost_ns=50_000, of_states=True)
def kll_bytes(state: bytes) -> bytes:
    """kll_bytes(state): the sketch as Apache DataSketches and Spark's kll functions of doubles
    read it.
    """
    return _read("kll_bytes", sketch_bytes, state)


@builtin(SKETCH, returns=Type.BINARY, cost_ns=50_000, of_states=True)
def kll_from_bytes(sketch: bytes) -> bytes:
    """kll_from_bytes(sketch): the state of a KLL sketch of doubles that others have made."""
    return _read("kll_from_bytes", state_of_sketch, sketch)


SYNONYMS: Final = {"percentile_fcn": "percentile_of"}
EXTRACTORS: Final = {
    "approx_percentile": Extractor(
        "percentile_of",
        "approx_quantile",
        extras=1,
        doc="approx_percentile(x, p [, eps]): about the percentile p of the values",
    ),
    "approx_median": Extractor(
        "percentile_of",
        "approx_quantile",
        constants=(50,),
        doc="approx_median(x [, eps]): approx_percentile(x, 50)",
    ),
}
