"""The machine code of an open table, written for one shape of row (dissertation 3.4.3).

In: a Shape. Out: its kernels, compiled, each in a module of its own, so that only needed ones are
compiled: tuples into a table, by probing or by computed places, and groups into a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from terascope.functions.slots import SUM_INT
from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import indent, load_module
from terascope.kernels.tables.slots import Shape, overflows, view
from terascope.machine_code import INTEGER, column, compile_for, output

INTS: Final = output(np.int64)
FLOATS: Final = output(np.float64)
ARGUMENTS: Final = "entries, floats, places, limit, count, rows, begin"
TYPES: Final = (INTS, FLOATS, INTEGER, INTEGER, INTEGER, column(np.int32), INTEGER)
SHIFT: Final = (
    "bits = np.int64(0)",
    "while (np.int64(1) << bits) < places:",
    "    bits += 1",
    "shift = np.uint64(64 - bits)",
)
"""The upper bits of a hash are the place."""


@cache
def update_kernel(shape: Shape, sure: bool, dense: bool) -> Any:
    """Takes tuples in; `sure` that there is neither a NULL nor an overflow, or not; `dense`: the
    places of groups are computed from their codes.
    """
    columns = column_types(shape, sure)
    if dense:
        module = load_module(dense_source(shape, sure))
        return compile_for(module.update_dense, *TYPES, *(INTEGER,) * shape.keys, *columns)
    module = load_module(open_source(shape, sure))
    return compile_for(module.update_open, *TYPES, *columns)


@cache
def insert_kernel(shape: Shape) -> Any:
    """Takes groups in."""
    module = load_module(insert_source(shape))
    groups = (column(np.int64), column(np.float64), INTEGER)
    return compile_for(module.insert, INTS, FLOATS, INTEGER, INTEGER, *groups)


def column_types(shape: Shape, sure: bool) -> list[Any]:
    """The arguments that are columns: codes, values and, if need be, masks."""
    arguments = [kind for kind in shape.slots if kind.takes_argument]
    return [
        *(column(np.int32) for _ in range(shape.keys)),
        *(column(np.float64 if kind.is_float else np.int64) for kind in arguments),
        *(column(np.uint8) for _ in arguments if not sure),
    ]


def column_names(shape: Shape, sure: bool) -> str:
    """Their names, each with a comma before it."""
    places = [j for j, kind in enumerate(shape.slots) if kind.takes_argument]
    names = [f"c{k}" for k in range(shape.keys)] + [f"v{j}" for j in places]
    names += [] if sure else [f"m{j}" for j in places]
    return "".join(f", {name}" for name in names)


# ---- texts ---------------------------------------------------------------------------------------


def open_source(shape: Shape, sure: bool) -> str:
    assert not shape.with_epoch
    body = [
        "top = np.uint64(places - 1)",
        *SHIFT,
        "for r in range(begin, len(rows)):",
        "    i = np.uint32(rows[r])",
        *indent(load_words(shape), 1),
        f"    at = ({table_hash(shape.word_names)} >> shift) & top",
        "    while True:",
        f"        base = at * np.uint64({shape.stride})",
        "        state = entries[base]",
        "        if state == 0:",
        "            if count >= limit:",
        "                return r, count",
        "            count += 1",
        "            state = np.int64(1)",
        *indent(new_words(shape), 3),
        *indent(new_slots(shape, sure), 3),
        "            break",
        f"        if {same_words(shape)}:",
        "            break",
        "        at = (at + np.uint64(1)) & top",
        *indent(update_slots(shape, sure), 1),
        "return len(rows), count",
    ]
    signature = f"update_open({ARGUMENTS}{column_names(shape, sure)})"
    return "\n".join(["", "", *function(signature, body)])


def dense_source(shape: Shape, sure: bool) -> str:
    place = "np.int64(0)"
    for k in range(shape.keys):
        place = f"(({place} << b{k}) | np.int64(c{k}[i]))"
    body = [
        "for r in range(begin, len(rows)):",
        "    i = np.uint32(rows[r])",
        f"    base = np.uint64({place}) * np.uint64({shape.stride})",
        "    state = entries[base]",
        "    if state == 0:",
        "        count += 1",
        "        state = np.int64(1)",
        *indent(new_slots(shape, sure), 2),
        *indent(update_slots(shape, sure), 1),
        "return len(rows), count",
    ]
    widths = "".join(f", b{k}" for k in range(shape.keys))
    signature = f"update_dense({ARGUMENTS}{widths}{column_names(shape, sure)})"
    return "\n".join(["", "", *function(signature, body)])


def insert_source(shape: Shape) -> str:
    words = [f"w{w} = groups{word(shape.first_word + w, 'own')}" for w in range(shape.words)]
    body = [
        "top = np.uint64(places - 1)",
        *SHIFT,
        "for r in range(number):",
        f"    own = np.uint64(r) * np.uint64({shape.stride})",
        *indent(words, 1),
        f"    at = ({table_hash(shape.word_names)} >> shift) & top",
        "    while True:",
        f"        base = at * np.uint64({shape.stride})",
        "        if entries[base] == 0:",
        "            count += 1",
        f"            for k in range(np.uint64({shape.stride})):",
        "                entries[base + k] = groups[own + k]",
        "            break",
        f"        if {same_words(shape)}{same_ranges(shape)}:",
        *indent(combine_slots(shape), 3),
        "            break",
        "        at = (at + np.uint64(1)) & top",
        "return count",
    ]
    signature = "insert(entries, floats, places, count, groups, fgroups, number)"
    return "\n".join(["", "", *function(signature, body)])


def function(signature: str, body: Sequence[str]) -> list[str]:
    return ["", "@kernel", f"def {signature}:", *indent(body, 1), ""]


def word(place: int, base: str = "base") -> str:
    """A word of a row. All indices are unsigned: with signed ones every access first tests whether
    the index counts from the end, which takes a third of the time.
    """
    return f"[{base} + np.uint64({place})]"


def new_words(shape: Shape) -> list[str]:
    return [f"entries{word(shape.first_word + w)} = w{w}" for w in range(shape.words)]


def load_words(shape: Shape) -> list[str]:
    """Two codes a word, the earlier one above."""
    lines = []
    for w in range(shape.words):
        text = f"np.int64(c{2 * w}[i]) << 32"
        if 2 * w + 1 < shape.keys:
            text = f"({text}) | np.int64(c{2 * w + 1}[i])"
        lines.append(f"w{w} = {text}")
    return lines


def same_words(shape: Shape) -> str:
    tests = [f"entries{word(shape.first_word + w)} == w{w}" for w in range(shape.words)]
    return " and ".join(tests) or "True"


def same_ranges(shape: Shape) -> str:
    """Groups are combined only if their digits are of the same ranges."""
    places = [word(shape.slot(j)) for j in shape.ranges]
    theirs = [word(shape.slot(j), "own") for j in shape.ranges]
    pairs = zip(places, theirs, strict=True)
    return "".join(f" and entries{mine} == groups{other}" for mine, other in pairs)


def target(shape: Shape, j: int) -> str:
    return f"{view(shape.slots[j], 'entries', 'floats')}{word(shape.slot(j))}"


def update_slots(shape: Shape, sure: bool) -> list[str]:
    """Sums are tried first: one that would overflow sends what is there up before it goes on.

    A group that was just made has the state 1.
    """
    if sure:
        return sure_slots(shape)
    lines: list[str] = []
    for j, kind in enumerate(shape.slots):
        if kind == SUM_INT:
            *compute, test = overflows(target(shape, j), f"v{j}[i]", f"s{j}")
            lines += [*compute, f"if m{j}[i] != 0 and {test}:", "    return r, count"]
    for j in range(len(shape.slots)):
        lines += guarded(shape, j, slot_lines(shape, j))
    return [*lines, "entries[base] = state"]


def sure_slots(shape: Shape) -> list[str]:
    """Every argument has a value, and no sum overflows."""
    lines: list[str] = []
    everything = 1
    for j, kind in enumerate(shape.slots):
        lines += kind.update_started(target(shape, j), f"v{j}[i]", "state != 1")
        everything |= (1 << (j + 1)) if kind.takes_argument else 0
    return [*lines, "if state == 1:", f"    entries[base] = np.int64({everything})"]


def new_slots(shape: Shape, sure: bool) -> list[str]:
    """The slots of a new group in memory that is zero."""
    starts = [kind.start if sure else 0 for kind in shape.slots]
    return [f"entries{word(shape.slot(j))} = {n}" for j, n in enumerate(starts) if n]


def slot_lines(shape: Shape, j: int) -> list[str]:
    kind, seen = shape.slots[j], f"(state >> {j + 1}) & 1 != 0"
    if kind == SUM_INT:
        return [f"{target(shape, j)} = s{j}"]
    return kind.update(target(shape, j), f"v{j}[i]", seen)


def guarded(shape: Shape, j: int, lines: list[str]) -> list[str]:
    """Nothing happens for a NULL argument."""
    if not shape.slots[j].takes_argument:
        return lines
    return [f"if m{j}[i] != 0:", *indent([*lines, f"state |= {1 << (j + 1)}"], 1)]


def combine_slots(shape: Shape) -> list[str]:
    lines = ["state, other = entries[base], groups[own]"]
    for j, kind in enumerate(shape.slots):
        if kind == SUM_INT:
            mine, theirs = target(shape, j), f"groups{word(shape.slot(j), 'own')}"
            *compute, test = overflows(mine, theirs, f"s{j}")
            lines += [*compute, f"if {test}:", "    return np.int64(-1)"]
    for j, kind in enumerate(shape.slots):
        value = f"{view(kind, 'groups', 'fgroups')}{word(shape.slot(j), 'own')}"
        seen = f"(state >> {j + 1}) & 1 != 0"
        merged = kind.merging(target(shape, j), value, seen)
        if kind.takes_argument and merged:
            merged = [f"if (other >> {j + 1}) & 1 != 0:", *indent(merged, 1)]
        lines += merged
    return [*lines, "entries[base] = state | other"]
