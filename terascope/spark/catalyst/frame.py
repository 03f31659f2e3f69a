"""A DataFrame whose columns are known by place.

GSQL names hold '#', '.' and anything a user quotes, and both sides of a self-join have the same
ones. Inside Spark the columns of every relation are therefore called c0, c1, ...; only `Frame`
knows which field each of them is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from terascope.connectors.base import Column as SourceColumn
from terascope.connectors.base import arrow_type
from terascope.plan.rel import Field
from terascope.types import Type


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
