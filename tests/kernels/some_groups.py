"""Groups as plain Python values, for tests: into rows, out of rows, merged by the book."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from terascope.connectors.base import arrow_type
from terascope.functions.aggregates.folding import (
    AND_INT,
    MAX_FLOAT,
    MAX_INT,
    MIN_FLOAT,
    MIN_INT,
    OR_INT,
    XOR_INT,
)
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.kernels.columns.dictionary import Dictionary, dictionary_for
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields, MergedGroups, key_codes
from terascope.kernels.tables.slots import Shape
from terascope.plan.rel import Field
from terascope.types import INT_MAX, INT_MIN, Type, parse_ip

Key: TypeAlias = tuple[Any, ...]
"""The epoch, then the other keys."""
Values: TypeAlias = tuple[Any, ...]
Partial: TypeAlias = tuple[Key, Values]

KEY_VALUES: dict[Type, list[Any]] = {
    Type.LLONG: [None, 0, 1, -1, 70000, INT_MIN, INT_MAX, 65535, 65536],
    Type.STRING: [None, "", "a", "héllo", "a longer text than eight bytes", "\x00"],
    Type.IP: [None, parse_ip("10.0.0.1"), parse_ip("10.0.0.2"), parse_ip("fe80::1")],
    Type.BINARY: [None, b"", b"\xff\x00", b"12345678"],
    Type.FLOAT: [None, 0.0, 1.5, -2.25, math.inf],
    Type.BOOL: [None, True, False],
}
SLOTS: tuple[tuple[SlotKind, ...], ...] = (
    (COUNT, SUM_INT),
    (SUM_INT, COUNT_OF, SUM_INT),
    (MIN_FLOAT, MAX_FLOAT),
    (MIN_INT, MAX_INT),
    (OR_INT, AND_INT, XOR_INT, COUNT),
)
"""All kinds, in few shapes: each has to be compiled."""


@dataclass(frozen=True)
class Case:
    """An aggregation and what workers know of it: a list of partials for each of them."""

    shape: Shape
    types: tuple[Type, ...]
    workers: list[list[Partial]]

    @property
    def fields(self) -> GroupFields:
        keys = (Field("tb", Type.LLONG), *(Field(f"k{i}", t) for i, t in enumerate(self.types)))
        slots = tuple(Field(f"s{i}", slot_type(k)) for i, k in enumerate(self.shape.slots))
        return GroupFields(keys, slots, self.shape, 0)


def slot_type(kind: SlotKind) -> Type:
    return Type.FLOAT if kind.is_float else Type.LLONG


def slot_values(kind: SlotKind) -> st.SearchStrategy[Any]:
    if kind in (COUNT, COUNT_OF):
        return st.integers(0, 2**40)
    if kind.is_float:
        numbers = st.integers(-1000, 1000).map(float)
        return st.none() | numbers | st.sampled_from([math.nan, math.inf])
    return st.none() | st.integers(-(2**60), 2**60) | st.integers(-3, 3)


@st.composite
def cases(draw: st.DrawFn, most_partials: int = 40) -> Case:
    types = tuple(draw(st.lists(st.sampled_from(sorted(KEY_VALUES, key=str)), max_size=3)))
    kinds = draw(st.sampled_from(SLOTS))
    epochs = st.sampled_from([None, 0, 1, -5, 2**40])
    keys = st.tuples(epochs, *(st.sampled_from(KEY_VALUES[t]) for t in types))
    values = st.tuples(*(slot_values(kind) for kind in kinds))
    partials = st.lists(st.tuples(keys, values), max_size=most_partials)
    workers = draw(st.lists(partials, min_size=1, max_size=4))
    return Case(Shape(len(types), kinds), types, workers)


# ---- rows ----------------------------------------------------------------------------------------


def dictionaries_for(types: Iterable[Type]) -> list[Dictionary]:
    return [dictionary_for(type) for type in types]


def blocks_of(
    partials: Sequence[Partial], shape: Shape, dictionaries: Sequence[Dictionary]
) -> list[Block]:
    """Partials as blocks, one for each run of the same epoch."""
    blocks: list[Block] = []
    start = 0
    for i in range(1, len(partials) + 1):
        if i == len(partials) or partials[i][0][0] != partials[start][0][0]:
            some = partials[start:i]
            blocks.append(Block.of(some[0][0][0], rows_of(some, shape, dictionaries)))
            start = i
    return blocks


def rows_of(
    partials: Sequence[Partial], shape: Shape, dictionaries: Sequence[Dictionary]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    rows = np.zeros((len(partials), shape.stride), np.int64)
    floats = rows.view(np.float64)
    rows[:, 0] = 1
    for k, dictionary in enumerate(dictionaries):
        column = pa.array([key[1 + k] for key, _ in partials], arrow_type(dictionary.type))
        codes = dictionary.encode(column).astype(np.int64)
        rows[:, shape.first_word + k // 2] |= codes << (32 if k % 2 == 0 else 0)
    for i, (_, values) in enumerate(partials):
        for j, kind in enumerate(shape.slots):
            if values[j] is not None:
                (floats if kind.is_float else rows)[i, shape.slot(j)] = values[j]
                if kind.takes_argument:
                    rows[i, 0] |= 1 << (1 + j)
    return rows


def partials_of(groups: Iterable[MergedGroups], shape: Shape) -> list[Partial]:
    """Rows as plain values again."""
    found: list[Partial] = []
    for some in groups:
        for block in some.blocks:
            keys = [
                d.values(np.ascontiguousarray(key_codes(block.rows, shape, k))).to_pylist()
                for k, d in enumerate(some.dictionaries)
            ]
            known = block.values(block.epochs).tolist()
            epochs = [None if epoch == NO_EPOCH else epoch for epoch in known]
            for i, row in enumerate(block.rows):
                key = (
                    epochs[i],
                    *(column[i] for column in keys),
                )
                found.append(
                    (key, tuple(slot_value(row, shape, j) for j in range(len(shape.slots))))
                )
    return found


def slot_value(row: np.ndarray[Any, np.dtype[np.int64]], shape: Shape, j: int) -> Any:
    kind = shape.slots[j]
    if kind not in (COUNT, COUNT_OF) and not row[0] >> (1 + j) & 1:
        return None
    word = row[shape.slot(j) : shape.slot(j) + 1]
    return float(word.view(np.float64)[0]) if kind.is_float else int(word[0])


# ---- by the book ---------------------------------------------------------------------------------


def merged(case: Case) -> dict[Key, Values]:
    """Every group once; an integer sum is as large as it is."""
    found: dict[Key, list[Any]] = {}
    for key, values in (partial for worker in case.workers for partial in worker):
        if key not in found:
            found[key] = [0 if k in (COUNT, COUNT_OF) else None for k in case.shape.slots]
        held = found[key]
        for j, kind in enumerate(case.shape.slots):
            if values[j] is not None:
                held[j] = values[j] if held[j] is None else combined(kind, held[j], values[j])
    return {key: tuple(values) for key, values in found.items()}


def combined(kind: SlotKind, left: Any, right: Any) -> Any:
    match kind.name:
        case "count" | "count_of" | "sum_int":
            return left + right
        case "min_int" | "min_float":
            return min(left, right, key=order)
        case "max_int" | "max_float":
            return max(left, right, key=order)
        case "or_int":
            return left | right
        case "and_int":
            return left & right
        case "xor_int":
            return left ^ right
        case "range":
            raise AssertionError("rows of different ranges are not combined")


def order(value: Any) -> tuple[bool, Any]:
    """NaN is the largest number."""
    return (True, 0) if value != value else (False, value)


def overflows(case: Case, groups: dict[Key, Values]) -> bool:
    return any(
        kind == SUM_INT and values[j] is not None and not INT_MIN <= values[j] <= INT_MAX
        for values in groups.values()
        for j, kind in enumerate(case.shape.slots)
    )


def same(found: Values, wanted: Values) -> bool:
    """NaN is NaN."""
    return all(f == w or (f != f and w != w) for f, w in zip(found, wanted, strict=True))
