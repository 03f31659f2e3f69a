"""The arguments of a function's translation to Spark, and small Columns that translations share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.base import Value
from terascope.spark.catalyst.frame import spark_type
from terascope.types import INT_MIN, Type
from terascope.types import unified as unified_type

WIDE: Final = "decimal(20, 0)"
"""A decimal type for every integer of 64 bits."""


@dataclass(frozen=True)
class Operand:
    """An argument: its Column and type, and its value when it is constant."""

    column: Column
    type: Type
    constant: bool = False
    value: Value = None


Operands: TypeAlias = tuple[Operand, ...]


def literal(value: Value, type: Type) -> Column:
    """A constant; integers are always 64 bits wide."""
    return F.lit(bytearray(value) if isinstance(value, bytes) else value).cast(spark_type(type))


def number(value: int) -> Column:
    return literal(value, Type.LLONG)


def flipped(value: Column) -> Column:
    """A WIDE as its number, or back: 2^63 subtracted or added."""
    return value.bitwiseXOR(number(INT_MIN))


def changing(value: int) -> Column:
    """A number that differs in every micro-batch. Spark writes integers into the Java code that it
    generates, and compiles it anew for each of them; decimals are referenced.
    """
    return F.lit(Decimal(value)).cast(WIDE)


def null(type: Type) -> Column:
    return F.lit(None).cast(spark_type(type))


def as_text(operand: Operand) -> Column:
    """Text unchanged; raw bytes as one character each."""
    if operand.type is Type.BINARY:
        return F.decode(operand.column, "ISO-8859-1")
    return operand.column.cast("string") if operand.type is Type.NULL else operand.column


def alike(operand: Operand, type: Type) -> Column:
    """The value converted to the wider type that it was unified to."""
    needs_cast = (
        operand.type is Type.NULL
        or (type is Type.FLOAT and operand.type.is_integer)
        or (type is Type.BINARY and operand.type is Type.STRING)
    )
    return operand.column.cast(spark_type(type)) if needs_cast else operand.column


def unified(operands: Operands) -> tuple[Column, ...]:
    """All arguments converted to the one type that holds them."""
    common = unified_type(o.type for o in operands) or operands[0].type
    return tuple(alike(o, common) for o in operands)


@dataclass(frozen=True)
class ScalarCall:
    """A call of a scalar: `SparkArguments` (terascope.functions.spark_form)."""

    operands: Operands
    type: Type

    @property
    def F(self) -> Any:
        return F

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(o.column for o in self.operands)

    @property
    def texts(self) -> tuple[Column, ...]:
        return tuple(map(as_text, self.operands))

    @property
    def bytes(self) -> tuple[Column, ...]:
        return tuple(o.column.cast("binary") for o in self.operands)

    @property
    def unified(self) -> tuple[Column, ...]:
        return unified(self.operands)

    @property
    def alike(self) -> tuple[Column, ...]:
        return tuple(alike(o, self.type) for o in self.operands)

    def number(self, value: int) -> Column:
        return number(value)

    def null(self, type: Type) -> Column:
        return null(type)


def arrow_function(function: Callable[..., pa.Array], type: Type) -> Callable[..., Column]:
    """The function as an Arrow UDF: whole columns in, a column of the type out. Spark derives the
    kind of the UDF from the type hints of the function.
    """
    spark: Any = F  # PySpark's type stubs do not know arrow_udf
    made: Callable[..., Column] = spark.arrow_udf(function, spark_type(type))
    return made
