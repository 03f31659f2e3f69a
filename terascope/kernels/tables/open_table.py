"""The table of a batch run: open addressing, every group kept while there is room.

In: tuples as codes and values. Out: groups, as rows of a Shape. Unlike the bounded tables
(bounded_tables.py) it evicts nobody: it grows up to its share of the memory and is emptied whole
when that is used up, so that most groups leave it complete. Where the codes of the keys are few
enough a group's place is computed from them, without any probing (`dense`). docs/decisions.md has
the figures that led here. Without machine code (`NumpyTable`) the same groups are made by sorting,
those of each batch by themselves.

The kernels are written for one shape of row, each in a module of its own, so that only needed ones
are compiled (dissertation 3.4.3): tuples into a table, by probing or by computed places, and groups
into a larger table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from terascope.functions.slots import COUNT_OF, RANGE, SUM_INT, SlotKind
from terascope.hashing import table_hash
from terascope.kernels.codegen.generated_modules import GeneratedKernel, indent
from terascope.kernels.columns.arrays import Codes, Flags, Ints, Rows, Values
from terascope.kernels.tables import slots
from terascope.kernels.tables.slots import Shape, TableColumns
from terascope.machine_code import INTEGER, column, compiled_for, output

Emit: TypeAlias = Callable[[Rows], None]

FIRST_PLACES: Final = 1 << 10
DENSE_PLACES: Final = 1 << 16
"""Beyond this a computed place is no longer near enough."""


class OpenTable:
    """The groups of one aggregation."""

    _widths: tuple[int, ...] | None
    """The bits of each key in a computed place; None: places are found by probing."""

    def __init__(self, shape: Shape, max_bytes: int) -> None:
        self.shape = shape
        fitting = (max_bytes // shape.row_bytes).bit_length()
        self._most_places = max(FIRST_PLACES, 1 << max(0, fitting - 1))
        self.shrink()

    def _reset(self, places: int) -> None:
        self._entries: Ints = np.zeros(places * self.shape.stride, np.int64)
        self._floats = self._entries.view(np.float64)
        self._places = places
        self.count = 0

    @property
    def memory_bytes(self) -> int:
        return self._entries.nbytes

    def add(
        self, rows: Codes, columns: TableColumns, sizes: Sequence[int], sure: bool, emit: Emit
    ) -> None:
        """Take the tuples `rows` of a batch. `sizes`: how many codes each key has by now. `sure`:
        no argument is NULL, and no sum can overflow, which is faster.
        """
        widths = dense_widths(sizes)
        if widths is not None and (self._widths is not None or self.count == 0):
            if widths != self._widths:
                if self.count:
                    emit(self.take())
                self._widths = widths
                self._reset(1 << sum(widths))
        elif self._widths is not None:
            self._become_open(emit)
        update = update_kernel(self.shape, sure, self._widths is not None)
        at = 0
        while True:
            limit = self._places if self._widths is not None else self._places * 5 // 8
            at, self.count = update(
                self._entries, self._floats, self._places, limit, self.count,
                rows, at, *(self._widths or ()), *columns.arrays(sure),
            )  # fmt: skip
            if at == len(rows):
                return
            if self._widths is None and self.count >= limit and self._places < self._most_places:
                self._grow()
            else:  # no more room, or a sum that would overflow: what is there goes up
                emit(self.take())

    def shrink(self) -> None:
        """Make an empty table of the initial size."""
        self._widths = None
        self._reset(FIRST_PLACES)

    def _grow(self) -> None:
        groups = self.take()
        self._reset(4 * self._places if 4 * self._places <= self._most_places else 2 * self._places)
        self._insert(groups)

    def _insert(self, groups: Rows) -> None:
        insert_kernel(self.shape)(self._entries, self._places, groups)
        self.count = len(groups)

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
            self._insert(groups)

    def held(self) -> Rows:
        """A copy of all groups, which stay."""
        rows = self._entries.reshape(-1, self.shape.stride)
        return np.asarray(rows[rows[:, 0] != 0])

    def take(self) -> Rows:
        """All groups; the table is empty then."""
        groups = np.empty((self.count, self.shape.stride), np.int64)
        drain(self._entries, self.shape.stride, groups)
        self.count = 0
        return groups


def dense_widths(sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Bits for each key, when all of them together are few; None else."""
    widths = tuple(max(1, (size - 1).bit_length()) for size in sizes)
    return widths if 1 << sum(widths) <= DENSE_PLACES else None


@compiled_for(output(np.int64), INTEGER, output(np.int64, 2))
def drain(entries: Ints, stride: int, groups: Rows) -> None:
    """Move all groups out of a table, in one pass."""
    found = 0
    for base in range(0, len(entries), stride):
        if entries[base] != 0:
            for k in range(stride):
                groups[found, k] = entries[base + k]
                entries[base + k] = 0
            found += 1


# ---- the kernels ---------------------------------------------------------------------------------

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
        *indent(slots.update_slots(shape, sure, ["return r, count"])),
        "return len(rows), count",
    ]
    widths = shape.keys if dense else 0
    names = "".join(f", b{k}" for k in range(widths)) + slots.column_names(shape, sure)
    types = *TYPES, *(INTEGER,) * widths, *slots.column_types(shape, sure)
    name = "update_dense" if dense else "update_open"
    return GeneratedKernel(f"{name}({ARGUMENTS}{names})", body, *types).compile()


def probed_place(shape: Shape, sure: bool) -> list[str]:
    return [
        *slots.load_words(shape),
        f"at = ({table_hash(shape.word_names)} >> shift) & top",
        "while True:",
        f"    base = at * np.uint64({shape.stride})",
        "    seen = entries[base]",
        "    if seen == 0:",
        "        if count >= limit:",
        "            return r, count",
        "        count += 1",
        "        seen = np.int64(1)",
        *indent(slots.new_words(shape), 2),
        *indent(slots.new_slots(shape, sure), 2),
        "        break",
        f"    if {slots.same_words(shape)}:",
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
        *indent([*slots.load_words(shape), *slots.new_words(shape), *slots.new_slots(shape, sure)]),
    ]


@cache
def insert_kernel(shape: Shape) -> Any:
    """Puts groups into a table that has none of them."""
    body = [
        *SHIFT,
        "for r in range(len(groups)):",
        *(f"    w{w} = groups[r, {shape.first_word + w}]" for w in range(shape.words)),
        f"    at = ({table_hash(shape.word_names)} >> shift) & top",
        f"    while entries[at * np.uint64({shape.stride})] != 0:",
        "        at = (at + np.uint64(1)) & top",
        f"    base = at * np.uint64({shape.stride})",
        *(f"    entries{slots.word(k)} = groups[r, {k}]" for k in range(shape.stride)),
    ]
    types = INTS, INTEGER, column(np.int64, 2)
    return GeneratedKernel("insert(entries, places, groups)", body, *types).compile()


# ---- without machine code ------------------------------------------------------------------------


class NumpyTable:
    """Has the interface of OpenTable, and keeps nothing from batch to batch."""

    memory_bytes = 0
    count = 0

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def add(
        self, rows: Codes, columns: TableColumns, sizes: Sequence[int], sure: bool, emit: Emit
    ) -> None:
        """Every batch gives its groups at once; a sum that overflows is cut into several."""
        del sizes
        parts = len(rows) if not sure and self._may_overflow(rows, columns) else 1
        for part in np.array_split(rows, parts):
            emit(self._groups(part, columns))

    def _may_overflow(self, rows: Codes, columns: TableColumns) -> bool:
        arguments = [kind for kind in self.shape.slots if kind.takes_argument]
        for kind, vector, mask in zip(arguments, columns.values, columns.masks, strict=True):
            if kind == SUM_INT:
                total = np.abs(vector[rows].astype(np.float64) * (mask[rows] != 0)).sum()
                if total > 9.2e18:
                    return True
        return False

    def _groups(self, rows: Codes, columns: TableColumns) -> Rows:
        keys = [c[rows] for c in columns.codes]
        order = np.lexsort(keys[::-1]) if keys else np.arange(len(rows))
        changed = np.zeros(len(rows), np.bool_)
        changed[:1] = True
        for key in keys:
            changed[1:] |= np.diff(key[order]) != 0
        return grouped(self.shape, rows[order], np.flatnonzero(changed), columns)

    def held(self) -> Rows:
        return self.take()

    def take(self) -> Rows:
        return np.zeros((0, self.shape.stride), np.int64)


def grouped(shape: Shape, rows: Codes, starts: NDArray[np.intp], columns: TableColumns) -> Rows:
    """The groups of the tuples `rows`, those of a group beside each other. `starts`: where each
    group begins.
    """
    groups = np.zeros((len(starts), shape.stride), np.int64)
    groups[:, 0] = 1
    slots.put_keys(groups, shape, (code[rows[starts]] for code in columns.codes))
    arguments = zip(columns.values, columns.masks, strict=True)
    for j, kind in enumerate(shape.slots):
        target = groups[:, shape.slot(j)]
        if not kind.takes_argument:
            target[:] = np.diff(np.append(starts, len(rows)))
            continue
        vector, mask = next(arguments)
        valid = mask[rows] != 0
        seen = np.add.reduceat(valid, starts) if len(starts) else np.zeros(0, np.int64)
        groups[:, 0] |= (seen > 0).astype(np.int64) << (j + 1)
        if kind.state is not None:
            target[:] = numbered(vector, rows, starts, seen > 0)
            continue
        result = np.where(seen > 0, reduced(kind, vector[rows], valid, starts), 0)
        target[:] = result.astype(np.float64).view(np.int64) if kind.is_float else result
    return groups


def numbered(
    numbers: Values, rows: Codes, starts: NDArray[np.intp], seen: NDArray[np.bool_]
) -> Values:
    """Number the states of groups, and their tuples; see terascope.functions.slots.NUMBERED."""
    own = np.where(seen, int(numbers[-1]) + np.cumsum(seen) - 1, 0)
    numbers[rows] = np.repeat(own, np.diff(np.append(starts, len(rows))))
    numbers[-1] += np.count_nonzero(seen)
    return own


def reduced(kind: SlotKind, vector: Values, valid: Flags, starts: NDArray[np.intp]) -> Values:
    """One value for each group; of a group without values, anything."""
    if kind == COUNT_OF:
        return np.add.reduceat(valid.astype(np.int64), starts)
    if kind == RANGE:  # tuples of different ranges are in different groups
        return vector[starts]
    if kind == SUM_INT:
        return np.add.reduceat(np.where(valid, vector, 0), starts)
    values = np.where(valid, vector, kind.identity)
    if kind.numpy:
        return np.asarray(getattr(np, kind.numpy).reduceat(values, starts))
    folded = np.frompyfunc(operation(kind), 2, 1).reduceat(values.astype(object), starts)
    return np.asarray(folded, np.float64 if kind.is_float else np.int64)


def operation(kind: SlotKind) -> Callable[[Any, Any], Any]:
    """The operation of a fold on two values, from the statements of its kernels."""
    lines = kind.merging("slot", "value", "True")
    scope: dict[str, Any] = {"np": np, "math": math}
    exec("\n    ".join(["def fold(slot, value):", *lines, "return slot"]), scope)
    fold: Callable[[Any, Any], Any] = scope["fold"]
    return fold
