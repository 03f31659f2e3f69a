"""A DataFrame whose columns are known by place, and the small Columns that translations share.

GSQL names hold '#', '.' and anything a user quotes, and both sides of a self-join have the same
ones. Inside Spark the columns of every relation are therefore called c0, c1, ...; only `Frame`
knows which field each of them is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from terascope.connectors.base import Column as SourceColumn
from terascope.connectors.base import arrow_type
from terascope.functions.base import Value
from terascope.functions.spark_form import sql_type
from terascope.plan.rel import Field
from terascope.types import INT_MIN, Type

WIDE: Final = "decimal(20, 0)"
"""A decimal type for every integer of 64 bits."""


@cache
def spark_type(type: Type) -> T.DataType:
    """The Spark type of a column of a GSQL type (see terascope.types)."""
    return from_arrow_type(arrow_type(type))


def place(index: int) -> str:
    """The name of a column in Spark, by its place in the relation."""
    return f"c{index}"


@dataclass(frozen=True)
class Frame:
    df: DataFrame
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The Columns, made once: every Column costs several calls into the JVM."""
        return {f.name: F.col(place(i)) for i, f in enumerate(self.fields)}

    def column(self, name: str) -> Column:
        return self.columns[name]


def in_places(columns: Iterable[Column]) -> list[Column]:
    """Columns under the names of the places they will have."""
    return [column.alias(place(i)) for i, column in enumerate(columns)]


def by_place(df: DataFrame) -> DataFrame:
    """A DataFrame with the names of places. PySpark looks columns up by name, and takes a dot in
    one for a field of a struct.
    """
    return df.toDF(*(place(i) for i in range(len(df.columns))))


def project(df: DataFrame, columns: Iterable[Column], fields: tuple[Field, ...]) -> Frame:
    return Frame(df.select(*in_places(columns)), fields)


def table_frame(spark: SparkSession, table: pa.Table, fields: Sequence[Field]) -> Frame:
    """Rows of this process, in order."""
    schema = schema_of(fields)
    plain = table.rename_columns([f.name for f in schema])
    df = spark.createDataFrame(plain if plain.num_rows else [], schema)
    return Frame(df, tuple(fields))


def schema_of(fields: Iterable[Field | SourceColumn]) -> T.StructType:
    return T.StructType(
        [T.StructField(place(i), spark_type(f.type), True) for i, f in enumerate(fields)]
    )


# ---- Columns -------------------------------------------------------------------------------------


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


def arrow_function(function: Callable[..., pa.Array], type: Type | str) -> Callable[..., Column]:
    """The function as an Arrow UDF: whole columns in, a column of a GSQL or a Spark type out. Spark
    derives the kind of the UDF from the type hints of the function.
    """
    spark: Any = F  # PySpark's type stubs do not know arrow_udf
    made: Callable[..., Column] = spark.arrow_udf(
        function, sql_type(type) if isinstance(type, Type) else type
    )
    return made
