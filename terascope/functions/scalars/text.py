"""Functions on text: STRING, or BINARY such as a packet's payload.

Two STRINGs are compared character by character. As soon as one side is BINARY both are compared as
bytes, STRING in UTF-8. Results that are text are STRING; bytes become one character each (latin-1).
"""

from __future__ import annotations

import hashlib
import operator
import zlib
from typing import Final

from terascope.functions.base import Scalar
from terascope.functions.roles import TextTest
from terascope.functions.signatures import INTEGER, TEXT, signature
from terascope.functions.spark_form import SparkArguments, SparkColumn
from terascope.functions.values import Text, as_bytes, as_text
from terascope.types import Type


def _alike(left: Text, right: Text) -> tuple[str, str] | tuple[bytes, bytes]:
    """Both as characters or both as bytes."""
    if isinstance(left, str) and isinstance(right, str):
        return left, right
    return as_bytes(left), as_bytes(right)


def _starts(value: Text, prefix: Text) -> bool:
    left, right = _alike(value, prefix)
    return left[: len(right)] == right


def _contains(value: Text, part: Text) -> bool:
    if isinstance(value, str) and isinstance(part, str):
        return part in value
    return as_bytes(part) in as_bytes(value)


def _equal(left: Text, right: Text) -> bool:
    first, second = _alike(left, right)
    return first == second


def _matches_at(offset: int, part: Text, value: Text) -> bool:
    whole, wanted = _alike(value, part)
    return 0 <= offset <= len(whole) and whole[offset : offset + len(wanted)] == wanted


def _byte_matches_at(offset: int, byte: int, value: Text) -> bool:
    content = as_bytes(value)
    return 0 <= offset < len(content) and content[offset] == byte & 0xFF


def _truncate(value: Text, count: int) -> str:
    return as_text(value)[: max(count, 0)]


def _suffix(value: Text, count: int) -> str:
    text = as_text(value)
    return text[max(len(text) - max(count, 0), 0) :]


def _substr(value: Text, start: int, count: int | None = None) -> str:
    text = as_text(value)
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if count is None else begin + count
    return text[max(begin, 0) : max(end, 0)]


def _replace(value: Text, part: Text, by: Text) -> str:
    old = as_text(part)
    return as_text(value).replace(old, as_text(by)) if old else as_text(value)


def _concat(*values: Text) -> str:
    return "".join(map(as_text, values))


def _hash(value: Text) -> int:
    return zlib.crc32(as_bytes(value))


def _hash_long(value: Text) -> int:
    digest = hashlib.md5(as_bytes(value), usedforsecurity=False).hexdigest()
    return int(digest[:15], 16)


# ---- in Spark ------------------------------------------------------------------------------------

FURTHEST: Final = 10**9
"""No text is longer; positions beyond are cut to this so that they fit Spark's 32-bit arguments."""


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


def _spark_suffix(call: SparkArguments) -> SparkColumn:
    count = call.columns[1]
    text = call.F.call_function("right", call.texts[0], _spark_count(call, count))
    return call.F.when(count.isNotNull(), text)


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


def _spark_text_at(call: SparkArguments) -> SparkColumn | None:
    """str_match_offset(offset, part, text) for a constant place and part."""
    offset, part, value = call.operands
    if not (offset.constant and part.constant and part.value) or offset.value is None:
        return None
    if not 0 <= offset.value < FURTHEST:
        return call.F.when(value.column.isNotNull(), call.F.lit(False))
    if Type.BINARY in (part.type, value.type):
        whole, wanted = call.bytes[2], call.bytes[1]
    else:
        whole, wanted = value.column, part.column
    return call.F.substring(whole, offset.value + 1, len(part.value)) == wanted


def _spark_byte_at(call: SparkArguments) -> SparkColumn | None:
    """byte_match_offset(offset, byte, text) for a constant place and byte."""
    offset, byte, value = call.operands
    if not (offset.constant and byte.constant) or None in (offset.value, byte.value):
        return None
    if not 0 <= offset.value < FURTHEST:
        return call.F.when(value.column.isNotNull(), call.F.lit(False))
    wanted = call.F.lit(bytearray([byte.value & 0xFF]))
    return call.F.substring(call.bytes[2], offset.value + 1, 1) == wanted


def _spark_hash_long(call: SparkArguments) -> SparkColumn:
    F = call.F
    return F.conv(F.substring(F.md5(call.bytes[0]), 1, 15), 16, 10).cast("bigint")


SCALARS: Final = (
    Scalar(
        "str_match_start",
        signature("str_match_start", TEXT, TEXT, returns=Type.BOOL),
        _starts,
        cost_ns=20,
        payload_ns=20,
        role=TextTest("start"),
        spark=lambda call: call.F.startswith(*call.unified),
        doc="whether the text begins with another",
    ),
    Scalar(
        "str_exists_substr",
        signature("str_exists_substr", TEXT, TEXT, returns=Type.BOOL),
        _contains,
        cost_ns=100,
        payload_ns=150,
        role=TextTest("contained"),
        spark=lambda call: call.F.contains(*call.unified),
        doc="whether the text contains another",
    ),
    Scalar(
        "str_compare",
        signature("str_compare", TEXT, TEXT, returns=Type.BOOL),
        _equal,
        cost_ns=20,
        payload_ns=20,
        role=TextTest("equal"),
        spark=lambda call: operator.eq(*call.unified),
        doc="whether two texts are the same",
    ),
    Scalar(
        "str_match_offset",
        signature("str_match_offset", INTEGER, TEXT, TEXT, returns=Type.BOOL),
        _matches_at,
        cost_ns=20,
        payload_ns=20,
        role=TextTest("text at", 2),
        spark=_spark_text_at,
        doc="str_match_offset(offset, part, text): whether part stands there, counted from 0",
    ),
    Scalar(
        "byte_match_offset",
        signature("byte_match_offset", INTEGER, INTEGER, TEXT, returns=Type.BOOL),
        _byte_matches_at,
        cost_ns=10,
        payload_ns=10,
        role=TextTest("byte at", 2),
        spark=_spark_byte_at,
        doc="byte_match_offset(offset, byte, text): whether that byte stands there, from 0",
    ),
    Scalar(
        "str_truncate",
        signature("str_truncate", TEXT, INTEGER, returns=Type.STRING),
        _truncate,
        cost_ns=30,
        spark=lambda call: spark_beginning(call, call.texts[0], call.columns[1]),
        doc="the first n characters, or as many as there are",
    ),
    Scalar(
        "str_suffix",
        signature("str_suffix", TEXT, INTEGER, returns=Type.STRING),
        _suffix,
        cost_ns=30,
        spark=_spark_suffix,
        doc="the last n characters, or as many as there are",
    ),
    Scalar(
        "str_length",
        signature("str_length", TEXT, returns=Type.UINT),
        len,
        cost_ns=10,
        payload_ns=10,
        role=TextTest("length"),
        spark=lambda call: call.F.length(call.columns[0]).cast("bigint"),
        doc="the number of characters, of bytes for BINARY",
    ),
    Scalar(
        "upper",
        signature("upper", TEXT, returns=Type.STRING),
        lambda value: as_text(value).upper(),
        cost_ns=60,
        spark=lambda call: call.F.upper(call.texts[0]),
        doc="the text in capitals",
    ),
    Scalar(
        "lower",
        signature("lower", TEXT, returns=Type.STRING),
        lambda value: as_text(value).lower(),
        cost_ns=60,
        spark=lambda call: call.F.lower(call.texts[0]),
        doc="the text in small letters",
    ),
    Scalar(
        "substr",
        signature("substr", TEXT, INTEGER, INTEGER, returns=Type.STRING, optional=1),
        _substr,
        cost_ns=30,
        spark=_spark_substr,
        doc="substr(text, start[, count]): counted from 1, from the end when start is negative",
    ),
    Scalar(
        "trim",
        signature("trim", TEXT, returns=Type.STRING),
        lambda value: as_text(value).strip(" "),
        cost_ns=40,
        spark=lambda call: call.F.trim(call.texts[0]),
        doc="the text without the spaces around it",
    ),
    Scalar(
        "replace",
        signature("replace", TEXT, TEXT, TEXT, returns=Type.STRING),
        _replace,
        cost_ns=100,
        spark=lambda call: call.F.replace(*call.texts),
        doc="replace(text, part, by): every occurrence of part replaced",
    ),
    Scalar(
        "concat",
        signature("concat", TEXT, returns=Type.STRING, repeated=True),
        _concat,
        cost_ns=60,
        spark=lambda call: call.F.concat(*call.texts),
        doc="the texts joined, as || does",
    ),
    Scalar(
        "to_hex_string",
        signature("to_hex_string", TEXT, returns=Type.STRING),
        lambda value: as_bytes(value).hex(),
        cost_ns=100,
        spark=lambda call: call.F.lower(call.F.hex(call.bytes[0])),
        doc="the bytes of the text in hexadecimal, small letters",
    ),
    Scalar(
        "string_hash",
        signature("string_hash", TEXT, returns=Type.UINT),
        _hash,
        cost_ns=50,
        spark=lambda call: call.F.crc32(call.bytes[0]),
        doc="CRC-32 of the bytes of the text: the same in every run and on every machine",
    ),
    Scalar(
        "string_hash_long",
        signature("string_hash_long", TEXT, returns=Type.ULLONG),
        _hash_long,
        cost_ns=400,
        spark=_spark_hash_long,
        doc="the first 60 bits of the MD5 of the bytes of the text",
    ),
)

SYNONYMS: Final = {
    "str_prefix": "str_truncate",
    "length": "str_length",
    "len": "str_length",
    "char_length": "str_length",
    "substring": "substr",
}
