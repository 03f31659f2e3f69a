"""Values of whole columns of states of FIRST, LAST, MIN and MAX.

In: a column of packed states (terascope.sketches.extremes). Out: the value of each, numbers as an
array, text and bytes as parts of the packed bytes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from terascope.machine_code import column, compiled_for, inlined, output
from terascope.sketches.extremes import FIXED, NUMBERED
from terascope.sketches.packed_form import HEADER, VERSION, word_at
from terascope.sketches.smallest_bytes import NOTHING as EMPTY_STATE
from terascope.sketches.smallest_bytes import VALUED, VARIANTS
from terascope.sketches.state_values import FOUND, NOTHING, REST, Marks, opened
from terascope.sketches.value_forms import FORM_BITS, ValueForm, read_words, values_of_words
from terascope.sketches.values import copy_parts

NO_FORM: Final = -1
"""No state has a value."""
UNKNOWN: Final = -2
"""Some states are damaged, or have values of different forms."""
FORMS: Final = len(ValueForm)


def extreme_column(packed: pa.Array) -> pa.Array | None:
    """The values of a column of states of any of the four aggregates; NULL where a state is NULL or
    has seen nothing. None: one of the states is damaged.
    """
    offsets, data, marks = opened(packed)
    begins, ends = np.zeros(len(marks), np.int64), np.zeros(len(marks), np.int64)
    form = locate_extremes(offsets, data, marks, begins, ends)
    if form == UNKNOWN:
        return None
    if form == NO_FORM:
        return pa.nulls(len(marks))
    if not ValueForm(form).is_word:
        return runs_column(ValueForm(form), data, begins, ends, marks)
    found = marks == FOUND
    words = np.zeros(len(marks), np.int64)
    words[found] = read_words(begins[found], data)
    values = values_of_words(ValueForm(form), words)
    if found.all():
        return values
    return pa.Array.from_buffers(values.type, len(values), [validity(marks), values.buffers()[1]])


def validity(marks: Marks) -> Any:
    """The bits of a column of Arrow that say where it is not NULL."""
    return pa.array(marks == FOUND).buffers()[1]


def runs_column(
    form: ValueForm, data: Any, begins: Any, ends: Any, marks: Marks
) -> pa.Array | None:
    """Runs of bytes as a column; None when text is not in UTF-8."""
    places = np.zeros(len(marks) + 1, np.int64)
    np.cumsum(ends - begins, out=places[1:])
    content = np.empty(places[-1], np.uint8)
    copy_parts(begins, places, data, content)
    buffers = [validity(marks), pa.py_buffer(places), pa.py_buffer(content)]
    values = pa.Array.from_buffers(pa.large_binary(), len(marks), buffers)
    if form is not ValueForm.TEXT:
        return values
    try:
        return values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


# ---- kernels -------------------------------------------------------------------------------------


@inlined
def value_begin(data: Any, at: Any, size: Any) -> Any:
    """Where the value of a state that has one begins; -1 when its parts do not fill it."""
    if data[at + 1] == 69:  # E
        right = size >= VALUED and word_at(data, at + 4, 4) == np.uint64(size - VALUED)
        return at + VALUED if right else np.int64(-1)
    if size < FIXED:
        return np.int64(-1)
    interface = np.int64(word_at(data, at + 4, 2))
    value = size - FIXED - interface
    if value < 0 or np.uint64(value & 0xFFFF) != word_at(data, at + 6, 2):
        return np.int64(-1)
    if data[at + 3] & NUMBERED and interface != 8:
        return np.int64(-1)
    return at + FIXED + interface


@compiled_for(
    column(np.int64), column(np.uint8), output(np.uint8), output(np.int64), output(np.int64)
)
def locate_extremes(offsets: Any, data: Any, marks: Any, begins: Any, ends: Any) -> Any:
    """Where the value of each state begins and ends. Returns the form of all values."""
    common = np.int64(NO_FORM)
    for i in range(len(marks)):
        if marks[i] != REST:
            continue
        at, size = offsets[i], offsets[i + 1] - offsets[i]
        if size < HEADER or data[at] != 84 or data[at + 2] != VERSION:
            return np.int64(UNKNOWN)
        if (data[at + 1] != 69 and data[at + 1] != 80) or data[at + 3] >= VARIANTS:  # E, P
            return np.int64(UNKNOWN)
        if data[at + 3] & EMPTY_STATE:
            marks[i] = NOTHING
            continue
        form, begin = np.int64(data[at + 3] & FORM_BITS), value_begin(data, at, size)
        if common == NO_FORM:
            common = form
        if begin < 0 or form >= FORMS or form != common:
            return np.int64(UNKNOWN)
        if form < 3 and at + size - begin != 8:
            return np.int64(UNKNOWN)
        marks[i] = FOUND
        begins[i], ends[i] = begin, at + size
    return common
