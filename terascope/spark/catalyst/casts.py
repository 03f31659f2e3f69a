"""CAST as Spark Columns, with the meaning of terascope.functions.casts.

Spark's own casts accept more texts and stop the run where GSQL gives NULL, so a pattern decides
first which texts are numbers.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.casts import IPV4_MAX, TRUTH
from terascope.functions.spark_form import Operand, SparkColumn, sql_type
from terascope.kernels.encode.text import address_text
from terascope.spark.catalyst.frame import WIDE, arrow_function, flipped, null, number
from terascope.spark.catalyst.operators import ipv4_address, ipv4_number, is_ipv4
from terascope.types import BIAS, INT_MIN, WIDE_MAX, Type, value_range

BLANK = "[ \\t\\n\\r\\f\\x{b}]*"
INTEGER_TEXT = f"\\A{BLANK}[+-]?[0-9]+{BLANK}\\z"
NUMBER_TEXT = f"\\A{BLANK}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?{BLANK}\\z"
BLANKS = " \t\n\r\f\x0b"


def range_checked(value: Column, target: Type) -> Column:
    """An integer that is in the range of an unsigned type, or NULL."""
    least, most = value_range(target)
    return F.when(value.between(number(least), number(most)), value)


def native_cast(operand: Operand, target: Type) -> SparkColumn | None:
    """The Column of a cast; None when it exists in Python only."""
    source, value = operand.type, operand.column
    if source is Type.NULL:
        return null(target)
    if source is target or (source.is_integer and target.is_integer):
        return value
    if source is Type.WIDE:
        return from_wide(value, target)
    if target is Type.WIDE:
        return to_wide(operand)
    if source.is_address and target.is_address:
        return value
    if target.is_integer:
        return to_integer(operand)
    if target.is_address:
        if not source.is_integer:
            return None
        return F.when(value.between(number(0), number(IPV4_MAX)), ipv4_address(value))
    match target:
        case Type.FLOAT:
            return to_float(operand)
        case Type.BOOL:
            return to_bool(operand)
        case Type.STRING:
            return to_string(operand)
        case Type.BINARY:
            return value.cast("binary")
        case _:
            return value.cast(sql_type(target))


def wide_number(held: Column) -> Column:
    """The number of a WIDE, as a decimal."""
    return (held.cast(WIDE) + F.lit(Decimal(BIAS)).cast(WIDE)).cast(WIDE)


def from_wide(held: Column, target: Type) -> Column | None:
    """A WIDE as a value of another type; NULL where there is none."""
    if target.is_integer:
        number_ = F.when(held < number(0), flipped(held))
        return range_checked(number_, target)
    match target:
        case Type.FLOAT:
            return wide_number(held).cast("double")
        case Type.BOOL:
            return held != number(INT_MIN)
        case Type.STRING:
            return wide_number(held).cast("string")
        case Type.BINARY:
            return wide_number(held).cast("string").cast("binary")
        case _:
            return None


def to_wide(operand: Operand) -> SparkColumn:
    """A value as a WIDE; NULL for negative values and for non-integers of 64 bits."""
    value = operand.column
    if operand.type.is_text:
        text = operand.text(F)
        found = F.btrim(text, F.lit(BLANKS)).try_cast("decimal(38, 0)")
        fits = text.rlike(INTEGER_TEXT) & found.between(F.lit(0), F.lit(Decimal(WIDE_MAX)))
        return F.when(fits, (found - F.lit(Decimal(BIAS))).cast("bigint"))
    if operand.type is Type.FLOAT:
        fits = (value > F.lit(-1.0)) & (value < F.lit(2.0**64))
        large = value >= F.lit(2.0**63)
        less = (value - F.lit(2.0**63)).try_cast("bigint")
        return F.when(fits & large, less).when(fits, flipped(value.try_cast("bigint")))
    whole = value.cast("bigint")
    return F.when(whole >= number(0), flipped(whole))


def to_integer(operand: Operand) -> SparkColumn:
    value = operand.column
    if operand.type.is_text:
        text = operand.text(F)
        trimmed = F.btrim(text, F.lit(BLANKS))
        return F.when(text.rlike(INTEGER_TEXT), trimmed.try_cast("bigint"))
    if operand.type.is_address:
        return F.when(is_ipv4(value), ipv4_number(value))
    return value.try_cast("bigint")


def to_float(operand: Operand) -> SparkColumn:
    if not operand.type.is_text:
        # Spark has no cast from BOOL to DOUBLE in ANSI mode for every version: go by way of int.
        return operand.column.cast("bigint").cast("double")
    text = operand.text(F)
    value = F.btrim(text, F.lit(BLANKS)).try_cast("double")
    finite = F.abs(value) < F.lit(float("inf"))
    return F.when(text.rlike(NUMBER_TEXT), F.when(finite, value))


def to_bool(operand: Operand) -> SparkColumn:
    if not operand.type.is_text:
        return operand.column != F.lit(0)
    word = F.lower(F.btrim(operand.text(F), F.lit(BLANKS)))
    true = [word for word, truth in TRUTH.items() if truth]
    false = [word for word, truth in TRUTH.items() if not truth]
    return F.when(word.isin(*true), F.lit(True)).when(word.isin(*false), F.lit(False))


def to_string(operand: Operand) -> SparkColumn | None:
    if operand.type.is_text:
        return operand.text(F)
    if operand.type.is_address:
        return written_address(operand.column)
    # A FLOAT is written in Java's own way before Java 19; ours is the same everywhere.
    return None if operand.type is Type.FLOAT else operand.column.cast("string")


def written_address(address: Column) -> Column:
    """Addresses as text, a column batch at a time."""
    return arrow_function(address_text, Type.STRING)(address)
