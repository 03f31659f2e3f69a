"""The slots of a group: what a table keeps for each aggregate, and how its rows are laid out.

In: the kinds of slots of an aggregation (terascope.functions.slots). Out: the layout of its rows.

A row is one run of 64-bit words: [state] [epoch] [key words] [slots]. `state` is 0 for an empty
place; bit 0 says that a group is there, bit 1+j that slot j has seen a value. The epoch stands in
the row only where groups of several epochs share a table (lazy flush). A key word holds two int32
codes, the earlier key in the upper half. FLOAT slots are seen through a float64 view of the same
memory.

Of a bounded table also the statements about one row: found, started, updated by a tuple. In them
`r` is the position of the tuple in its columns, `p` the place of its group, `table` the words of
all places and `floats` the same memory as FLOATs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from terascope.functions.slots import COUNT, COUNT_OF, RANGE, SUM_INT, SlotKind
from terascope.hashing import random_hash
from terascope.kernels.codegen.generated_modules import indent
from terascope.kernels.columns.arrays import Rows, Values

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
        """The slots that are sums of integers."""
        return tuple(j for j, kind in enumerate(self.slots) if kind == SUM_INT)

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


def put_keys(rows: Rows, shape: Shape, codes: Iterable[Values]) -> None:
    """Write the codes of keys into the key words of rows."""
    for k, code in enumerate(codes):
        word = shape.first_word + k // 2
        if k % 2 == 0:
            rows[:, word] = code.astype(np.int64) << 32
        else:
            rows[:, word] |= code


def view(kind: SlotKind, ints: str, floats: str) -> str:
    return floats if kind.is_float else ints


def overflows(target: str, value: str, total: str) -> list[str]:
    """Statements that set `total` to the sum; its last line is the condition that it overflowed."""
    return [f"{total} = {target} + {value}", f"(({target} ^ {total}) & ({value} ^ {total})) < 0"]


def packed(shape: Shape) -> list[str]:
    """Key k stands in word k // 2: in its upper half when k is even, else in its lower."""
    lines = []
    for word in range(shape.words):
        line = f"w{word} = np.int64(c{2 * word}[r]) << 32"
        if 2 * word + 1 < shape.keys:
            line += f" | np.int64(np.uint32(c{2 * word + 1}[r]))"
        lines.append(line)
    return lines


def hashed(shape: Shape) -> list[str]:
    """The upper half of `h` says the place."""
    words = [f"np.uint64({word})" for word in shape.word_names]
    if shape.keys % 2:  # an empty lower half would leave half of the product empty
        words[-1] = f"({words[-1]} >> np.uint64(32))"
    return random_hash(words)


def is_here(shape: Shape) -> str:
    """The condition that a tuple's group stands at place `AT`. The epoch belongs to the group, so
    that a late tuple finds the old group it belongs to, and a new one does not.
    """
    words = [f"table[AT + {shape.first_word + w}] == w{w}" for w in range(shape.words)]
    return " and ".join([*words, "table[AT + 1] == epoch", "table[AT] != 0"])


def cell(shape: Shape, slot: int) -> str:
    return f"{view(shape.slots[slot], 'table', 'floats')}[p + {shape.slot(slot)}]"


def begun(shape: Shape) -> list[str]:
    words = [f"table[p + {shape.first_word + w}] = w{w}" for w in range(shape.words)]
    return ["table[p + 1] = epoch", *words, *restarted(shape)]


def restarted(shape: Shape) -> list[str]:
    starts = [
        f"{cell(shape, j)} = {'0.0' if kind.is_float else '0'}"
        for j, kind in enumerate(shape.slots)
    ]
    return ["table[p] = 1", *starts]


def arguments(shape: Shape) -> list[str]:
    """`n` is 1 where the argument of a slot has a value and 0 where it is NULL."""
    lines = []
    for j, kind in enumerate(shape.slots):
        if kind.takes_argument:
            lines.append(f"n{j} = np.int64(m{j}[r] != 0)")
        if kind.reads_value:
            hidden = f" & -n{j}" if kind == SUM_INT else ""
            lines.append(f"a{j} = v{j}[r]{hidden}")
    return lines


def taken(shape: Shape) -> list[str]:
    lines, seen = ["s = table[p]"], []
    for j, kind in enumerate(shape.slots):
        held, bit = cell(shape, j), 1 + j
        if kind == COUNT:
            lines.append(f"{held} += 1")
        elif kind == COUNT_OF:
            lines.append(f"{held} += n{j}")
        elif kind == SUM_INT:
            lines.append(f"{held} = t{j}")
        elif kind != RANGE:
            lines.append(f"if n{j} != 0:")
            lines += indent(kind.update(held, f"a{j}", f"(s >> {bit}) & 1"))
        if kind.takes_argument:
            seen.append(f"(n{j} << {bit})")
    if seen:
        lines.append(f"table[p] = {' | '.join(['s', *seen])}")
    return lines
