"""The common scalar functions as Spark Columns: numbers, choices and text.

In: the name of a function. Out: a builder that gives its Column, or None where only Python knows
how. The meaning is that of terascope.functions.scalars; a function that is not in the table runs
there, in Python workers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.regex import java_pattern
from terascope.spark.catalyst.addresses import ADDRESS_SCALARS
from terascope.spark.catalyst.float_sums import float_digit, float_total
from terascope.spark.catalyst.operands import Builder, Operand, alike, as_text, null, number
from terascope.spark.catalyst.operators import Operands, floor_modulo, unified
from terascope.spark.catalyst.slices import SLICE_SCALARS
from terascope.types import Type

FURTHEST = 10**9
"""No text is longer; positions beyond are cut to this so that they fit Spark's 32-bit arguments."""


# ---- numbers -------------------------------------------------------------------------------------


def finite(value: Column) -> Column:
    """NULL for infinities and NaN, which is above all numbers."""
    return F.when(F.abs(value) < F.lit(float("inf")), value)


def real(function: Callable[..., Column]) -> Builder:
    """A function on FLOATs that is NULL where it has no finite value."""
    return lambda operands, _: finite(function(*(o.column.cast("double") for o in operands)))


def power(base: Column, exponent: Column) -> Column:
    """1 to any power is 1, infinities and NaN included, where Java says NaN."""
    known = base.isNotNull() & exponent.isNotNull()
    one = (base == F.lit(1.0)) | ((base == F.lit(-1.0)) & (F.abs(exponent) == F.lit(float("inf"))))
    return F.when(known & one, F.lit(1.0)).otherwise(F.pow(base, exponent))


def to_whole(rounding: Callable[[Column], Column]) -> Builder:
    def build(operands: Operands, _: Type) -> Column:
        value = operands[0].column
        if operands[0].type is not Type.FLOAT:
            return value.cast("bigint")
        fits = (value >= F.lit(-(2.0**63))) & (value < F.lit(2.0**63))
        return F.when(fits, rounding(F.when(fits, value)).cast("bigint"))

    return build


def rounded(operands: Operands, _: Type) -> Column | None:
    """Only integers: a FLOAT is rounded on its shortest decimal digits, which Python knows."""
    is_whole = operands[0].type.is_integer
    keeps = len(operands) == 1 or (operands[1].constant and (operands[1].value or -1) >= 0)
    return operands[0].column if is_whole and keeps else None


def sign(operands: Operands, _: Type) -> Column:
    value = operands[0].column
    negative = F.when(value < number(0), number(-1)).when(value == number(0), number(0))
    positive = value > number(0)
    if operands[0].type is Type.FLOAT:
        positive = positive & ~F.isnan(value)
    return negative.when(positive, number(1))


def extreme(choose: Callable[..., Column]) -> Builder:
    def build(operands: Operands, type: Type) -> Column:
        columns = [alike(o, type) for o in operands]
        return choose(*columns) if len(columns) > 1 else columns[0]

    return build


def typed_extreme(better: Callable[[Column, Column], Column]) -> Builder:
    """The one of two numbers that is better, made to be of the result's type; an integer and a
    FLOAT are compared as FLOATs, but an integer that is chosen keeps all its digits.
    """

    def build(operands: Operands, type: Type) -> Column:
        left, right = unified(operands)
        exact = [
            o.column.cast("double") if type is Type.FLOAT else o.column.try_cast("bigint")
            for o in operands
        ]
        chosen = F.when(better(right, left), exact[1]).otherwise(exact[0])
        return F.when(left.isNotNull() & right.isNotNull(), chosen)

    return build


def as_number(compare: Callable[[Column, Column], Column]) -> Builder:
    return lambda operands, _: compare(*unified(operands)).cast("bigint")


def choice(operands: Operands, type: Type) -> Column:
    condition = operands[0]
    holds = condition.column
    if condition.type is not Type.BOOL:
        holds = condition.column.cast("bigint") != number(0)
    return F.when(holds, alike(operands[1], type)).otherwise(alike(operands[2], type))


def float_modulo(dividend: Column, divisor: Column) -> Column:
    return dividend % F.nullif(divisor, F.lit(0.0))


# ---- text ----------------------------------------------------------------------------------------


def both_text(test: Callable[[Column, Column], Column]) -> Builder:
    """A test of two texts: as characters, or as bytes as soon as one of them is BINARY."""
    return lambda operands, _: test(*unified(operands))


def as_binary(operand: Operand) -> Column:
    return operand.column.cast("binary")


def position(value: Column) -> Column:
    return F.least(F.greatest(value, number(-FURTHEST)), number(FURTHEST)).cast("int")


def not_below_zero(value: Column) -> Column:
    return F.greatest(position(value), F.lit(0))


def beginning(operands: Operands, _: Type) -> Column:
    count = not_below_zero(operands[1].column)
    text = F.call_function("substring", as_text(operands[0]), F.lit(1), count)
    return F.when(operands[1].column.isNotNull(), text)


def ending(operands: Operands, _: Type) -> Column:
    count = not_below_zero(operands[1].column)
    text = F.call_function("right", as_text(operands[0]), count)
    return F.when(operands[1].column.isNotNull(), text)


def substring(operands: Operands, _: Type) -> Column:
    """Counted from 1, or from the end; what lies outside of the text is empty."""
    text, start = as_text(operands[0]), operands[1].column
    length = F.length(text).cast("bigint")
    begin = F.when(start > number(0), start - number(1))
    begin = begin.when(start < number(0), length + start).otherwise(number(0))
    end = length
    if len(operands) > 2:
        count = operands[2].column
        too_far = F.when(count > number(0), length).otherwise(number(0))
        end = F.coalesce(F.try_add(begin, count), too_far)
    low = not_below_zero(begin)
    part = F.call_function("substring", text, low + F.lit(1), not_below_zero(end) - low)
    known = start.isNotNull() & operands[-1].column.isNotNull()
    return F.when(known, part)


def text_at(operands: Operands, _: Type) -> Column | None:
    """str_match_offset(offset, part, text) for a constant place and part."""
    offset, part, value = operands
    if not (offset.constant and part.constant and part.value) or offset.value is None:
        return None
    if not 0 <= offset.value < FURTHEST:
        return F.when(value.column.isNotNull(), F.lit(False))
    whole, wanted = unified((value, part))
    return F.substring(whole, offset.value + 1, len(part.value)) == wanted


def byte_at(operands: Operands, _: Type) -> Column | None:
    """byte_match_offset(offset, byte, text) for a constant place and byte."""
    offset, byte, value = operands
    if not (offset.constant and byte.constant) or None in (offset.value, byte.value):
        return None
    if not 0 <= offset.value < FURTHEST:
        return F.when(value.column.isNotNull(), F.lit(False))
    wanted = F.lit(bytearray([byte.value & 0xFF]))
    return F.substring(as_binary(value), offset.value + 1, 1) == wanted


def pattern_of(operand: Operand) -> str | None:
    """A constant regular expression in Java's dialect."""
    if not operand.constant or operand.value is None:
        return None
    text = operand.value if isinstance(operand.value, str) else operand.value.decode("latin-1")
    return java_pattern(text)


def matches(operands: Operands, _: Type) -> Column | None:
    pattern = pattern_of(operands[1])
    return as_text(operands[0]).rlike(pattern) if pattern is not None else None


def matches_early(operands: Operands, type: Type) -> Column | None:
    pattern = pattern_of(operands[1])
    if pattern is None:
        return None
    return beginning((operands[0], operands[2]), type).rlike(pattern)


def extracted(operands: Operands, _: Type) -> Column | None:
    """The whole match; Spark cannot tell a group that took no part from an empty one."""
    pattern = pattern_of(operands[1])
    if pattern is None or (len(operands) > 2 and operands[2].value != 0):
        return None
    return F.regexp_substr(as_text(operands[0]), F.lit(pattern))


def hash_long(operands: Operands, _: Type) -> Column:
    return F.conv(F.substring(F.md5(as_binary(operands[0])), 1, 15), 16, 10).cast("bigint")


def nothing_known(operands: Operands, type: Type) -> Column:
    return operands[0].column if operands[0].type is not Type.NULL else null(type)


SCALARS: Mapping[str, Builder] = {
    **ADDRESS_SCALARS,
    **SLICE_SCALARS,
    "abs": lambda operands, type: F.abs(alike(operands[0], type)),
    "sign": sign,
    "floor": to_whole(F.floor),
    "ceil": to_whole(F.ceil),
    "trunc": to_whole(lambda value: value),
    "round": rounded,
    "sqrt": real(F.sqrt),
    "pow": real(power),
    "exp": real(F.exp),
    "log": real(F.ln),
    "log2": real(F.log2),
    "log10": real(F.log10),
    "sin": real(F.sin),
    "cos": real(F.cos),
    "tan": real(F.tan),
    "asin": real(F.asin),
    "acos": real(F.acos),
    "atan": real(F.atan),
    "fmod": real(float_modulo),
    "least": extreme(F.least),
    "greatest": extreme(F.greatest),
    **{f"{kind}min": typed_extreme(operator.lt) for kind in ("ull", "ll", "u", "l", "f")},
    **{f"{kind}max": typed_extreme(operator.gt) for kind in ("ull", "ll", "u", "l", "f")},
    "mod": floor_modulo,
    "if": choice,
    "nullif": lambda operands, _: F.nullif(*unified(operands)),
    "eq": as_number(operator.eq),
    "geq": as_number(operator.ge),
    "ge": as_number(operator.gt),
    "leq": as_number(operator.le),
    "le": as_number(operator.lt),
    "non_temporal": nothing_known,
    "str_match_start": both_text(F.startswith),
    "str_exists_substr": both_text(F.contains),
    "str_compare": both_text(operator.eq),
    "str_match_offset": text_at,
    "byte_match_offset": byte_at,
    "str_truncate": beginning,
    "str_suffix": ending,
    "str_length": lambda operands, _: F.length(operands[0].column).cast("bigint"),
    "upper": lambda operands, _: F.upper(as_text(operands[0])),
    "lower": lambda operands, _: F.lower(as_text(operands[0])),
    "substr": substring,
    "trim": lambda operands, _: F.trim(as_text(operands[0])),
    "replace": lambda operands, _: F.replace(*(as_text(o) for o in operands)),
    "concat": lambda operands, _: F.concat(*(as_text(o) for o in operands)),
    "to_hex_string": lambda operands, _: F.lower(F.hex(as_binary(operands[0]))),
    "string_hash": lambda operands, _: F.crc32(as_binary(operands[0])),
    "string_hash_long": hash_long,
    "str_regex_match": matches,
    "str_partial_regex_match": matches_early,
    "str_extract_regex": extracted,
    "float_digit": float_digit,
    "float_total": float_total,
}
