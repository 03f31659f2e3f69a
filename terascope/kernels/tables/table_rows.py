"""Statements about one row of a bounded table: found, started, updated by a tuple.

In: a Shape. Out: lines of a kernel in which `r` is the position of the tuple in its columns, `p`
the place of its group, `table` the words of all places and `floats` the same memory as FLOATs.
"""

from __future__ import annotations

from terascope.hashing import random_hash
from terascope.kernels.tables.slots import Shape, SlotKind, is_float, start, take, takes_argument


def has_value(kind: SlotKind) -> bool:
    """Whether the kernel reads the values of a slot's argument; counting needs the mask alone."""
    return takes_argument(kind) and kind != "count_of"


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
    array = "floats" if is_float(shape.slots[slot]) else "table"
    return f"{array}[p + {shape.slot(slot)}]"


def begun(shape: Shape) -> list[str]:
    words = [f"table[p + {shape.first_word + w}] = w{w}" for w in range(shape.words)]
    return ["table[p + 1] = epoch", *words, *restarted(shape)]


def restarted(shape: Shape) -> list[str]:
    starts = [start(kind, cell(shape, j)) for j, kind in enumerate(shape.slots)]
    return ["table[p] = 1", *starts]


def arguments(shape: Shape) -> list[str]:
    """`m` is 1 where the argument of a slot has a value and 0 where it is NULL."""
    lines = []
    for j, kind in enumerate(shape.slots):
        if takes_argument(kind):
            lines.append(f"m{j} = np.int64(mask{j}[r] != 0)")
        if has_value(kind):
            hidden = f" & -m{j}" if kind == "sum_int" else ""
            lines.append(f"v{j} = value{j}[r]{hidden}")
    return lines


def taken(shape: Shape) -> list[str]:
    lines, seen = ["s = table[p]"], []
    for j, kind in enumerate(shape.slots):
        held, bit = cell(shape, j), 1 + j
        match kind:
            case "count":
                lines.append(f"{held} += 1")
            case "count_of":
                lines.append(f"{held} += m{j}")
            case "sum_int":
                lines.append(f"{held} = t{j}")
            case "range":
                pass
            case _:
                lines.append(f"if m{j} != 0:")
                lines += indented(*take(kind, held, f"v{j}", f"(s >> {bit}) & 1"))
        if takes_argument(kind):
            seen.append(f"(m{j} << {bit})")
    if seen:
        lines.append(f"table[p] = {' | '.join(['s', *seen])}")
    return lines


def indented(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]
