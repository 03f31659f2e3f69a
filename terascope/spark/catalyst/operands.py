"""Small Columns and functions that translations to Spark share."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.base import Value
from terascope.functions.spark_form import sql_type
from terascope.types import INT_MIN, Type

WIDE: Final = "decimal(20, 0)"
"""A decimal type for every integer of 64 bits."""


def literal(value: Value, type: Type) -> Column:
    """A constant; integers are always 64 bits wide."""
    return F.lit(bytearray(value) if isinstance(value, bytes) else value).cast(sql_type(type))


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
    return F.lit(None).cast(sql_type(type))


def arrow_function(function: Callable[..., pa.Array], type: Type) -> Callable[..., Column]:
    """The function as an Arrow UDF: whole columns in, a column of the type out. Spark derives the
    kind of the UDF from the type hints of the function.
    """
    spark: Any = F  # PySpark's type stubs do not know arrow_udf
    made: Callable[..., Column] = spark.arrow_udf(function, sql_type(type))
    return made
