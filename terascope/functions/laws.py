"""The laws of aggregates, tried on random values: a user's aggregate is checked as built-in ones.

In: an aggregate. Out: an outcome for each law. Any split of the tuples, merged in any order and
over any number of levels, gives the value of the whole; the state of nothing changes nothing; a
packed state is the same after its journey; bytes that are no state are refused. The columns of
states that engines use are compared with zero, reduce, merge and finish on plain values. The error
of an approximate aggregate stays within its declared bound (terascope.functions.bound_trials).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.functions.base import AggregateFunction, State, TypeMistake, Value, ValueMistake
from terascope.functions.bound_trials import BoundedCall, allowed_failures, calls_of, excess
from terascope.functions.halves import finished, kind_of
from terascope.functions.object_states import column_types
from terascope.functions.values import SOME_VALUE
from terascope.functions.vector_dictionary import vector_of
from terascope.sketches.base import Argument, Packed, StateColumn, StateKind
from terascope.types import Type

Row: TypeAlias = tuple[Value, ...]
ROUNDS: Final = 12
MOST_ROWS: Final = 60
TOLERANCE: Final = 1e-9
BOUND: Final = "declared error bound"
TRIALS: Final = 40
"""The random groups on which a declared bound is tried."""

RANDOM: Final[dict[Type, Callable[[Random], Value]]] = {
    Type.INT: lambda r: r.randint(-1000, 1000),
    Type.UINT: lambda r: r.randint(0, 1500),
    Type.FLOAT: lambda r: r.randint(-4000, 4000) / 4,
    Type.BOOL: lambda r: r.random() < 0.5,
    Type.STRING: lambda r: "".join(r.choices("abcé ", k=r.randint(0, 4))),
    Type.IP: lambda r: b"\x04" + bytes([10, 0, r.randint(0, 1), r.randint(0, 9)]),
    Type.BINARY: lambda r: r.randbytes(r.randint(0, 4)),
}
"""Values whose sums neither overflow nor lose digits."""


@dataclass(frozen=True)
class LawOutcome:
    function: str
    law: str
    verdict: Literal["ok", "failed", "not checked"]
    detail: str = ""


def law_outcomes(aggregate: AggregateFunction, seed: int = 1) -> list[LawOutcome]:
    """Try every law on random tuples of every type that the aggregate takes; and the declared bound
    of an approximate one, with every strategy.
    """
    found = [outcome(aggregate, law, check, seed) for law, check in LAWS.items()]
    return [*found, *(bound_outcome(call, seed) for call in calls_of([aggregate]))]


def bound_outcome(call: BoundedCall, seed: int, trials: int = TRIALS) -> LawOutcome:
    """Try a declared bound on random groups that are merged over random trees."""
    name, bound = call.aggregate.name, call.bound
    if not call.aggregate.mergeable:
        return LawOutcome(name, BOUND, "not checked", "it has no merge")
    try:
        found = {each: excess(call, each) for each in range(seed, seed + trials)}
    except Exception as mistake:
        return LawOutcome(name, BOUND, "failed", f"{type(mistake).__name__}: {mistake}")
    broken = [each for each, size in found.items() if size > 1]
    if len(broken) <= allowed_failures(bound.cases, trials):
        return LawOutcome(name, BOUND, "ok", call.strategy)
    detail = f"{call}: {len(broken)} of {trials} groups, such as seed {broken[0]}, break: {bound}"
    return LawOutcome(name, BOUND, "failed", detail)


def outcome(
    aggregate: AggregateFunction, law: str, check: Callable[..., str | None], seed: int
) -> LawOutcome:
    """The first failure of a law, or that there was none."""
    for types in argument_types(aggregate):
        random = Random(f"{seed} {law} {types}")
        for _ in range(ROUNDS):
            rows = random_rows(aggregate, types, random)
            try:
                wrong = check(aggregate, types, rows, random)
            except NotChecked as reason:
                return LawOutcome(aggregate.name, law, "not checked", str(reason))
            except ValueMistake as mistake:
                wrong = str(mistake)
            except Exception as mistake:
                wrong = f"{type(mistake).__name__}: {mistake}"
            if wrong is not None:
                shown = f"({', '.join(each.label for each in types)}): {wrong}"
                return LawOutcome(aggregate.name, law, "failed", shown)
    return LawOutcome(aggregate.name, law, "ok")


class NotChecked(Exception):
    """A law that does not concern an aggregate."""


def argument_types(aggregate: AggregateFunction) -> Iterator[tuple[Type, ...]]:
    """The lists of types that an aggregate takes, as values: states of its own are merged."""
    for types in itertools.product(RANDOM, repeat=aggregate.arity):
        try:
            aggregate.type_rule(types)
        except TypeMistake:
            continue
        kept = aggregate.state(types, parameters(aggregate)[0])
        if kept is None or not kept.from_states:  # random bytes are no states
            yield types


def random_rows(aggregate: AggregateFunction, types: Sequence[Type], random: Random) -> list[Row]:
    """Tuples. A last integer is in order where order matters, as a clock is."""
    count = random.choice([0, 1, 2, random.randint(3, MOST_ROWS)])
    rows = [tuple(RANDOM[type](random) for type in types) for _ in range(count)]
    if not aggregate.skips_null:
        return [tuple(None if random.random() < 0.2 else v for v in row) for row in rows]
    if aggregate.ordered and len(types) > 1 and types[-1].is_integer:
        rows.sort(key=lambda row: row[-1])
    return rows


def parameters(aggregate: AggregateFunction) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    cut = aggregate.state_parameters
    return aggregate.example_parameters[:cut], aggregate.example_parameters[cut:]


def is_approximate(aggregate: AggregateFunction) -> bool:
    return aggregate.bound(*parameters(aggregate)[0]) is not None


def agrees(left: Value, right: Value) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        close = math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=1e-6)
        return close or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and bool(left == right)


# ---- on plain values -----------------------------------------------------------------------------


def reduced(aggregate: AggregateFunction, rows: Sequence[Row]) -> State:
    state = aggregate.zero(*parameters(aggregate)[0])
    for row in rows:
        state = aggregate.reduce(state, *row)
    return state


def plain_value(aggregate: AggregateFunction, state: State) -> Value:
    return aggregate.finish(state, *parameters(aggregate)[1])


def parts_of(rows: Sequence[Row], random: Random) -> list[Sequence[Row]]:
    """The rows, cut into up to five parts."""
    cuts = sorted(random.randint(0, len(rows)) for _ in range(random.randint(0, 4)))
    edges = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in itertools.pairwise(edges)]


def merges_plainly(
    aggregate: AggregateFunction, types: Sequence[Type], rows: list[Row], random: Random
) -> str | None:
    if not aggregate.mergeable:
        raise NotChecked("it has no merge")
    if is_approximate(aggregate) and aggregate.user_defined:
        raise NotChecked(f"it is approximate: see {BOUND}")
    states = [reduced(aggregate, part) for part in parts_of(rows, random)]
    while len(states) > 1:
        if not aggregate.ordered:
            random.shuffle(states)
        at = random.randrange(len(states) - 1)
        states[at : at + 2] = [aggregate.merge(states[at], states[at + 1])]
    whole, merged = (
        plain_value(aggregate, reduced(aggregate, rows)),
        plain_value(aggregate, states[0]),
    )
    if agrees(whole, merged):
        return None
    return f"the whole of {len(rows)} tuples gives {whole!r}, merged parts of it {merged!r}"


def keeps_identity(
    aggregate: AggregateFunction, types: Sequence[Type], rows: list[Row], random: Random
) -> str | None:
    if not aggregate.mergeable:
        raise NotChecked("it has no merge")
    state, zero = reduced(aggregate, rows), reduced(aggregate, ())
    before = plain_value(aggregate, state)
    for merged in (aggregate.merge(state, zero), aggregate.merge(zero, state)):
        if not agrees(plain_value(aggregate, merged), before):
            return f"{before!r} becomes {plain_value(aggregate, merged)!r} by a merge with nothing"
    if not agrees(plain_value(aggregate, state), before):
        return "a merge changed a state that was handed out"
    return None


# ---- in columns of states ------------------------------------------------------------------------


def columns_of(types: Sequence[Type], rows: Sequence[Row]) -> list[Argument]:
    """The values as an engine hands them to a column of states."""
    return [vector_of([row[k] for row in rows], type) for k, type in enumerate(types)]


def placed(
    aggregate: AggregateFunction, types: Sequence[Type], rows: Sequence[Row]
) -> tuple[tuple[Type, ...], list[Row]]:
    """The tuples as columns of states take them. Where their order matters, each has its place
    behind its values: clock, interface, position.
    """
    if not aggregate.skips_null:
        rows = [
            tuple(each for known in zip(row, types, strict=True) for each in pair(*known))
            for row in rows
        ]
    types = column_types(aggregate, types)
    if not aggregate.ordered:
        return types, list(rows)
    shown = [(*row, at // 3, "eth0", at) for at, row in enumerate(rows)]
    return (*types, Type.ULLONG, Type.STRING, Type.ULLONG), shown


def pair(value: Value, type: Type) -> tuple[bool, Value]:
    """Whether there is a value, and the value."""
    return value is not None, SOME_VALUE.get(type, 0) if value is None else value


def kind(aggregate: AggregateFunction, types: tuple[Type, ...]) -> StateKind:
    found = kind_of(aggregate, types, parameters(aggregate)[0])
    if found is None:
        raise NotChecked("it has no column of states")
    return found


def low_states(kept: StateKind, types: Sequence[Type], rows: Sequence[Row]) -> list[Packed]:
    """The packed states of one group in a table next to the source, full ones among them."""
    column, numbers = kept.low(), np.zeros(len(rows), np.int64)
    column.iterate(numbers, columns_of(types, rows))
    full = column.flushed()
    last = column.pack(np.zeros(1, np.int64))
    return [last] if full is None else [*(full[1][i : i + 1] for i in range(len(full[1]))), last]


def merged_states(kept: StateKind, states: Sequence[Packed]) -> Packed:
    column = kept.high()
    for state in states:
        column.merge(np.zeros(1, np.int64), state)
    return column.pack(np.zeros(1, np.int64))


def merges_in_columns(
    aggregate: AggregateFunction, types: tuple[Type, ...], rows: list[Row], random: Random
) -> str | None:
    kept = kind(aggregate, types)
    all_types, shown = placed(aggregate, types, rows)
    states = [s for part in parts_of(shown, random) for s in low_states(kept, all_types, part)]
    random.shuffle(states)
    for _ in range(random.randint(0, 3)):  # levels between the source and the last one
        cut = random.randint(0, len(states))
        pieces = [piece for piece in (states[:cut], states[cut:]) if piece]
        states = [merged_states(kept, piece) for piece in pieces]
    constants = aggregate.example_parameters
    found = finished(aggregate, merged_states(kept, states)[0].as_py(), *constants)
    whole = plain_value(aggregate, reduced(aggregate, rows))
    if is_approximate(aggregate):  # how near it is, is a law of its own
        fine = (found is None) == (whole is None)
        return None if fine else f"columns of states give {found!r}, not {whole!r}"
    return None if agrees(found, whole) else f"columns of states give {found!r}, not {whole!r}"


def travels(
    aggregate: AggregateFunction, types: tuple[Type, ...], rows: list[Row], random: Random
) -> str | None:
    """A packed state merged into nothing and packed again has the same value."""
    kept = kind(aggregate, types)
    once = merged_states(kept, low_states(kept, *placed(aggregate, types, rows)))
    again = merged_states(kept, [once])
    constants = aggregate.example_parameters
    values = [finished(aggregate, state[0].as_py(), *constants) for state in (once, again)]
    if is_approximate(aggregate) and isinstance(values[0], bytes):  # a state has no order
        return None if values[1] is not None else "a packed state is gone when it is read"
    return None if agrees(*values) else f"{values[0]!r} becomes {values[1]!r} when it is packed"


def refuses_damage(
    aggregate: AggregateFunction, types: tuple[Type, ...], rows: list[Row], random: Random
) -> str | None:
    kept = kind(aggregate, types)
    column: StateColumn = kept.high()
    for damaged in (b"", b"T", b"no state at all"):
        try:
            column.merge(np.zeros(1, np.int64), pa.array([damaged], pa.large_binary()))
        except ValueError:
            continue
        return f"it takes the bytes {damaged!r} for a state"
    return None


LAWS: Final[dict[str, Callable[..., str | None]]] = {
    "any split, any order": merges_plainly,
    "nothing changes nothing": keeps_identity,
    "columns of states": merges_in_columns,
    "packed and read again": travels,
    "damaged bytes are refused": refuses_damage,
}
