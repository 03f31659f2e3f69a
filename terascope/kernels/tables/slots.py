"""The slots of a group: what a table keeps for each aggregate, and how its rows are laid out.

In: the kinds of slots of an aggregation. Out: the layout of its rows, and the statements by which
generated kernels start, update and combine slots.

A row is one run of 64-bit words: [state] [epoch] [key words] [slots]. `state` is 0 for an empty
place; bit 0 says that a group is there, bit 1+j that slot j has seen a value. The epoch stands in
the row only where groups of several epochs share a table (lazy flush). A key word holds two int32
codes, the earlier key in the upper half. FLOAT slots are seen through a float64 view of the same
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from terascope.types import INT_MAX, INT_MIN

SlotKind: TypeAlias = Literal[
    "count",
    "count_of",
    "sum_int",
    "min_int",
    "max_int",
    "min_float",
    "max_float",
    "or_int",
    "and_int",
    "xor_int",
    "range",
]
"""`count` counts tuples; all others pass over tuples whose argument is NULL. In FLOATs NaN counts
as the largest value. `range` is the range of the FLOATs whose digits the five slots right behind it
sum (terascope.functions.exact_floats): 0 in a table, and never combined with another one."""

MOST_SLOTS: Final = 60
"""As many as the state word has bits for."""


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
        """What generated kernels call the key words of a tuple."""
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
        """The slots that say to what range the digits behind them belong."""
        return tuple(j for j, kind in enumerate(self.slots) if kind == "range")

    def slot(self, place: int) -> int:
        """The word a slot stands in."""
        return self.first_slot + place

    @property
    def row_bytes(self) -> int:
        return 8 * self.stride


def is_float(kind: SlotKind) -> bool:
    return kind.endswith("_float")


def takes_argument(kind: SlotKind) -> bool:
    return kind != "count"


def is_added(kind: SlotKind) -> bool:
    """Whether combining two slots is adding them, as for counts and sums."""
    return kind in ("count", "count_of", "sum_int")


def view(kind: SlotKind, ints: str, floats: str) -> str:
    return floats if is_float(kind) else ints


def start(kind: SlotKind, target: str) -> str:
    """The slot of a group that has seen nothing yet."""
    match kind:
        case "min_float" | "max_float":
            return f"{target} = 0.0"
        case _:
            return f"{target} = 0"


def neutral(kind: SlotKind) -> int:
    """What a slot starts with that takes every value by `take_any`."""
    return {"min_int": INT_MAX, "max_int": INT_MIN, "and_int": -1}.get(kind, 0)


def take_any(kind: SlotKind, target: str, value: str, seen: str) -> list[str]:
    """As `take`, for a slot that started neutral: nothing depends on what it has seen, so that the
    processor need not guess. Only FLOATs do, for their NaN.
    """
    match kind:
        case "min_int":
            return [f"{target} = min({target}, {value})"]
        case "max_int":
            return [f"{target} = max({target}, {value})"]
        case "and_int":
            return [f"{target} &= {value}"]
        case _:
            return take(kind, target, value, seen)


def take(kind: SlotKind, target: str, value: str, seen: str) -> list[str]:
    """Statements that take a value into a slot; `seen` is a condition: it has a value already."""
    match kind:
        case "count" | "count_of":
            return [f"{target} += 1"]
        case "sum_int":
            return [f"{target} += {value}"]
        case _:
            return combine(kind, target, value, seen)


def combine(kind: SlotKind, target: str, value: str, seen: str) -> list[str]:
    """Statements that merge the slot of another partial of the same group into a slot; none for a
    slot in which both have the same.
    """
    match kind:
        case "range":
            return []
        case "count" | "count_of" | "sum_int":
            return [f"{target} += {value}"]
        case "min_int":
            return [f"if not ({seen}) or {value} < {target}:", f"    {target} = {value}"]
        case "max_int":
            return [f"if not ({seen}) or {value} > {target}:", f"    {target} = {value}"]
        case "min_float":  # a NaN gives way to anything
            return [
                f"if not ({seen}) or {value} < {target} or math.isnan({target}):",
                f"    {target} = {value}",
            ]
        case "max_float":  # a NaN stays
            return [
                f"if not ({seen}) or {value} > {target} or math.isnan({value}):",
                f"    {target} = {value}",
            ]
        case "or_int":
            return [f"{target} |= {value}"]
        case "and_int":
            return [f"if {seen}:", f"    {target} &= {value}", "else:", f"    {target} = {value}"]
        case "xor_int":
            return [f"{target} ^= {value}"]


def overflows(target: str, value: str, total: str) -> list[str]:
    """Statements that set `total` to the sum; its last line is the condition that it overflowed."""
    return [f"{total} = {target} + {value}", f"(({target} ^ {total}) & ({value} ^ {total})) < 0"]
