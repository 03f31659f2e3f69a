"""The values of a group themselves, as columns of states: for aggregates that need them all.

In: values. Out: for each state the list of its values (median, percentile), the list in stream
order (cat_aggr, count_diff and others that depend on it), or the set of its values and the number
of tuples (COUNT DISTINCT, count_dups).

Only the values travel, one block of bytes for each group (terascope.sketches.packed_lists), and not
the tuples. A list that depends on the order has the place of each value beside it: packed states
are merged in any order. The place is clock, interface and position, as FIRST and LAST have it. The
packed state is the header, the number of columns (32 bits), the length of the packed list of each
column (64 bits each), and these lists: the three columns of the place, then the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.machine_code import INTEGER, column, compiled_for, output
from terascope.sketches.base import (
    Argument,
    CodedValues,
    Numbers,
    Packed,
    StateColumn,
    StateKind,
    packed_of,
)
from terascope.sketches.byte_pool import BytePool
from terascope.sketches.extremes import place_columns
from terascope.sketches.murmur import canonical_floats
from terascope.sketches.packed_form import (
    HEADER,
    Data,
    Offsets,
    checked,
    checked_one,
    header_of,
    refusal,
    word_at,
)
from terascope.sketches.packed_lists import number_array, pack_lists, unpack_lists, value_list
from terascope.sketches.value_forms import (
    Held,
    ValueForm,
    form_of,
    read_words,
    words_of,
    write_words,
)
from terascope.sketches.word_lists import WordLists, Words
from terascope.sketches.word_sets import TUPLES, WordSets
from terascope.types import Type

LIST: Final = "V"
LIST_NAME: Final = "a state of values"
ORDERED: Final = "L"
ORDERED_NAME: Final = "a state of values in order"
SET: Final = "U"
SET_NAME: Final = "a state of different values"
COUNTED: Final = 8
"""The bytes of the number of tuples before the values of a set."""
MOST_COLUMNS: Final = 16


def list_kind(type_: Type) -> StateKind:
    """All values of a numeric type."""
    form = form_of(type_)
    made = partial(ValueLists, form)
    return StateKind(f"values({form.name.lower()})", made, made)


def set_kind(type_: Type) -> StateKind:
    """The different values, and the number of tuples."""
    form = form_of(type_)
    made = partial(ValueSets, form)
    return StateKind(f"different values({form.name.lower()})", made, made)


def ordered_kind(types: Sequence[Type]) -> StateKind:
    """All values of some arguments in stream order; behind the arguments comes the place."""
    forms = tuple(map(form_of, types))
    made = partial(OrderedValues, forms)
    names = ", ".join(form.name.lower() for form in forms)
    return StateKind(f"ordered values({names})", made, made)


def numbers_of(state: bytes) -> NDArray[np.generic]:
    """The numbers of a packed list, in any order."""
    return number_array(state, LIST, LIST_NAME)


def set_sizes(state: bytes) -> tuple[int, int]:
    """The number of tuples, and of different values, of a packed set."""
    values = value_list(state, SET, SET_NAME, COUNTED)
    return int.from_bytes(state[16:24], "little"), len(values)


def set_values(state: bytes) -> list[Held]:
    """The different values of a packed set."""
    return value_list(state, SET, SET_NAME, COUNTED)


class ValueLists(StateColumn):
    def __init__(self, form: ValueForm) -> None:
        self._form = form
        self._pool = BytePool()
        self._lists = WordLists()

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        self._lists.append(numbers, words_of(arguments[0], self._pool))

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, words = unpack_lists(packed, self._form, self._pool, LIST, LIST_NAME)
        self._lists.append_lists(numbers, offsets, words)

    def pack(self, numbers: Numbers) -> Packed:
        offsets, words = self._lists.lists(numbers)
        return packed_of(*pack_lists(offsets, words, self._form, self._pool, LIST))

    def drop(self, numbers: Numbers) -> None:
        self._lists.drop(numbers)

    def clear(self) -> None:
        self._lists.clear()
        self._pool.clear()

    @property
    def memory_bytes(self) -> int:
        return self._lists.memory_bytes + self._pool.memory_bytes


class ValueSets(StateColumn):
    """FLOATs that are equal are one value, and so are all NaNs."""

    def __init__(self, form: ValueForm) -> None:
        self._form = form
        self._pool = BytePool()
        self._sets = WordSets()

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        (values,) = arguments
        if self._form is ValueForm.FLOAT:
            assert not isinstance(values, CodedValues)
            words = canonical_floats(values)
        else:
            words = words_of(values, self._pool)
        self._sets.include(numbers, words)
        count_tuples(numbers, TUPLES, self._sets.rows)

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        offsets, words = unpack_lists(packed, self._form, self._pool, SET, SET_NAME, COUNTED)
        starts, data = checked(packed, SET, SET_NAME, len(ValueForm), 0)
        self._sets.reach(numbers)
        self._sets.include(np.repeat(numbers, np.diff(offsets)), words)
        tuples = read_words(starts[:-1] + 16, data)
        np.add.at(self._sets.rows[:, TUPLES], numbers, tuples)

    def pack(self, numbers: Numbers) -> Packed:
        offsets, words = self._sets.sorted_sets(numbers)
        ends, data = pack_lists(offsets, words, self._form, self._pool, SET, COUNTED)
        write_words(self._sets.rows[numbers, TUPLES], ends[:-1] + 16, data)
        return packed_of(ends, data)

    def drop(self, numbers: Numbers) -> None:
        self._sets.drop(numbers)

    def clear(self) -> None:
        self._sets.clear()
        self._pool.clear()

    @property
    def memory_bytes(self) -> int:
        return self._sets.memory_bytes + self._pool.memory_bytes


@compiled_for(column(np.int64), INTEGER, output(np.int64, 2))
def count_tuples(numbers: Numbers, place: int, rows: Words) -> None:
    for i in range(len(numbers)):
        rows[np.uint64(numbers[i]), np.uint64(place)] += 1


# ---- in stream order -----------------------------------------------------------------------------


class OrderedValues(StateColumn):
    """The words of a list are those of its first value (clock, interface, position, arguments),
    then those of the second, and so on.
    """

    def __init__(self, forms: tuple[ValueForm, ...]) -> None:
        self._forms = (ValueForm.INTEGER, ValueForm.TEXT, ValueForm.INTEGER, *forms)
        self._pools = tuple(BytePool() for _ in self._forms)
        self._lists = WordLists()

    def iterate(self, numbers: Numbers, arguments: Sequence[Argument]) -> None:
        count = len(self._forms) - 3
        clocks, interface, positions = place_columns(arguments[count:])
        if not isinstance(interface, CodedValues):
            self._forms = (ValueForm.INTEGER, ValueForm.INTEGER, *self._forms[2:])
        if not len(clocks):
            clocks = np.zeros_like(positions)
        columns = [clocks, words_of(interface, self._pools[1]), positions]
        pairs = zip(arguments[:count], self._pools[3:], strict=True)
        columns += [words_of(value, pool) for value, pool in pairs]
        self._append(numbers, columns)

    def _append(self, numbers: Numbers, columns: Sequence[Words]) -> None:
        self._lists.append(numbers, np.stack(columns, axis=1).ravel(), len(columns))

    def merge(self, numbers: Numbers, packed: Packed) -> None:
        starts, data = checked(packed, ORDERED, ORDERED_NAME, 1, HEADER + 4)
        count = len(self._forms)
        ends = np.zeros((len(packed), count + 1), np.int64)
        wrong = column_ends(starts, data, ends)
        if wrong >= 0:
            state = data[starts[wrong] : starts[wrong + 1]].tobytes()
            raise ValueError(refusal(state, ORDERED, ORDERED_NAME))
        self._lists.reach(numbers)
        seen = np.flatnonzero(ends[:, count] > ends[:, 0])
        columns = []
        lengths = None
        for k, pool in enumerate(self._pools):
            lists = packed_slices(data, ends[seen, k], ends[seen, k + 1])
            form = self._form_of(k, lists)
            offsets, words = unpack_lists(lists, form, pool, LIST, ORDERED_NAME)
            if lengths is not None and (lengths != np.diff(offsets)).any():
                raise ValueError("a state of values in order has columns of different lengths")
            lengths = np.diff(offsets)
            columns.append(words)
        if lengths is not None:
            self._append(np.repeat(numbers[seen], lengths), columns)

    def _form_of(self, place: int, lists: Packed) -> ValueForm:
        """The form of a column; that of interfaces is what the states say."""
        if place == 1 and len(lists):
            first = lists[0].as_py()
            numbered = first[3:4] == bytes((ValueForm.INTEGER,))
            interface = ValueForm.INTEGER if numbered else ValueForm.TEXT
            self._forms = (ValueForm.INTEGER, interface, *self._forms[2:])
        return self._forms[place]

    def pack(self, numbers: Numbers) -> Packed:
        offsets, words = self._lists.lists(numbers)
        count = len(self._forms)
        items = words.reshape(-1, count)
        packed = [
            pack_lists(offsets // count, np.ascontiguousarray(items[:, k]), form, pool, LIST)
            for k, (form, pool) in enumerate(zip(self._forms, self._pools, strict=True))
        ]
        fixed = HEADER + 4 + 8 * count
        ends = np.arange(len(offsets), dtype=np.int64) * fixed
        for starts, _ in packed:
            ends += starts
        data = np.zeros(ends[-1], np.uint8)
        at = ends[:-1].copy()
        header = np.frombuffer(header_of(ORDERED, 0) + count.to_bytes(4, "little"), np.uint8)
        for k, byte in enumerate(header):
            data[at + k] = byte
        to = at + fixed
        for k, (starts, content) in enumerate(packed):
            write_words(np.diff(starts), at + HEADER + 4 + 8 * k, data)
            copy_lists(starts, content, to, data)
            to += np.diff(starts)
        return packed_of(ends, data)

    def drop(self, numbers: Numbers) -> None:
        self._lists.drop(numbers)

    def clear(self) -> None:
        self._lists.clear()
        for pool in self._pools:
            pool.clear()

    @property
    def memory_bytes(self) -> int:
        return self._lists.memory_bytes + sum(pool.memory_bytes for pool in self._pools)


def ordered_rows(state: bytes) -> list[tuple[Held, ...]]:
    """The values of a packed list in stream order: those of all arguments for each tuple."""
    checked_one(state, ORDERED, ORDERED_NAME, 1, HEADER + 4)
    count = int.from_bytes(state[4:8], "little")
    at = HEADER + 4 + 8 * count
    if not 3 <= count <= MOST_COLUMNS or len(state) < at:
        raise ValueError(refusal(state, ORDERED, ORDERED_NAME))
    columns = []
    for k in range(count):
        end = at + int.from_bytes(state[8 + 8 * k : 16 + 8 * k], "little")
        columns.append(value_list(state[at:end], LIST, ORDERED_NAME))
        at = end
    rows = sorted(zip(*columns, strict=True), key=_place)
    return [row[3:] for row in rows]


def _place(row: tuple[Held, ...]) -> tuple[Held, ...]:
    clock, interface, position = row[:3]
    return clock, interface.encode() if isinstance(interface, str) else interface, position


def packed_slices(data: Data, begins: Offsets, ends: Offsets) -> Packed:
    """Parts of some bytes as packed states of their own."""
    offsets = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=offsets[1:])
    content = np.empty(offsets[-1], np.uint8)
    copy_parts(begins, offsets, data, content)
    return packed_of(offsets, content) if len(begins) else pa.array([], pa.large_binary())


@compiled_for(column(np.int64), column(np.int64), column(np.uint8), output(np.uint8))
def copy_parts(begins: Offsets, offsets: Offsets, data: Data, out: Data) -> None:
    for i in range(len(begins)):
        for k in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + k] = data[begins[i] + k]


@compiled_for(column(np.int64), column(np.uint8), column(np.int64), output(np.uint8))
def copy_lists(starts: Offsets, data: Data, places: Offsets, out: Data) -> None:
    """Write data[starts[i] : starts[i + 1]] to out[places[i]:]."""
    for i in range(len(places)):
        for k in range(starts[i + 1] - starts[i]):
            out[places[i] + k] = data[starts[i] + k]


@compiled_for(column(np.int64), column(np.uint8), output(np.int64, 2))
def column_ends(starts: Offsets, data: Data, ends: Offsets) -> int:
    """Where the packed lists of each state begin and end; returns the first state whose lists do
    not fill it, or -1.
    """
    count = ends.shape[1] - 1
    for i in range(len(starts) - 1):
        at, end = starts[i], starts[i + 1]
        if end - at < 8 + 8 * count or word_at(data, at + 4, 4) != np.uint64(count):
            return i
        to = at + 8 + 8 * count
        ends[i, 0] = to
        for k in range(count):
            length = np.int64(word_at(data, at + 8 + 8 * k, 8))
            if length < 0 or length > end - to:
                return i
            to += length
            ends[i, k + 1] = to
        if to != end:
            return i
    return -1
