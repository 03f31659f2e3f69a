"""The slots of a group: what a table keeps for each aggregate, and how its rows are laid out.

In: the kinds of slots of an aggregation (terascope.functions.slots). Out: the layout of its rows.

A row is one run of 64-bit words: [state] [epoch] [key words] [slots]. `state` is 0 for an empty
place; bit 0 says that a group is there, bit 1+j that slot j has seen a value. The epoch stands in
the row only where groups of several epochs share a table (lazy flush). A key word holds two int32
codes, the earlier key in the upper half. FLOAT slots are seen through a float64 view of the same
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from terascope.functions.slots import RANGE, SlotKind

MOST_SLOTS: Final = 60
"""The number of bits of the state word."""


@dataclass(frozen=True)
class Shape:
    """All that the machine code of an aggregation depends on; many queries have the same."""

    keys: int
    """Number of key codes, the epoch not among them."""
    slots: tuple[SlotKind, ...]
    with_epoch: bool = False

    @property
    def words(self) -> int:
        return (self.keys + 1) // 2

    @property
    def word_names(self) -> list[str]:
        """The names of the key words of a tuple in generated kernels."""
        return [f"w{word}" for word in range(self.words)]

    @property
    def first_word(self) -> int:
        return 2 if self.with_epoch else 1

    @property
    def first_slot(self) -> int:
        return self.first_word + self.words

    @property
    def stride(self) -> int:
        """64-bit words a row has."""
        return self.first_slot + len(self.slots)

    @property
    def ranges(self) -> tuple[int, ...]:
        """The slots with the range of the digits behind them."""
        return tuple(j for j, kind in enumerate(self.slots) if kind == RANGE)

    def slot(self, place: int) -> int:
        """The word a slot stands in."""
        return self.first_slot + place

    @property
    def row_bytes(self) -> int:
        return 8 * self.stride


def view(kind: SlotKind, ints: str, floats: str) -> str:
    return floats if kind.is_float else ints


def overflows(target: str, value: str, total: str) -> list[str]:
    """Statements that set `total` to the sum; its last line is the condition that it overflowed."""
    return [f"{total} = {target} + {value}", f"(({target} ^ {total}) & ({value} ^ {total})) < 0"]
