"""Integer overflow: every engine reports it in the same words.

In: the expression or the aggregate as it was written, and the query it stands in, as far as the
engine that meets the overflow knows them. Out: an `Overflow`, whose message also says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from terascope.functions.base import StateMistake, ValueMistake

SUM = "SUM"


class Overflow(ValueMistake):
    """An integer that 64 bits cannot hold."""

    def __init__(self, what: str, query: str = "") -> None:
        super().__init__(overflow_message(what, query))
        self.what = what
        self.query = query

    def __reduce__(self) -> tuple[type[Overflow], tuple[str, str]]:
        return Overflow, (self.what, self.query)


def overflow_message(what: str, query: str = "") -> str:
    """The one message. `what`: as it was written, such as `SUM(len)`; `query`: empty if unknown."""
    where = f"{what} of query {query}" if query else what
    if what.startswith(SUM):
        advice = f"a sum of integers is a signed 64-bit number; write {float_sum(what)}"
    else:
        advice = "integers are signed 64-bit numbers; CAST a part of it to FLOAT"
    return f"integer overflow in {where}: {advice}"


def float_sum(text: str) -> str:
    """The same sum over FLOATs."""
    plain = text.startswith(f"{SUM}(") and "DISTINCT" not in text and " or " not in text
    argument = text.removeprefix(f"{SUM}(").removesuffix(")") if plain else "..."
    return f"SUM(CAST({argument} AS FLOAT))"


@contextmanager
def overflow_of(query: str) -> Iterator[None]:
    """An overflow inside, or a state that cannot be made, is one of this query, unless it is known
    to be another's.
    """
    try:
        yield
    except (Overflow, StateMistake) as mistake:
        if mistake.query:
            raise
        raise type(mistake)(mistake.what, query) from None


@contextmanager
def overflow_in(what: str) -> Iterator[None]:
    """An overflow inside is one of this expression or aggregate."""
    try:
        yield
    except Overflow as mistake:
        raise Overflow(what, mistake.query) from None


@contextmanager
def states_of(name: str, users: Mapping[str, str] | None = None) -> Iterator[None]:
    """A state inside that cannot be made is one of this stream. `users`: the query to name instead
    of a stream.
    """
    try:
        yield
    except StateMistake as mistake:
        query = mistake.query or name
        raise StateMistake(mistake.what, (users or {}).get(query, query)) from mistake


@contextmanager
def telling_states() -> Iterator[None]:
    """What goes wrong inside is a mistake of a state: bytes that are none, or a user's function."""
    try:
        yield
    except (StateMistake, Overflow):
        raise
    except (ValueError, ValueMistake) as mistake:
        raise StateMistake(str(mistake)) from mistake
