"""Columns of a DataFrame as columns of GSQL types: by the JVM where nothing has to be parsed.

In: a Column, and how the DataFrame holds it. Out: `Made`. Times become ticks by arithmetic; what
has to be looked at value by value goes through the code that reads Parquet files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T

from terascope.connectors.base import TICK_NS, Column
from terascope.connectors.tables.clocks import arrow_column
from terascope.connectors.tables.convert import Fault, of_range
from terascope.spark.catalyst.frame import spark_type
from terascope.spark.catalyst.operands import Operand, null, number
from terascope.spark.catalyst.operators import floor_divide
from terascope.types import INT_MAX, Type, value_range

PER_MICROSECOND = TICK_NS["us"]
PER_DAY = 24 * 3600 * TICK_NS["s"]


@dataclass(frozen=True)
class CheckedColumn:
    """A column of the declared type; `fault` is a Fault or 0, None when every value fits."""

    value: SparkColumn
    fault: SparkColumn | None = None


def is_parsed(held: pa.DataType | None, column: Column) -> bool:
    """Whether the values have to be looked at one by one."""
    assert held is not None
    of, to = pa.types, column.type
    if of.is_null(held):
        return False
    if of.is_string(held):
        return not to.is_text
    if of.is_binary(held):
        return to is not Type.BINARY
    if of.is_integer(held):
        return not (to.is_numeric or to is Type.STRING)
    if of.is_floating(held) or of.is_decimal(held):
        return to is not Type.FLOAT
    if of.is_boolean(held):
        return to is not Type.BOOL
    return not (to.is_integer and (of.is_timestamp(held) or of.is_date(held)))


def as_it_is(value: SparkColumn, held: pa.DataType | None, column: Column) -> CheckedColumn:
    """A column that the JVM can convert, mostly by doing nothing."""
    if held is not None and pa.types.is_timestamp(held):
        return ticks(F.unix_micros(value.cast("timestamp")), PER_MICROSECOND, column)
    if held is not None and pa.types.is_date(held):
        return ticks(F.unix_date(value).cast("bigint"), PER_DAY, column)
    if held is not None and pa.types.is_null(held):
        return CheckedColumn(null(column.type))
    return of_unsigned(CheckedColumn(value.cast(spark_type(column.type))), column.type)


def of_unsigned(made: CheckedColumn, type: Type) -> CheckedColumn:
    """An unsigned column holds no negative number, and a UINT column none beyond 32 bits."""
    if not type.is_unsigned:
        return made
    least, most = value_range(type)
    fault = F.when(made.value < number(least), F.lit(int(Fault.NEGATIVE)))
    fault = fault.when(made.value > number(most), F.lit(int(Fault.ABOVE_UINT)))
    return CheckedColumn(
        made.value, fault.otherwise(F.lit(0) if made.fault is None else made.fault)
    )


def ticks(count: SparkColumn, nanoseconds: int, column: Column) -> CheckedColumn:
    """Times, given as a count of something, as nanoseconds or as ticks of the declared clock."""
    limit = INT_MAX // nanoseconds
    fits = count.between(number(-limit), number(limit))
    fault = F.when(~fits, F.lit(int(Fault.OUT_OF_RANGE))).otherwise(F.lit(0))
    value = count * number(nanoseconds)
    if column.clock is not None:
        per_tick = TICK_NS[column.clock]
        divisor = Operand(number(per_tick), Type.LLONG, True, per_tick)
        value = floor_divide((Operand(value, Type.LLONG), divisor))
    return of_unsigned(CheckedColumn(F.when(fits, value), fault), column.type)


def parsing(column: Column) -> Callable[[SparkColumn], SparkColumn]:
    """What Parquet columns are converted by, as a function of Spark."""

    def parse(values: pa.Array) -> pa.Array:
        made = of_range(arrow_column(values, column), column.type)
        faults = np.zeros(len(values), np.int8) if made.faults is None else made.faults
        codes = pa.array(faults.astype(np.int8))
        return pa.StructArray.from_arrays([made.values, codes], ["value", "fault"])

    both = T.StructType(
        [
            T.StructField("value", spark_type(column.type)),
            T.StructField("fault", T.ByteType()),
        ]
    )
    spark: Any = F  # PySpark's type stubs do not know arrow_udf
    made: Callable[[SparkColumn], SparkColumn] = spark.arrow_udf(parse, both)
    return made
