"""Columns as text: what a person reads in a terminal, a CSV or a JSON file.

In: Arrow columns in held form (terascope.types). Out: Arrow columns of strings, computed column by
column. An IPv4 address is put together from a table of the 256 octets; IPv6 addresses are written
once for each different one.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from terascope.kernels.columns.arrays import Bytes, Codes, byte_runs
from terascope.machine_code import column as values
from terascope.machine_code import compiled_for, output
from terascope.plan.rel import Field
from terascope.types import INT_MIN, Type, format_ip

LONGEST_IPV4 = len("255.255.255.255")
OCTETS = np.array(
    [int.from_bytes(str(i).encode(), "little") | len(str(i)) << 24 for i in range(256)], np.uint32
)
"""The digits of each octet, the first in the lowest byte, and their number in the highest."""
CSV_SPECIAL = '[",\r\n]'
JSON_SPECIAL = '["\\\\\x00-\x1f\x7f]'


def readable(column: pa.Array, type: Type) -> pa.Array:
    """Addresses as text, raw bytes in hexadecimal, WIDE as the numbers they are; every other column
    as it is.
    """
    if type.is_address:
        return address_text(column)
    if type is Type.WIDE:
        return pc.bit_wise_xor(column, pa.scalar(INT_MIN, pa.int64())).view(pa.uint64())
    return hexadecimal(column) if type is Type.BINARY else column


def readable_fields(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema `readable` gives."""
    return pa.schema([(f.name, readable_type(f.type)) for f in fields])


def readable_table(columns: Sequence[pa.Array], fields: Sequence[Field]) -> pa.Table:
    """Columns in held form as a person reads them."""
    shown = [readable(column, f.type) for column, f in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(shown, schema=readable_fields(fields))


def readable_type(type: Type) -> pa.DataType:
    if type is Type.BOOL:
        return pa.bool_()
    if type.is_integer:
        return pa.int64()
    if type is Type.WIDE:
        return pa.uint64()
    return pa.float64() if type is Type.FLOAT else pa.string()


def address_text(column: pa.Array) -> pa.Array:
    """IP addresses as people write them."""
    given = ipv4_text(column)
    if given.null_count == column.null_count:
        return given
    is_v4 = pc.is_valid(given)
    others = pc.if_else(is_v4, pa.scalar(None, column.type), column).dictionary_encode()
    written = pa.array([format_ip(v) for v in others.dictionary.to_pylist()], pa.string())
    return pc.coalesce(given, written.take(others.indices))


def ipv4_text(column: pa.Array) -> pa.Array:
    """The IPv4 addresses of a column; NULL for everything else."""
    starts, given = byte_runs(column)
    ends = np.zeros(len(column) + 1, np.int32)
    text = np.empty(LONGEST_IPV4 * len(column), np.uint8)
    size = write_ipv4(starts, given, OCTETS, ends, text)
    is_v4 = np.diff(ends) > 0
    if column.null_count:  # what stands under a NULL is none
        is_v4 &= column.is_valid().to_numpy(zero_copy_only=False)
    valid = None if is_v4.all() else pa.py_buffer(np.packbits(is_v4, bitorder="little"))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(text[:size])]
    return pa.Array.from_buffers(pa.string(), len(column), buffers)


@compiled_for(
    values(np.int32), values(np.uint8), values(np.uint32), output(np.int32), output(np.uint8)
)
def write_ipv4(
    starts: Codes,
    given: Bytes,
    octets: NDArray[np.uint32],
    ends: Codes,
    text: Bytes,
) -> int:
    """Digits of one octet after the other; a value of another length has none."""
    at = 0
    for i in range(len(starts) - 1):
        begin = starts[i]
        if starts[i + 1] - begin == 5:
            for place in range(1, 5):
                word = octets[given[begin + place]]
                for _ in range(word >> np.uint32(24)):
                    text[at] = word & np.uint32(0xFF)
                    word >>= np.uint32(8)
                    at += 1
                if place < 4:
                    text[at] = 46
                    at += 1
        ends[i + 1] = at
    return at


def contents(column: pa.Array) -> bytes:
    """The bytes of all values of a binary column without NULLs, one after the other."""
    ends, data = byte_runs(column)
    return data[ends[0] : ends[-1]].tobytes()


def hexadecimal(column: pa.Array) -> pa.Array:
    """Raw bytes, two digits each."""
    present = column.drop_null()
    ends = byte_runs(present)[0].astype(np.int64)
    digits = binascii.hexlify(contents(present))
    buffers = [None, pa.py_buffer((ends - ends[0]) * 2), pa.py_buffer(digits)]
    text = pa.LargeStringArray.from_buffers(len(present), buffers[1], buffers[2]).cast(pa.string())
    if not column.null_count:
        return text
    valid = np.asarray(pc.is_valid(column))
    return text.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def float_text(column: pa.Array) -> pa.Array:
    """FLOATs in the fewest digits that read back as the same number, as Python writes them."""
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    text = pa.array(values.astype("U32"), pa.string())
    return pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string()))


# ---- lines ---------------------------------------------------------------------------------------


def cells_of(column: pa.Array, type: Type, cells: Callable[[pa.Array, Type], pa.Array]) -> pa.Array:
    """The cells of a column; those of a dictionary column are written once for each value."""
    if not pa.types.is_dictionary(column.type):
        return cells(column, type)
    return cells(column.dictionary, type).take(column.indices)


def csv_lines(columns: Sequence[pa.Array], types: Sequence[Type]) -> bytes:
    """Rows as CSV: NULL is an empty cell, an empty text is quoted.

    A lone NULL is quoted too, for many readers pass over empty lines.
    """
    null = "" if len(columns) > 1 else '""'
    cells = [
        pc.fill_null(cells_of(c, t, csv_cells), null) for c, t in zip(columns, types, strict=True)
    ]
    return joined(pc.binary_join_element_wise(*cells, ","), "\n")


def csv_cells(column: pa.Array, type: Type) -> pa.Array:
    if type is Type.FLOAT:
        return float_text(column)
    if type is not Type.STRING:
        return readable(column, type).cast(pa.string())
    special = pc.or_(pc.match_substring_regex(column, CSV_SPECIAL), pc.equal(column, ""))
    return pc.if_else(special, quoted(pc.replace_substring(column, '"', '""')), column)


def csv_header(names: Sequence[str]) -> bytes:
    types = [Type.STRING] * len(names)
    return csv_lines([pa.array([name], pa.string()) for name in names], types)


def json_lines(names: Sequence[str], columns: Sequence[pa.Array], types: Sequence[Type]) -> bytes:
    """Rows as JSON objects, one a line."""
    parts: list[object] = []
    for place, (name, column, type) in enumerate(zip(names, columns, types, strict=True)):
        parts.append(("{" if place == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": ")
        parts.append(pc.fill_null(cells_of(column, type, json_cells), "null"))
    return joined(pc.binary_join_element_wise(*parts, "}", ""), "\n")


def json_cells(column: pa.Array, type: Type) -> pa.Array:
    if type is Type.FLOAT:
        # JSON has neither NaN nor infinities: they are null, as JavaScript writes them.
        finite = pc.fill_null(pc.is_finite(column), False)
        return pc.if_else(finite, float_text(column), pa.scalar(None, pa.string()))
    cells = readable(column, type)
    if cells.type != pa.string():
        return cells.cast(pa.string())
    if type is not Type.STRING:
        return quoted(cells)
    special = pc.match_substring_regex(cells, JSON_SPECIAL)
    if pc.any(special).as_py():
        kinds = cells.dictionary_encode()
        written = [json.dumps(v, ensure_ascii=False) for v in kinds.dictionary.to_pylist()]
        return pa.array(written, pa.string()).take(kinds.indices)
    return quoted(cells)


def quoted(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def joined(lines: pa.Array, end: str) -> bytes:
    """All lines, each with its end, as UTF-8."""
    return contents(pc.binary_join_element_wise(lines, end, "").cast(pa.binary()))
