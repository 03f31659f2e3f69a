"""Functions on text: STRING, or BINARY such as a packet's payload.

Two STRINGs are compared character by character. As soon as one side is BINARY both are compared as
bytes, STRING in UTF-8. Results that are text are STRING; bytes become one character each (latin-1).
"""

from __future__ import annotations

import hashlib
import operator
import re
import zlib
from typing import Final

from terascope.functions.casts import parse_integer
from terascope.functions.roles import TextTest
from terascope.functions.signatures import INTEGER, TEXT, builtin
from terascope.functions.spark_form import SparkArguments, SparkColumn
from terascope.functions.values import Text, as_bytes, as_text, whole
from terascope.types import Type, parse_ip

FURTHEST: Final = 10**9
"""No text is longer; positions beyond are cut to this so that they fit Spark's 32-bit arguments."""


def _alike(left: Text, right: Text) -> tuple[str, str] | tuple[bytes, bytes]:
    """Both as characters or both as bytes."""
    if isinstance(left, str) and isinstance(right, str):
        return left, right
    return as_bytes(left), as_bytes(right)


@builtin(
    TEXT, TEXT, returns=Type.BOOL, cost_ns=20, payload_ns=20, role=TextTest("start"),
    spark=lambda call: call.F.startswith(*call.unified),
)  # fmt: skip
def str_match_start(value: Text, prefix: Text) -> bool:
    """Whether the text begins with another."""
    left, right = _alike(value, prefix)
    return left[: len(right)] == right


@builtin(
    TEXT, TEXT, returns=Type.BOOL, cost_ns=100, payload_ns=150, role=TextTest("contained"),
    spark=lambda call: call.F.contains(*call.unified),
)  # fmt: skip
def str_exists_substr(value: Text, part: Text) -> bool:
    """Whether the text contains another."""
    if isinstance(value, str) and isinstance(part, str):
        return part in value
    return as_bytes(part) in as_bytes(value)


@builtin(
    TEXT, TEXT, returns=Type.BOOL, cost_ns=20, payload_ns=20, role=TextTest("equal"),
    spark=lambda call: operator.eq(*call.unified),
)  # fmt: skip
def str_compare(left: Text, right: Text) -> bool:
    """Whether two texts are the same."""
    first, second = _alike(left, right)
    return first == second


def _spark_text_at(call: SparkArguments) -> SparkColumn | None:
    """The native form exists for a constant place and part only."""
    offset, part, value = call.operands
    if not (offset.constant and part.constant and part.value) or offset.value is None:
        return None
    if not 0 <= offset.value < FURTHEST:
        return call.F.when(value.column.isNotNull(), call.F.lit(False))
    if Type.BINARY in (part.type, value.type):
        text, wanted = call.bytes[2], call.bytes[1]
    else:
        text, wanted = value.column, part.column
    return call.F.substring(text, offset.value + 1, len(part.value)) == wanted


@builtin(
    INTEGER, TEXT, TEXT, returns=Type.BOOL, cost_ns=20, payload_ns=20, role=TextTest("text at", 2),
    spark=_spark_text_at,
)  # fmt: skip
def str_match_offset(offset: int, part: Text, value: Text) -> bool:
    """str_match_offset(offset, part, text): whether part stands there, counted from 0."""
    text, wanted = _alike(value, part)
    return 0 <= offset <= len(text) and text[offset : offset + len(wanted)] == wanted


def _spark_byte_at(call: SparkArguments) -> SparkColumn | None:
    """The native form exists for a constant place and byte only."""
    offset, byte, value = call.operands
    if not (offset.constant and byte.constant) or None in (offset.value, byte.value):
        return None
    if not 0 <= offset.value < FURTHEST:
        return call.F.when(value.column.isNotNull(), call.F.lit(False))
    wanted = call.F.lit(bytearray([byte.value & 0xFF]))
    return call.F.substring(call.bytes[2], offset.value + 1, 1) == wanted


@builtin(
    INTEGER, INTEGER, TEXT, returns=Type.BOOL, cost_ns=10, payload_ns=10,
    role=TextTest("byte at", 2), spark=_spark_byte_at,
)  # fmt: skip
def byte_match_offset(offset: int, byte: int, value: Text) -> bool:
    """byte_match_offset(offset, byte, text): whether that byte stands there, from 0."""
    content = as_bytes(value)
    return 0 <= offset < len(content) and content[offset] == byte & 0xFF


def _spark_count(call: SparkArguments, value: SparkColumn) -> SparkColumn:
    """A number of characters: at least 0."""
    F = call.F
    bounded = F.least(F.greatest(value, call.number(-FURTHEST)), call.number(FURTHEST))
    return F.greatest(bounded.cast("int"), F.lit(0))


def spark_beginning(call: SparkArguments, text: SparkColumn, count: SparkColumn) -> SparkColumn:
    """The first characters of a text."""
    F = call.F
    part = F.call_function("substring", text, F.lit(1), _spark_count(call, count))
    return F.when(count.isNotNull(), part)


@builtin(
    TEXT, INTEGER, returns=Type.STRING, cost_ns=30,
    spark=lambda call: spark_beginning(call, call.texts[0], call.columns[1]),
)  # fmt: skip
def str_truncate(value: Text, count: int) -> str:
    """The first n characters, or as many as there are."""
    return as_text(value)[: max(count, 0)]


def _spark_suffix(call: SparkArguments) -> SparkColumn:
    count = call.columns[1]
    text = call.F.call_function("right", call.texts[0], _spark_count(call, count))
    return call.F.when(count.isNotNull(), text)


@builtin(TEXT, INTEGER, returns=Type.STRING, cost_ns=30, spark=_spark_suffix)
def str_suffix(value: Text, count: int) -> str:
    """The last n characters, or as many as there are."""
    text = as_text(value)
    return text[max(len(text) - max(count, 0), 0) :]


@builtin(
    TEXT, returns=Type.UINT, cost_ns=10, payload_ns=10, role=TextTest("length"),
    spark=lambda call: call.F.length(call.columns[0]).cast("bigint"),
)  # fmt: skip
def str_length(value: Text) -> int:
    """The number of characters, of bytes for BINARY."""
    return len(value)


@builtin(TEXT, returns=Type.STRING, cost_ns=60, spark=lambda call: call.F.upper(call.texts[0]))
def upper(value: Text) -> str:
    """The text in capitals."""
    return as_text(value).upper()


@builtin(TEXT, returns=Type.STRING, cost_ns=60, spark=lambda call: call.F.lower(call.texts[0]))
def lower(value: Text) -> str:
    """The text in small letters."""
    return as_text(value).lower()


def _spark_substr(call: SparkArguments) -> SparkColumn:
    """Counted from 1, or from the end; what lies outside of the text is empty."""
    F, text, start, zero = call.F, call.texts[0], call.columns[1], call.number(0)
    length = F.length(text).cast("bigint")
    begin = F.when(start > zero, start - call.number(1))
    begin = begin.when(start < zero, length + start).otherwise(zero)
    end = length
    if len(call.operands) > 2:
        count = call.columns[2]
        too_far = F.when(count > zero, length).otherwise(zero)
        end = F.coalesce(F.try_add(begin, count), too_far)
    low = _spark_count(call, begin)
    part = F.call_function("substring", text, low + F.lit(1), _spark_count(call, end) - low)
    return F.when(start.isNotNull() & call.columns[-1].isNotNull(), part)


@builtin(
    TEXT, INTEGER, INTEGER, returns=Type.STRING, optional=1, cost_ns=30, spark=_spark_substr
)  # fmt: skip
def substr(value: Text, start: int, count: int | None = None) -> str:
    """substr(text, start[, count]): counted from 1, from the end when start is negative."""
    text = as_text(value)
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if count is None else begin + count
    return text[max(begin, 0) : max(end, 0)]


@builtin(TEXT, returns=Type.STRING, cost_ns=40, spark=lambda call: call.F.trim(call.texts[0]))
def trim(value: Text) -> str:
    """The text without the spaces around it."""
    return as_text(value).strip(" ")


@builtin(
    TEXT, TEXT, TEXT, returns=Type.STRING, cost_ns=100,
    spark=lambda call: call.F.replace(*call.texts),
)  # fmt: skip
def replace(value: Text, part: Text, by: Text) -> str:
    """replace(text, part, by): every occurrence of part replaced."""
    old = as_text(part)
    return as_text(value).replace(old, as_text(by)) if old else as_text(value)


@builtin(
    TEXT, returns=Type.STRING, repeated=True, cost_ns=60,
    spark=lambda call: call.F.concat(*call.texts),
)  # fmt: skip
def concat(*values: Text) -> str:
    """The texts joined, as || does."""
    return "".join(map(as_text, values))


@builtin(
    TEXT, returns=Type.STRING, cost_ns=100,
    spark=lambda call: call.F.lower(call.F.hex(call.bytes[0])),
)  # fmt: skip
def to_hex_string(value: Text) -> str:
    """The bytes of the text in hexadecimal, small letters."""
    return as_bytes(value).hex()


@builtin(TEXT, returns=Type.UINT, cost_ns=50, spark=lambda call: call.F.crc32(call.bytes[0]))
def string_hash(value: Text) -> int:
    """CRC-32 of the bytes of the text: the same in every run and on every machine."""
    return zlib.crc32(as_bytes(value))


def _spark_hash_long(call: SparkArguments) -> SparkColumn:
    F = call.F
    return F.conv(F.substring(F.md5(call.bytes[0]), 1, 15), 16, 10).cast("bigint")


@builtin(TEXT, returns=Type.ULLONG, cost_ns=400, spark=_spark_hash_long)
def string_hash_long(value: Text) -> int:
    """The first 60 bits of the MD5 of the bytes of the text."""
    digest = hashlib.md5(as_bytes(value), usedforsecurity=False).hexdigest()
    return int(digest[:15], 16)


# ---- numbers and entries read out of text: delimited lists, digits, addresses --------------------

DIGITS: Final = re.compile(r"[0-9]+")


def _entries(value: Text, separator: Text) -> list[str]:
    """An empty separator cuts nothing."""
    cut = as_text(separator)
    return as_text(value).split(cut) if cut else [as_text(value)]


@builtin(TEXT, TEXT, INTEGER, returns=Type.STRING, cost_ns=100)
def get_list_entry(value: Text, separator: Text, position: int) -> str | None:
    """get_list_entry(list, separator, i): the i-th entry, counted from 0, or NULL."""
    entries = _entries(value, separator)
    return entries[position] if 0 <= position < len(entries) else None


@builtin(TEXT, TEXT, returns=Type.LLONG, cost_ns=200)
def sum_uint_in_list(value: Text, separator: Text) -> int:
    """sum_uint_in_list('34|45|56', '|') is 135; what is no unsigned integer counts as 0."""
    numbers = (parse_integer(e) for e in _entries(value, separator))
    return whole(sum(n for n in numbers if n is not None and n > 0), "sum_uint_in_list")


@builtin(TEXT, returns=Type.ULLONG, cost_ns=100)
def strtoi(value: Text) -> int | None:
    """The first run of digits in the text, as number, or NULL."""
    found = DIGITS.search(as_text(value))
    return parse_integer(found.group()) if found else None


@builtin(TEXT, returns=Type.IP, cost_ns=300)
def strtoip(value: Text) -> bytes | None:
    """The address the text writes, or NULL."""
    return parse_ip(as_text(value))


SYNONYMS: Final = {
    "str_prefix": "str_truncate",
    "length": "str_length",
    "len": "str_length",
    "char_length": "str_length",
    "substring": "substr",
    "strtoi_c": "strtoi",
    "strtoip_c": "strtoip",
}
