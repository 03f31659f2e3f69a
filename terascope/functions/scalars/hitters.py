"""Functions on the states of heavy hitters that the aggregate `hitters` gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from terascope.functions.base import Value, ValueMistake
from terascope.functions.hitter_lists import as_json, count_of, listed, read_state, written
from terascope.functions.signatures import ANYTHING, INTEGER, NUMBER, Want, builtin
from terascope.sketches.hitter_answers import rank
from terascope.types import Type, format_ip

STATE = Want("a state of heavy hitters", lambda t: t is Type.BINARY)


def _checked(place: int, check: Callable[[Value], object]) -> Callable[[Sequence[Value]], None]:
    """The check of one argument, if it is a constant."""

    def check_constants(constants: Sequence[Value]) -> None:
        if constants[place] is not None:
            check(constants[place])

    return check_constants


def _check_share(share: Value) -> float:
    if not 0 < share <= 1:
        raise ValueMistake(f"heavy_prefixes takes a share above 0 and up to 1, not {share}")
    return float(share)


@builtin(
    STATE, INTEGER, returns=Type.STRING, cost_ns=20_000, of_states=True,
    check_constants=_checked(1, lambda k: count_of("hitters_of", k)),
)  # fmt: skip
def hitters_of(state: bytes, k: int) -> str:
    """hitters_of(state, k): the k heaviest identifiers, as a JSON list of id, estimate, error."""
    count = count_of("hitters_of", k)
    return as_json(listed(read_state("hitters_of", state).hits()[:count]))


@builtin(STATE, ANYTHING, returns=Type.ULLONG, cost_ns=20_000, of_states=True)
def estimate_of(state: bytes, id: Value) -> int:
    """estimate_of(state, id): the estimated weight of an identifier."""
    held = read_state("estimate_of", state)
    try:
        return held.estimate(id).estimate
    except ValueError as problem:
        raise ValueMistake(f"estimate_of: {problem}") from problem


@builtin(STATE, returns=Type.ULLONG, cost_ns=10_000, of_states=True)
def hitters_total(state: bytes) -> int:
    """The sum of all weights of a state of heavy hitters."""
    return read_state("hitters_total", state).total


@builtin(STATE, returns=Type.ULLONG, cost_ns=10_000, of_states=True)
def hitters_error(state: bytes) -> int:
    """The bound on the error of the estimates of a state of heavy hitters; 0 when it is exact."""
    return read_state("hitters_error", state).error


@builtin(STATE, returns=Type.BINARY, cost_ns=50_000, of_states=True)
def frequent_bytes(state: bytes) -> bytes:
    """The frequent-items sketch of Apache DataSketches, as bytes, of a state over integers that is
    exact or of the strategy frequent_items.
    """
    try:
        return read_state("frequent_bytes", state).frequent_bytes()
    except ValueError as problem:
        raise ValueMistake(f"frequent_bytes: {problem}") from problem


@builtin(
    STATE, STATE, INTEGER, returns=Type.STRING, cost_ns=50_000, of_states=True,
    check_constants=_checked(2, lambda k: count_of("heavy_changes", k)),
)  # fmt: skip
def heavy_changes(before: bytes, after: bytes, k: int) -> str:
    """heavy_changes(a, b, k): the k identifiers whose weight differs most between two states."""
    count = count_of("heavy_changes", k)
    old, new = read_state("heavy_changes", before), read_state("heavy_changes", after)
    values = {rank(hit.id): hit.id for hit in (*old.hits(), *new.hits())}
    changes: list[tuple[int, Any, dict[str, Any]]] = []
    for key, value in values.items():
        try:
            left, right = old.estimate(value), new.estimate(value)
        except ValueError as problem:
            raise ValueMistake(f"heavy_changes: {problem}") from problem
        change = right.estimate - left.estimate
        entry = {"id": written(value), "change": change, "error": left.error + right.error}
        changes.append((-abs(change), key, entry))
    return as_json([entry for _, _, entry in sorted(changes, key=lambda c: c[:2])[:count]])


@builtin(
    STATE,
    NUMBER,
    returns=Type.STRING,
    cost_ns=200_000,
    of_states=True,
    check_constants=_checked(1, _check_share),
)
def heavy_prefixes(state: bytes, phi: float) -> str:
    """heavy_prefixes(state, phi): the prefixes of addresses with at least the share phi of all
    weight, that of heavy prefixes inside them (`rest` is without it) not counted, as a JSON list.
    """
    share = _check_share(phi)
    held = read_state("heavy_prefixes", state)
    try:
        found = held.prefixes(share)
    except ValueError as problem:
        raise ValueMistake(f"heavy_prefixes: {problem}") from problem
    entries = [
        {
            "prefix": f"{format_ip(hit.first)}/{hit.length}",
            "estimate": hit.estimate,
            "rest": hit.rest,
            "error": hit.error,
        }
        for hit in found
    ]
    return as_json(entries)
