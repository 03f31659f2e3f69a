"""The slots of a group: what a table keeps for each aggregate, and how its rows are laid out.

In: the kinds of slots of an aggregation (terascope.functions.slots). Out: the layout of its rows.

A row is one run of 64-bit words: [state] [epoch] [key words] [slots]. `state` is 0 for an empty
place; bit 0 says that a group is there, bit 1+j that slot j has seen a value. The epoch stands in
the row only where groups of several epochs share a table (lazy flush). A key word holds two int32
codes, the earlier key in the upper half. FLOAT slots are seen through a float64 view of the same
memory.

Also the statements of all tables about one row: found, started, updated by a tuple. In them `i` is
the position of the tuple in its columns, `entries` the words of all places, `floats` the same
memory as FLOATs, `base` the first word of the group, and `seen` its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from terascope.functions.slots import ANY_STATE, RANGE, SUM_INT, SlotKind
from terascope.kernels.codegen.generated_modules import indent
from terascope.kernels.columns.arrays import Codes, Masks, Rows, Values
from terascope.machine_code import column, output

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

    @property
    def sums(self) -> tuple[int, ...]:
        return tuple(j for j, kind in enumerate(self.slots) if kind == SUM_INT)

    @property
    def states(self) -> tuple[int, ...]:
        """The slots whose word is the number of a state."""
        return tuple(j for j, kind in enumerate(self.slots) if kind.state is not None)

    @property
    def for_kernels(self) -> Shape:
        """The same for kernels, and without anything of a user's that does not travel."""
        kinds = tuple(kind if kind.state is None else ANY_STATE for kind in self.slots)
        return self if not self.states else replace(self, slots=kinds)

    @property
    def with_high_words(self) -> Shape:
        """The same groups with sums of 128 bits: their high words are slots behind all others."""
        return Shape(self.keys, self.slots + (SUM_INT,) * len(self.sums))

    def slot(self, place: int) -> int:
        """The word a slot stands in."""
        return self.first_slot + place

    @property
    def row_bytes(self) -> int:
        return 8 * self.stride


@dataclass(frozen=True)
class TableColumns:
    """The columns of tuples that a table reads: codes of keys, values and masks of arguments."""

    codes: Sequence[Codes]
    values: Sequence[Values]
    masks: Sequence[Masks]

    def arrays(self, sure: bool) -> tuple[Values, ...]:
        """The arguments of a kernel. `sure`: no argument is NULL, and no sum can overflow."""
        return (*self.codes, *self.values, *(() if sure else self.masks))


def put_keys(rows: Rows, shape: Shape, codes: Iterable[Values]) -> None:
    for k, code in enumerate(codes):
        word = shape.first_word + k // 2
        if k % 2 == 0:
            rows[:, word] = code.astype(np.int64) << 32
        else:
            rows[:, word] |= code.astype(np.uint32)


# ---- in generated kernels ------------------------------------------------------------------------


def column_types(shape: Shape, sure: bool) -> list[Any]:
    """The arguments that are columns: codes, values and, unless `sure`, masks."""
    arguments = [kind for kind in shape.slots if kind.takes_argument]
    return [
        *(column(np.int32) for _ in range(shape.keys)),
        *(value_type(kind) for kind in arguments),
        *(column(np.uint8) for _ in arguments if not sure),
    ]


def value_type(kind: SlotKind) -> Any:
    """The type of the values of an argument. Kernels write the numbers of states."""
    if kind.state is not None:
        return output(np.int64)
    return column(np.float64 if kind.is_float else np.int64)


def column_names(shape: Shape, sure: bool) -> str:
    """Their names, each with a comma before it."""
    places = [j for j, kind in enumerate(shape.slots) if kind.takes_argument]
    names = [f"c{k}" for k in range(shape.keys)] + [f"v{j}" for j in places]
    names += [] if sure else [f"m{j}" for j in places]
    return "".join(f", {name}" for name in names)


def word(place: int, base: str = "base") -> str:
    """A word of a row. All indices are unsigned: with signed ones every access first tests whether
    the index counts from the end, which takes a third of the time.
    """
    return f"[{base} + np.uint64({place})]"


def view(kind: SlotKind, ints: str, floats: str) -> str:
    return floats if kind.is_float else ints


def target(shape: Shape, j: int) -> str:
    return f"{view(shape.slots[j], 'entries', 'floats')}{word(shape.slot(j))}"


def load_words(shape: Shape) -> list[str]:
    """Key k stands in word k // 2: in its upper half when k is even, else in its lower."""
    lines = []
    for w in range(shape.words):
        text = f"np.int64(c{2 * w}[i]) << 32"
        if 2 * w + 1 < shape.keys:
            text = f"({text}) | np.int64(np.uint32(c{2 * w + 1}[i]))"
        lines.append(f"w{w} = {text}")
    return lines


def new_words(shape: Shape) -> list[str]:
    return [f"entries{word(shape.first_word + w)} = w{w}" for w in range(shape.words)]


def same_words(shape: Shape, base: str = "base") -> str:
    tests = [f"entries{word(shape.first_word + w, base)} == w{w}" for w in range(shape.words)]
    return " and ".join(tests) or "True"


def zero_slots(shape: Shape) -> list[str]:
    return [f"entries{word(place)} = 0" for place in range(shape.first_slot, shape.stride)]


def new_slots(shape: Shape, sure: bool) -> list[str]:
    """The slots of a new group in memory that is zero."""
    starts = [kind.start if sure else 0 for kind in shape.slots]
    return [f"entries{word(shape.slot(j))} = {n}" for j, n in enumerate(starts) if n]


def update_slots(shape: Shape, sure: bool, overflow: Sequence[str]) -> list[str]:
    """Take a tuple into its group; one that was just made has the state 1. `sure`: every argument
    has a value, and no sum overflows. `overflow`: what is done before a sum would overflow; sums
    are tried first.
    """
    if sure:
        return sure_slots(shape)
    lines, tests = [], []
    for j in shape.sums:
        total, test = overflows(target(shape, j), f"v{j}[i]", f"s{j}")
        lines.append(total)
        tests.append(f"m{j}[i] != 0 and {test}")
    if tests:
        lines += [f"if {' or '.join(tests)}:", *indent(overflow)]
    for j, kind in enumerate(shape.slots):
        taken = [f"{target(shape, j)} = s{j}"]
        if kind != SUM_INT:
            taken = kind.update(target(shape, j), f"v{j}[i]", f"(seen >> {j + 1}) & 1 != 0")
        if kind.takes_argument:  # nothing happens for NULL
            taken = [f"if m{j}[i] != 0:", *indent([*taken, f"seen |= {1 << (j + 1)}"])]
        lines += taken
    return [*lines, "entries[base] = seen"]


def sure_slots(shape: Shape) -> list[str]:
    lines: list[str] = []
    everything = 1
    for j, kind in enumerate(shape.slots):
        lines += kind.update_started(target(shape, j), f"v{j}[i]", "seen != 1")
        everything |= (1 << (j + 1)) if kind.takes_argument else 0
    return [*lines, "if seen == 1:", f"    entries[base] = np.int64({everything})"]


def overflows(target: str, value: str, total: str) -> tuple[str, str]:
    """The statement that sets `total` to the sum, and the condition that it overflowed."""
    return f"{total} = {target} + {value}", f"(({target} ^ {total}) & ({value} ^ {total})) < 0"
