"""The machine code of open tables, written for one shape of row (dissertation 3.4.3).

In: a Shape. Out: its kernels, compiled, each in a module of its own, so that only needed ones are
compiled: tuples into a table, by probing or by computed places, tuples part by part into small
tables, and groups into a table.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.tables.slots import (
    Shape,
    column_names,
    column_types,
    load_words,
    new_slots,
    new_words,
    overflows,
    same_words,
    target,
    update_slots,
    view,
    word,
    zero_slots,
)
from terascope.machine_code import INTEGER, column, output

INTS: Final = output(np.int64)
FLOATS: Final = output(np.float64)
ARGUMENTS: Final = "entries, floats, places, limit, count, rows, begin"
TYPES: Final = (INTS, FLOATS, INTEGER, INTEGER, INTEGER, column(np.int32), INTEGER)
SHIFT: Final = (
    "top = np.uint64(places - 1)",
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
    assert not shape.with_epoch
    find = computed_place(shape, sure) if dense else probed_place(shape, sure)
    body = [
        *([] if dense else SHIFT),
        "for r in range(begin, len(rows)):",
        "    i = np.uint32(rows[r])",
        *indent(find),
        *indent(update_slots(shape, sure, ["return r, count"])),
        "return len(rows), count",
    ]
    widths = shape.keys if dense else 0
    names = "".join(f", b{k}" for k in range(widths)) + column_names(shape, sure)
    types = *TYPES, *(INTEGER,) * widths, *column_types(shape, sure)
    name = "update_dense" if dense else "update_open"
    return GeneratedKernel(f"{name}({ARGUMENTS}{names})", body, *types).compile()


def probed_place(shape: Shape, sure: bool) -> list[str]:
    return [
        *load_words(shape),
        f"at = ({table_hash(shape.word_names)} >> shift) & top",
        "while True:",
        f"    base = at * np.uint64({shape.stride})",
        "    seen = entries[base]",
        "    if seen == 0:",
        "        if count >= limit:",
        "            return r, count",
        "        count += 1",
        "        seen = np.int64(1)",
        *indent(new_words(shape), 2),
        *indent(new_slots(shape, sure), 2),
        "        break",
        f"    if {same_words(shape)}:",
        "        break",
        "    at = (at + np.uint64(1)) & top",
    ]


def computed_place(shape: Shape, sure: bool) -> list[str]:
    place = "np.int64(0)"
    for k in range(shape.keys):
        place = f"(({place} << b{k}) | np.int64(c{k}[i]))"
    return [
        f"base = np.uint64({place}) * np.uint64({shape.stride})",
        "seen = entries[base]",
        "if seen == 0:",
        "    count += 1",
        "    seen = np.int64(1)",
        *indent(new_slots(shape, sure)),
    ]


@cache
def group_kernel(shape: Shape, sure: bool) -> Any:
    """Groups tuples part by part. `places` has the numbers of groups by their hash; groups are made
    one behind the other.
    """
    arguments = "places, entries, floats, edges, begins"
    body = [
        "count = np.int64(0)",
        "for part in range(edges.shape[1] - 1):",
        "    number = np.int64(0)",
        "    for stretch in range(len(edges)):",
        "        number += edges[stretch, part + 1] - edges[stretch, part]",
        "    bits = np.int64(1)",
        "    while (np.int64(1) << bits) < 2 * number:",
        "        bits += 1",
        "    top = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)",
        "    shift = np.uint64(64 - bits)",
        "    first = count",
        "    places[: np.int64(1) << bits] = 0",
        "    for stretch in range(len(edges)):",
        "        end = np.uint64(edges[stretch, part + 1])",
        "        for i in range(np.uint64(edges[stretch, part]), end):",
        *indent(load_words(shape), 3),
        f"            at = ({table_hash(shape.word_names)} >> shift) & top",
        "            while True:",
        "                known = np.int64(places[at])",
        "                if known == 0:",
        "                    places[at] = np.int32(count - first + 1)",
        f"                    base = np.uint64(count) * np.uint64({shape.stride})",
        "                    count += 1",
        "                    seen = np.int64(1)",
        *indent([*new_words(shape), *zero_slots(shape), *new_slots(shape, sure)], 5),
        "                    break",
        f"                base = np.uint64(first + known - 1) * np.uint64({shape.stride})",
        f"                if {same_words(shape)}:",
        "                    seen = entries[base]",
        "                    break",
        "                at = (at + np.uint64(1)) & top",
        *indent(update_slots(shape, sure, ["return np.int64(-1)"]), 3),
        "    begins[0, part + 1] = count",
        "return count",
    ]
    head = output(np.int32), INTS, FLOATS, column(np.int64, 2), output(np.int64, 2)
    name = f"group_parts({arguments}{column_names(shape, sure)})"
    return GeneratedKernel(name, body, *head, *column_types(shape, sure)).compile()


@cache
def insert_kernel(shape: Shape) -> Any:
    """Takes groups in. Only groups whose digits are of the same ranges are combined."""
    keys = [f"w{w} = groups{word(shape.first_word + w, 'own')}" for w in range(shape.words)]
    ranges = [shape.slot(j) for j in shape.ranges]
    same = [same_words(shape), *(f"entries{word(p)} == groups{word(p, 'own')}" for p in ranges)]
    body = [
        *SHIFT,
        "for r in range(number):",
        f"    own = np.uint64(r) * np.uint64({shape.stride})",
        *indent(keys),
        f"    at = ({table_hash(shape.word_names)} >> shift) & top",
        "    while True:",
        f"        base = at * np.uint64({shape.stride})",
        "        if entries[base] == 0:",
        "            count += 1",
        f"            for k in range(np.uint64({shape.stride})):",
        "                entries[base + k] = groups[own + k]",
        "            break",
        f"        if {' and '.join(same)}:",
        *indent(combine_slots(shape), 3),
        "            break",
        "        at = (at + np.uint64(1)) & top",
        "return count",
    ]
    arguments = "entries, floats, places, count, groups, fgroups, number"
    types = INTS, FLOATS, INTEGER, INTEGER, column(np.int64), column(np.float64), INTEGER
    return GeneratedKernel(f"insert({arguments})", body, *types).compile()


def combine_slots(shape: Shape) -> list[str]:
    lines = ["seen, other = entries[base], groups[own]"]
    for j in shape.sums:
        total, test = overflows(target(shape, j), f"groups{word(shape.slot(j), 'own')}", f"s{j}")
        lines += [total, f"if {test}:", "    return np.int64(-1)"]
    for j, kind in enumerate(shape.slots):
        value = f"{view(kind, 'groups', 'fgroups')}{word(shape.slot(j), 'own')}"
        merged = kind.merging(target(shape, j), value, f"(seen >> {j + 1}) & 1 != 0")
        if kind.takes_argument and merged:
            merged = [f"if (other >> {j + 1}) & 1 != 0:", *indent(merged)]
        lines += merged
    return [*lines, "entries[base] = seen | other"]
