"""States of aggregates as JSON, without code in them.

In: the state of an aggregate: numbers, text, bytes, tuples, sets, and the classes that the
aggregate names in `state_classes`. Out: JSON in which everything that is not plain carries a tag,
so that reading a file written by another user gives a wrong state at worst, and never runs code.
Only the state of a user's own aggregate may be any Python object: if it is not plain it is pickled,
and read only where the caller says that it comes from a folder that is this user's alone.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from terascope.functions.base import AggregateFunction, State, Value, ValueMistake

PLAIN: Final = "plain"
"""The key of the state of a user's aggregate that is no pickle."""


def encode_state(aggregate: AggregateFunction, state: State) -> Any:
    """Values that JSON takes.

    Raises:
        TypeError: a built-in aggregate keeps something that it does not name.
    """
    if not aggregate.user_defined:
        return plain_form(state, aggregate.state_classes)
    try:
        return {PLAIN: plain_form(state, aggregate.state_classes)}
    except TypeError:
        return b64encode(pickle.dumps(state)).decode()


def decode_state(aggregate: AggregateFunction, held: Any, trusted: bool) -> State:
    """The state that was encoded. `trusted`: no other user can have written it.

    Raises:
        ValueMistake: it is no state of this aggregate, or would run code and is not trusted.
    """
    pickled = aggregate.user_defined and isinstance(held, str)
    if pickled and not trusted:
        raise ValueMistake(not_read(aggregate.name))
    try:
        if pickled:
            return pickle.loads(b64decode(held))
        plain = held[PLAIN] if aggregate.user_defined else held
        state = value_of(plain, aggregate.state_classes)
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        raise ValueMistake(f"the saved state of {aggregate.name} is damaged") from problem
    if not aggregate.is_state(state):
        raise ValueMistake(
            f"the saved state of {aggregate.name} is damaged, or was written by another version of"
            " Terascope; begin anew with another --checkpoint"
        )
    return state


def not_read(aggregate: str) -> str:
    """The reason why a pickled state is refused."""
    return (
        f"the saved state of {aggregate} is not read, because other users may write to the folder"
        " of the checkpoint; make it private (chmod go-w), or begin anew with another --checkpoint"
    )


def encode_values(values: Iterable[tuple[Value, ...]]) -> Any:
    """Values of tuples, in the same form."""
    return plain_form(list(values), ())


def decode_values(held: Any) -> list[tuple[Value, ...]]:
    return list(value_of(held, ()))


def plain_form(value: Any, classes: Sequence[type]) -> Any:
    """A value as JSON has it: an array begins with the tag of what it stands for."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return ["f", value.hex()]
    if type(value) is bytes:
        return ["b", b64encode(value).decode()]
    if type(value) is dict:
        return ["d", *([plain_form(k, classes), plain_form(v, classes)] for k, v in value.items())]
    if type(value) in SEQUENCES:
        return [SEQUENCES[type(value)], *(plain_form(item, classes) for item in value)]
    if is_dataclass(value) and type(value) in classes:
        held = (plain_form(getattr(value, f.name), classes) for f in fields(value))
        return ["c", classes.index(type(value)), *held]
    raise TypeError(f"a state cannot have a {type(value).__name__}")


SEQUENCES: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "z"}
KINDS = {tag: kind for kind, tag in SEQUENCES.items()}


def value_of(encoded: Any, classes: Sequence[type]) -> Any:
    if not isinstance(encoded, list):
        return encoded
    tag, *rest = encoded
    if tag == "f":
        return float.fromhex(rest[0])
    if tag == "b":
        return b64decode(rest[0])
    if tag == "d":
        return {value_of(k, classes): value_of(v, classes) for k, v in rest}
    if tag == "c":
        return classes[rest[0]](*(value_of(item, classes) for item in rest[1:]))
    return KINDS[tag](value_of(item, classes) for item in rest)
