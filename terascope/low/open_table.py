"""The table of a batch run: open addressing, every group kept while there is room.

In: tuples as codes and values. Out: groups, as rows of a Shape. Unlike the bounded tables
(bounded_tables.py) it evicts nobody: it grows up to its share of the memory and is emptied whole
when that is used up, so that most groups leave it complete. Where the codes of the keys are few
enough a group's place is computed from them, without any probing (`dense`). docs/decisions.md has
the figures that led here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.low.dictionary import Codes, Ints, Masks
from terascope.low.kernels import INTEGER, column, compile_for, compiled, load_module, output
from terascope.low.slots import Shape, combine, is_float, overflows, take, takes_argument

Rows: TypeAlias = NDArray[np.int64]
"""Groups: one row each, as the Shape lays it out."""
Values: TypeAlias = NDArray[Any]
Emit: TypeAlias = Callable[[Rows], None]

FIRST_PLACES: Final = 1 << 10
DENSE_PLACES: Final = 1 << 16
"""Beyond this a computed place is no longer near enough."""


class OpenTable:
    """The groups of one aggregation."""

    def __init__(self, shape: Shape, max_bytes: int) -> None:
        self.shape = shape
        self._most_places = max(FIRST_PLACES, power_below(max_bytes // shape.row_bytes))
        self._widths: tuple[int, ...] | None = None
        self._reset(FIRST_PLACES)

    def _reset(self, places: int) -> None:
        self._entries: Ints = np.zeros(places * self.shape.stride, np.int64)
        self._floats = self._entries.view(np.float64)
        self._places = places
        self.count = 0

    @property
    def memory_bytes(self) -> int:
        return self._entries.nbytes

    def add(
        self,
        rows: Codes,
        codes: Sequence[Codes],
        sizes: Sequence[int],
        values: Sequence[Values],
        masks: Sequence[Masks] | None,
        emit: Emit,
    ) -> None:
        """Take the tuples `rows` of a batch. `sizes`: how many codes each key has by now.

        No masks: no argument is NULL, and no sum can overflow, which is faster.
        """
        widths = dense_widths(sizes)
        if widths is not None and (self._widths is not None or self.count == 0):
            if widths != self._widths:
                self._become_dense(widths, emit)
            self._add(widths, rows, codes, values, masks, emit)
            return
        if self._widths is not None:
            self._become_open(emit)
        self._add((), rows, codes, values, masks, emit)

    def _add(
        self,
        widths: tuple[int, ...],
        rows: Codes,
        codes: Sequence[Codes],
        values: Sequence[Values],
        masks: Sequence[Masks] | None,
        emit: Emit,
    ) -> None:
        kernels = table_kernels(self.shape, masks is None)
        update = kernels.dense if self._widths is not None else kernels.open
        at = 0
        while True:
            limit = self._places if self._widths is not None else self._places * 5 // 8
            at, self.count = update(
                self._entries, self._floats, self._places, limit, self.count,
                rows, at, *widths, *codes, *values, *(masks or ()),
            )  # fmt: skip
            if at == len(rows):
                return
            if self._widths is None and self.count >= limit and self._places < self._most_places:
                self._grow()
            else:  # no more room, or a sum that would overflow: what is there goes up
                emit(self.take())

    def shrink(self) -> None:
        """As small as at the beginning; for a table that is empty."""
        self._widths = None
        self._reset(FIRST_PLACES)

    def _grow(self) -> None:
        groups = self.take()
        self._reset(4 * self._places if 4 * self._places <= self._most_places else 2 * self._places)
        self.insert(groups)

    def insert(self, groups: Rows) -> bool:
        """Take other groups of the same shape in; FALSE when a sum overflows, half-way then."""
        flat = groups.ravel()
        count = table_kernels(self.shape, True).insert(
            self._entries, self._floats, self._places, self.count,
            flat, flat.view(np.float64), len(groups),
        )  # fmt: skip
        self.count = max(0, count)
        return bool(count >= 0)

    @staticmethod
    def for_groups(shape: Shape, number: int) -> OpenTable:
        """A table with room for that many groups."""
        table = OpenTable(shape, 0)
        table._reset(max(FIRST_PLACES, 1 << (2 * number - 1).bit_length()))
        return table

    def _become_dense(self, widths: tuple[int, ...], emit: Emit) -> None:
        if self.count:
            emit(self.take())
        self._widths = widths
        self._reset(1 << sum(widths))

    def _become_open(self, emit: Emit) -> None:
        groups = self.take()
        self._widths = None
        places = FIRST_PLACES
        while places < 4 * len(groups) and places < self._most_places:
            places *= 2
        self._reset(places)
        if len(groups) * 2 > places:
            emit(groups)
        else:
            self.insert(groups)

    def take(self) -> Rows:
        """All groups; the table is empty then."""
        groups = np.empty((self.count, self.shape.stride), np.int64)
        places = np.empty(self.count if self._widths is not None else 0, np.int64)
        drain(self._entries, self.shape.stride, groups, places)
        if self._widths is not None:
            self._write_keys(groups, places)
        self.count = 0
        return groups

    def _write_keys(self, groups: Rows, places: Ints) -> None:
        """The keys of a dense table are its places."""
        assert self._widths is not None
        shift = 0
        codes: list[Ints] = []
        for width in reversed(self._widths):
            codes.append((places >> shift) & ((1 << width) - 1))
            shift += width
        codes.reverse()
        for word in range(self.shape.words):
            upper = codes[2 * word] << 32
            lower = codes[2 * word + 1] if 2 * word + 1 < len(codes) else 0
            groups[:, self.shape.first_word + word] = upper | lower


def merge_groups(shape: Shape, parts: Sequence[Rows]) -> Rows | None:
    """The groups of several tables, each once; None when a 64-bit sum overflows."""
    table = OpenTable.for_groups(shape, sum(len(rows) for rows in parts))
    if all(table.insert(rows) for rows in parts):
        return table.take()
    return None


def dense_widths(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Bits for each key, when all of them together are few; None else."""
    widths = tuple(max(1, (size - 1).bit_length()) for size in sizes)
    return widths if 1 << sum(widths) <= DENSE_PLACES else None


def power_below(number: int) -> int:
    return 1 << max(0, number.bit_length() - 1)


@compiled(output(np.int64), INTEGER, output(np.int64, 2), output(np.int64))
def drain(entries: Ints, stride: int, groups: Rows, places: Ints) -> None:
    """Move all groups out of a table, in one pass; where they stood, if somebody asks."""
    found = 0
    for base in range(0, len(entries), stride):
        if entries[base] != 0:
            for k in range(stride):
                groups[found, k] = entries[base + k]
                entries[base + k] = 0
            if len(places) != 0:
                places[found] = base // stride
            found += 1


@dataclass(frozen=True)
class Kernels:
    """The machine code of a shape."""

    open: Any
    dense: Any
    insert: Any


@cache
def table_kernels(shape: Shape, sure: bool) -> Kernels:
    """Compiled; `sure` that there is neither a NULL nor an overflow, or not."""
    module = load_module(table_source(shape, sure))
    ints, floats = output(np.int64), output(np.float64)
    head = (ints, floats, INTEGER, INTEGER, INTEGER, column(np.int32), INTEGER)
    columns = column_types(shape, sure)
    widths = (INTEGER,) * shape.keys
    groups = (column(np.int64), column(np.float64), INTEGER)
    return Kernels(
        compile_for(module.update_open, *head, *columns),
        compile_for(module.update_dense, *head, *widths, *columns),
        compile_for(module.insert, ints, floats, INTEGER, INTEGER, *groups),
    )


def column_types(shape: Shape, sure: bool) -> list[Any]:
    """The arguments that are columns: codes, values and, if need be, masks."""
    arguments = [kind for kind in shape.slots if takes_argument(kind)]
    return [
        *(column(np.int32) for _ in range(shape.keys)),
        *(column(np.float64 if is_float(kind) else np.int64) for kind in arguments),
        *(column(np.uint8) for _ in arguments if not sure),
    ]


def column_names(shape: Shape, sure: bool) -> str:
    """Their names, each with a comma before it."""
    places = [j for j, kind in enumerate(shape.slots) if takes_argument(kind)]
    names = [f"c{k}" for k in range(shape.keys)] + [f"v{j}" for j in places]
    names += [] if sure else [f"m{j}" for j in places]
    return "".join(f", {name}" for name in names)


# ---- machine code --------------------------------------------------------------------------------


def table_source(shape: Shape, sure: bool) -> str:
    """The three kernels of a shape: update_open, update_dense, insert."""
    assert not shape.with_epoch
    widths = [f"b{k}" for k in range(shape.keys)]
    columns = column_names(shape, sure)
    arguments = "entries, floats, places, limit, count, rows, begin"
    keyed = [
        "top = np.int64(places - 1)",
        f"shift = np.uint64(64 - {bit_count('places')})",
        "for r in range(begin, len(rows)):",
        "    i = rows[r]",
        *indent(load_words(shape), 1),
        f"    at = np.int64(({hashed(shape)}) >> shift) & top",
        "    while True:",
        f"        base = at * {shape.stride}",
        "        state = entries[base]",
        "        if state == 0:",
        "            if count >= limit:",
        "                return r, count",
        "            count += 1",
        "            state = np.int64(1)",
        *(f"            entries[base + {shape.first_word + w}] = w{w}" for w in range(shape.words)),
        "            break",
        f"        if {same_words(shape)}:",
        "            break",
        "        at = (at + 1) & top",
        *indent(update_slots(shape, sure), 1),
        "return len(rows), count",
    ]
    place = "np.int64(0)"
    for k in range(shape.keys):
        place = f"(({place} << b{k}) | np.int64(c{k}[i]))"
    dense = [
        "for r in range(begin, len(rows)):",
        "    i = rows[r]",
        f"    base = {place} * {shape.stride}",
        "    state = entries[base]",
        "    if state == 0:",
        "        count += 1",
        "        state = np.int64(1)",
        *indent(update_slots(shape, sure), 1),
        "return len(rows), count",
    ]
    insert = [
        "top = np.int64(places - 1)",
        f"shift = np.uint64(64 - {bit_count('places')})",
        "for r in range(number):",
        f"    own = r * {shape.stride}",
        *(f"    w{w} = groups[own + {shape.first_word + w}]" for w in range(shape.words)),
        f"    at = np.int64(({hashed(shape)}) >> shift) & top",
        "    while True:",
        f"        base = at * {shape.stride}",
        "        if entries[base] == 0:",
        "            count += 1",
        f"            for k in range({shape.stride}):",
        "                entries[base + k] = groups[own + k]",
        "            break",
        f"        if {same_words(shape)}:",
        *indent(combine_slots(shape), 3),
        "            break",
        "        at = (at + 1) & top",
        "return count",
    ]
    return "\n".join(
        [
            "",
            "",
            BIT_COUNT,
            *function(f"update_open({arguments}{columns})", keyed),
            *function(
                f"update_dense({arguments}{''.join(', ' + w for w in widths)}{columns})", dense
            ),
            *function("insert(entries, floats, places, count, groups, fgroups, number)", insert),
        ]
    )


BIT_COUNT: Final = """
@kernel
def bits_of(places):
    bits = 0
    while (1 << bits) < places:
        bits += 1
    return bits
"""


def bit_count(name: str) -> str:
    return f"bits_of({name})"


def function(signature: str, body: Sequence[str]) -> list[str]:
    return ["", "@kernel", f"def {signature}:", *indent(body, 1), ""]


def indent(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def load_words(shape: Shape) -> list[str]:
    """Two codes a word, the earlier one above."""
    lines = []
    for w in range(shape.words):
        text = f"np.int64(c{2 * w}[i]) << 32"
        if 2 * w + 1 < shape.keys:
            text = f"({text}) | np.int64(c{2 * w + 1}[i])"
        lines.append(f"w{w} = {text}")
    return lines


def hashed(shape: Shape) -> str:
    """Multiplied and folded: the upper bits decide."""
    if shape.words == 0:
        return "np.uint64(0)"
    text = "np.uint64(w0)"
    for w in range(1, shape.words):
        text = f"((({text}) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(w{w}))"
    folded = f"(({text}) ^ (({text}) >> np.uint64(29)))" if shape.words == 1 else text
    return f"({folded}) * np.uint64(0xD6E8FEB86659FD93)"


def same_words(shape: Shape) -> str:
    tests = [f"entries[base + {shape.first_word + w}] == w{w}" for w in range(shape.words)]
    return " and ".join(tests) or "True"


def target(shape: Shape, j: int) -> str:
    array = "floats" if is_float(shape.slots[j]) else "entries"
    return f"{array}[base + {shape.slot(j)}]"


def update_slots(shape: Shape, sure: bool) -> list[str]:
    """Sums are tried first: one that would overflow sends what is there up before it goes on.

    A group that was just made has the state 1.
    """
    if sure:
        return sure_slots(shape)
    lines: list[str] = []
    for j, kind in enumerate(shape.slots):
        if kind == "sum_int":
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
        lines += take(kind, target(shape, j), f"v{j}[i]", "state != 1")
        everything |= (1 << (j + 1)) if takes_argument(kind) else 0
    return [*lines, "if state == 1:", f"    entries[base] = np.int64({everything})"]


def slot_lines(shape: Shape, j: int) -> list[str]:
    kind, seen = shape.slots[j], f"(state >> {j + 1}) & 1 != 0"
    if kind == "sum_int":
        return [f"{target(shape, j)} = s{j}"]
    return take(kind, target(shape, j), f"v{j}[i]", seen)


def guarded(shape: Shape, j: int, lines: list[str]) -> list[str]:
    """Nothing happens for a NULL argument."""
    if not takes_argument(shape.slots[j]):
        return lines
    return [f"if m{j}[i] != 0:", *indent([*lines, f"state |= {1 << (j + 1)}"], 1)]


def combine_slots(shape: Shape) -> list[str]:
    lines = ["state, other = entries[base], groups[own]"]
    for j, kind in enumerate(shape.slots):
        if kind == "sum_int":
            mine, theirs = target(shape, j), f"groups[own + {shape.slot(j)}]"
            *compute, test = overflows(mine, theirs, f"s{j}")
            lines += [*compute, f"if {test}:", "    return np.int64(-1)"]
    for j, kind in enumerate(shape.slots):
        value = f"{'fgroups' if is_float(kind) else 'groups'}[own + {shape.slot(j)}]"
        seen = f"(state >> {j + 1}) & 1 != 0"
        merged = combine(kind, target(shape, j), value, seen)
        if takes_argument(kind):
            merged = [f"if (other >> {j + 1}) & 1 != 0:", *indent(merged, 1)]
        lines += merged
    return [*lines, "entries[base] = state | other"]
