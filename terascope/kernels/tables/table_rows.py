"""Statements about one row of a bounded table: found, started, updated by a tuple.

In: a Shape. Out: lines of a kernel in which `r` is the position of the tuple in its columns, `p`
the place of its group, `table` the words of all places and `floats` the same memory as FLOATs.
"""

from __future__ import annotations

from terascope.functions.slots import COUNT, COUNT_OF, RANGE, SUM_INT
from terascope.hashing import random_hash
from terascope.kernels.tables.slots import Shape, view


def packed(shape: Shape) -> list[str]:
    """Key k stands in word k // 2: in its upper half when k is even, else in its lower."""
    lines = []
    for word in range(shape.words):
        line = f"w{word} = np.int64(code{2 * word}[r]) << 32"
        if 2 * word + 1 < shape.keys:
            line += f" | np.int64(np.uint32(code{2 * word + 1}[r]))"
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
    """`m` is 1 where the argument of a slot has a value and 0 where it is NULL."""
    lines = []
    for j, kind in enumerate(shape.slots):
        if kind.takes_argument:
            lines.append(f"m{j} = np.int64(mask{j}[r] != 0)")
        if kind.reads_value:
            hidden = f" & -m{j}" if kind == SUM_INT else ""
            lines.append(f"v{j} = value{j}[r]{hidden}")
    return lines


def taken(shape: Shape) -> list[str]:
    lines, seen = ["s = table[p]"], []
    for j, kind in enumerate(shape.slots):
        held, bit = cell(shape, j), 1 + j
        if kind == COUNT:
            lines.append(f"{held} += 1")
        elif kind == COUNT_OF:
            lines.append(f"{held} += m{j}")
        elif kind == SUM_INT:
            lines.append(f"{held} = t{j}")
        elif kind != RANGE:
            lines.append(f"if m{j} != 0:")
            lines += indented(*kind.update(held, f"v{j}", f"(s >> {bit}) & 1"))
        if kind.takes_argument:
            seen.append(f"(m{j} << {bit})")
    if seen:
        lines.append(f"table[p] = {' | '.join(['s', *seen])}")
    return lines


def indented(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]
