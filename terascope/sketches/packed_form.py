"""How packed states say what they are: four bytes that stand before every one.

In: packed states, as Arrow has them or one by one. Out: their offsets and bytes, after a check that
they are states of the family asked for and not shorter than these must be.

The four bytes are the letter T, the letter of the family, the version of its layout and a variant,
whose meaning is the family's own. All numbers behind them are little endian.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, inlined
from terascope.sketches.base import Packed, bytes_of

Offsets = NDArray[np.int64]
Data = NDArray[np.uint8]

HEADER: Final = 4
VERSION: Final = 1
FIRST_LETTER: Final = ord("T")


def header_of(family: str, variant: int) -> bytes:
    return bytes((FIRST_LETTER, ord(family), VERSION, variant))


def checked(
    packed: Packed, family: str, what: str, variants: int, least: int
) -> tuple[Offsets, Data]:
    """Offsets and bytes of packed states. The variant of each is below `variants`, and its length
    at least `least`; `what` names the family in messages.

    Raises:
        ValueError: some of the bytes are no state of the family.
    """
    offsets, data = bytes_of(packed)
    wrong = first_wrong(offsets, data, ord(family), variants, max(least, HEADER))
    if wrong >= 0:
        raise ValueError(refusal(data[offsets[wrong] : offsets[wrong + 1]].tobytes(), family, what))
    return offsets, data


def checked_one(state: bytes, family: str, what: str, variants: int, least: int) -> int:
    """The variant of one packed state, after the same check."""
    right = state[:3] == header_of(family, 0)[:3]
    if not right or len(state) < max(least, HEADER) or state[3] >= variants:
        raise ValueError(refusal(state, family, what))
    return state[3]


def refusal(state: bytes, family: str, what: str) -> str:
    """Why some bytes are no state of a family."""
    if len(state) < HEADER or state[:2] != header_of(family, 0)[:2]:
        return f"these {len(state)} bytes are not {what}"
    if state[2] != VERSION:
        return f"these bytes are {what} of version {state[2]}; this program reads {VERSION}"
    return f"these {len(state)} bytes are {what} that is cut short or damaged"


@compiled_for(column(np.int64), column(np.uint8), INTEGER, INTEGER, INTEGER)
def first_wrong(offsets: Offsets, data: Data, family: int, variants: int, least: int) -> int:
    for i in range(len(offsets) - 1):
        at = offsets[i]
        if offsets[i + 1] - at < least:
            return i
        if data[at] != 84 or data[at + 1] != family or data[at + 2] != 1:
            return i
        if data[at + 3] >= variants:
            return i
    return -1


@inlined
def word_at(data: Data, at: int, size: Any) -> np.uint64:
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[np.uint64(at + k)]) << np.uint64(8 * k)
    return word


@inlined
def put_word(data: Data, at: int, size: int, word: np.uint64) -> None:
    for k in range(size):
        data[np.uint64(at + k)] = np.uint8((word >> np.uint64(8 * k)) & np.uint64(255))
