"""Packed states of aggregates that keep Python objects: bytes that say whose state they are.

In: the state of an aggregate. Out: bytes, as short as its content allows: numbers as words, plain
values as JSON (terascope.functions.states), bytes as they are. Only the state of a user's own
aggregate may be any Python object; it is pickled then, and refused where other users may have
written it (`pickled_by`). Layout: `TO`, version, variant; the length of the aggregate's name in two
bytes, the name; the content.
"""

from __future__ import annotations

import json
import pickle
import struct
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from terascope.functions.base import AggregateFunction, State, ValueMistake
from terascope.functions.states import plain_form, value_of

JSON, PICKLE, NUMBERS, NUMBER, RAW = range(5)
"""Variants of the content."""
FAMILY: Final = b"TO\x01"
CODES: Final = {int: "q", float: "d"}
MOST_NUMBERS: Final = 64


def packed_object(aggregate: AggregateFunction, state: State) -> bytes:
    """The bytes of a state.

    Raises:
        ValueMistake: the state cannot be packed, or is larger than the declared scratchpad.
    """
    variant, content = numbers(state) or objects(aggregate, state)
    return with_header(aggregate, variant, content)


def with_header(aggregate: AggregateFunction, variant: int, content: bytes) -> bytes:
    check_size(aggregate, len(content))
    name = aggregate.name.encode()
    return FAMILY + struct.pack("<BH", variant, len(name)) + name + content


def check_size(aggregate: AggregateFunction, size: int) -> None:
    if 0 < aggregate.scratchpad < size:
        raise ValueMistake(
            f"function {aggregate.name}: a state of {size} bytes is larger than its scratchpad of"
            f" {aggregate.scratchpad} bytes"
        )


def pickled_by(column: pa.Array) -> str | None:
    """The aggregate of the first state in a column of bytes that is a pickle, or has one in it;
    None: reading the column runs no code.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return None
    mark = FAMILY + bytes([PICKLE])
    for state in column.filter(pc.match_substring(column, mark)).to_pylist():
        begin = state.index(mark) + len(mark)
        length = int.from_bytes(state[begin : begin + 2], "little")
        return str(state[begin + 2 : begin + 2 + length], "utf-8", "replace")
    return None


def is_packed_object(packed: bytes) -> bool:
    return packed[: len(FAMILY)] == FAMILY


def content_of(aggregate: AggregateFunction, packed: bytes) -> tuple[int, bytes]:
    """The variant of a packed state, and its content.

    Raises:
        ValueError: the bytes are no state of this aggregate.
    """
    if packed[:3] != FAMILY or len(packed) < 6:
        raise ValueError(f"these bytes are no packed state of {aggregate.name}")
    variant, length = struct.unpack_from("<BH", packed, 3)
    name = packed[6 : 6 + length]
    if name != aggregate.name.encode():
        owner = name.decode(errors="replace")
        raise ValueError(f"a packed state of {owner} is no state of {aggregate.name}")
    return variant, packed[6 + length :]


def unpacked_object(aggregate: AggregateFunction, packed: bytes) -> State:
    """The state of some bytes.

    Raises:
        ValueError: the bytes are no state of this aggregate, or are damaged.
    """
    variant, content = content_of(aggregate, packed)
    try:
        state = read_content(aggregate, variant, content)
    except Exception as problem:  # whatever a pickle may raise
        raise ValueError(f"the packed state of {aggregate.name} is damaged") from problem
    if not aggregate.is_state(state):
        raise ValueError(f"the packed state of {aggregate.name} is damaged")
    return state


def read_content(aggregate: AggregateFunction, variant: int, content: bytes) -> State:
    if variant == JSON:
        return value_of(json.loads(content), aggregate.state_classes)
    if variant == PICKLE and aggregate.user_defined:
        return pickle.loads(content)
    if variant in (NUMBERS, NUMBER):
        count = content[0]
        codes = content[1 : 1 + count].decode()
        found = struct.unpack(f"<{codes}", content[1 + count :])
        if set(codes) <= {"q", "d"} and len(codes) == count:
            return found if variant == NUMBERS else found[0]
    raise ValueError("unknown content")


def numbers(state: State) -> tuple[int, bytes] | None:
    """The content of a state that is a number or a tuple of numbers; None for other states."""
    items = state if type(state) is tuple else (state,)
    if len(items) > MOST_NUMBERS:
        return None
    codes = "".join([CODES.get(type(item), "") for item in items])
    if len(codes) < len(items):
        return None
    try:
        words = struct.pack(f"<{codes}", *items)
    except struct.error:  # an integer of more than 64 bits
        return None
    variant = NUMBERS if type(state) is tuple else NUMBER
    return variant, bytes([len(codes)]) + codes.encode() + words


def objects(aggregate: AggregateFunction, state: State) -> tuple[int, bytes]:
    """The content of a state of plain values, or of a user's objects."""
    try:
        text = json.dumps(plain_form(state, aggregate.state_classes), separators=(",", ":"))
        return JSON, text.encode()
    except TypeError as problem:
        if not aggregate.user_defined:
            raise
        try:
            return PICKLE, pickle.dumps(state, protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError):
            raise ValueMistake(
                f"function {aggregate.name}: {problem}; keep numbers, text, bytes, lists and"
                " dictionaries, or give the class the methods pack and unpack"
            ) from problem
