"""A user's DataFrame as a source: its columns as those of a read, in the session that runs the set.

In: any batch DataFrame. Out: a `DataFrameInterface` to bind queries to, and later its tuples c0,
c1, ... with a last column `#meta`: NULL, or the reason why the tuple is malformed, as a number.
Columns whose Spark type is that of GSQL stay in the JVM, where times become ticks by arithmetic. A
column that has to be parsed (a text that is an address, a number or a time) goes, alone, through
the code that reads Parquet files, so that both give the same values and refuse the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote

from terascope.connectors.arrival import TICKS_NS
from terascope.connectors.base import HIDDEN_PREFIX, POSITION, TICK_NS, Column, ReadReport
from terascope.connectors.dataframe import KIND, DataFrameInterface, HeldColumn
from terascope.connectors.tables.batches import arrow_column
from terascope.connectors.tables.convert import Fault, of_range
from terascope.diagnostic import SourceError
from terascope.functions.spark_form import Operand, SparkArguments, sql_type
from terascope.physical.job import SourceRead
from terascope.plan.expr import Lit
from terascope.plan.show import show_expr
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import arrow_function, by_place, in_places, null, number, place
from terascope.spark.catalyst.operators import floor_divide
from terascope.spark.engine import META
from terascope.spark.session import is_alive
from terascope.types import INT_MAX, Type, value_range

FAULT_BITS = 4
"""`#meta` of a malformed tuple: the place of its first bad column and, in these bits, the Fault."""

ARROW: dict[type[T.DataType], pa.DataType] = {
    T.NullType: pa.null(),
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.DayTimeIntervalType: pa.duration("us"),
}
PER_MICROSECOND = TICK_NS["us"]
PER_DAY = 24 * 3600 * TICK_NS["s"]


# ---- binding -------------------------------------------------------------------------------------


def bound_dataframe(name: str, df: object, partitioned_by: str = "") -> DataFrameInterface:
    """A DataFrame as an interface. `partitioned_by`: the set that Spark's partitions of it are by.

    Raises:
        SourceError: it is none, it is a stream, its Spark was stopped, or two of its columns have
            one name.
    """
    if not isinstance(df, DataFrame):
        raise SourceError(not_a_dataframe(name, df))
    if not is_alive(df.sparkSession):
        raise SourceError(
            f"DataFrame '{name}' is of a Spark that was stopped; make it anew in the one that runs"
        )
    try:
        if df.isStreaming:
            raise SourceError(
                f"DataFrame '{name}' is a stream; only a DataFrame of Spark's batch mode"
                " (spark.read, spark.table, ...) can be bound"
            )
        fields = list(df.schema.fields)
    except PySparkException as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise SourceError(f"DataFrame '{name}' cannot be read: {reason}") from problem
    names = [field.name for field in fields]
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise SourceError(
            f"two columns of DataFrame '{name}' are called '{twice}'; give each a name of its own,"
            " such as with df.toDF(...)"
        )
    held = (HeldColumn(f.name, f.dataType.simpleString(), arrow_of(f.dataType)) for f in fields)
    return DataFrameInterface(name, KIND, name, (), df, tuple(held), partitioned_by)


def not_a_dataframe(name: str, given: object) -> str:
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__qualname__}"
    text = f"'{name}' is bound to a {kind}, not to a DataFrame of Spark"
    tabular = hasattr(given, "columns") and hasattr(given, "shape")
    return text + ("; make one of it with spark.createDataFrame(...)" if tabular else "")


def arrow_of(held: T.DataType) -> pa.DataType | None:
    """The Arrow type of a column, as in a Parquet file; None for types that GSQL lacks."""
    match held:
        case T.DecimalType():
            return pa.decimal128(held.precision, held.scale)
        case T.StringType() | T.CharType() | T.VarcharType():
            return pa.string()
        case _:
            return ARROW.get(type(held))


# ---- reading -------------------------------------------------------------------------------------


def dataframe_tuples(
    spark: SparkSession, interface: DataFrameInterface, read: SourceRead
) -> DataFrame:
    """The tuples of a read, malformed ones marked; not computed yet."""
    names = list(interface.column_names)
    used = [c for c in read.columns if c.name in names]
    raw = in_session(spark, interface.frame, [names.index(c.name) for c in used])
    held = {c.name: interface.held[names.index(c.name)].arrow for c in used}
    raws = {c.name: F.col(place(i)) for i, c in enumerate(used)}
    parsed = {c.name: parsing(c)(raws[c.name]) for c in used if is_parsed(held[c.name], c)}
    # In a step of its own, so that both the value and the fault come from one call.
    raw = raw.select("*", *(made.alias(f"p.{name}") for name, made in parsed.items()))

    def made(column: Column) -> CheckedColumn:
        if column.name == POSITION:
            return CheckedColumn(F.monotonically_increasing_id())
        if column.name in TICKS_NS:
            return CheckedColumn(F.lit(read.arrival_ns // TICKS_NS[column.name]).cast("long"))
        if column.name not in raws:
            return CheckedColumn(F.lit(interface.name))
        if column.name in parsed:
            both = F.col(quoted(f"p.{column.name}"))
            return CheckedColumn(both["value"], both["fault"])
        return as_it_is(raws[column.name], held[column.name], column)

    columns = [
        made(column).without_faults if column.checked_only else made(column)
        for column in read.columns
    ]
    return raw.select(*in_places(c.value for c in columns), first_fault(columns).alias(META))


def in_session(spark: SparkSession, df: DataFrame, places: Sequence[int]) -> DataFrame:
    """Some columns of a DataFrame, as c0, c1, ..., in another session of the same Spark, with
    Terascope's settings. The DataFrame was analysed in its own session.
    """
    plain = by_place(df)
    chosen = plain.select(*in_places(F.col(place(i)) for i in places))
    if not places:  # a view has a column at least
        chosen = plain.select(F.lit(True).alias(place(0)))
    view = f"terascope_{uuid4().hex}"
    chosen.createGlobalTempView(view)
    ours = spark.table(f"global_temp.{view}")
    if not is_remote():  # a server looks the name up whenever it computes
        spark.catalog.dropGlobalTempView(view)
    return ours


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def first_fault(columns: Sequence[CheckedColumn]) -> SparkColumn:
    codes = [
        F.when(c.fault != F.lit(0), c.fault.cast("int") + F.lit(i << FAULT_BITS))
        for i, c in enumerate(columns)
        if c.fault is not None
    ]
    return F.coalesce(*codes, F.lit(None).cast("int"))


def dataframe_reports(
    df: DataFrame, interface: DataFrameInterface, read: SourceRead
) -> dict[str, ReadReport]:
    """The report of reading: one pass over the marked tuples. Their bytes are unknown."""
    report = ReadReport()
    numbers = {
        column.name: F.max(place(i)).alias(place(i))
        for i, column in enumerate(read.columns)
        if column.type.is_integer and not column.name.startswith(HIDDEN_PREFIX)
    }
    meta = F.col(quoted(META)).alias("fault")
    told = df.groupBy(meta).agg(F.count(F.lit(1)).alias("tuples"), *numbers.values()).collect()
    for fault, tuples, *furthest in told:
        if fault is None:
            report.tuples = tuples
            reached = zip(numbers, furthest, strict=True)
            report.horizon = {name: latest for name, latest in reached if latest is not None}
            report.horizon |= {
                c.name: read.arrival_ns // TICKS_NS[c.name]
                for c in read.columns
                if c.name in TICKS_NS
            }
        else:
            column = read.columns[fault >> FAULT_BITS].name
            why = Fault(fault & (1 << FAULT_BITS) - 1).text
            report.malformed[f"column '{column}': {why}"] = tuples
    return {interface.name: report}


def check_partitions(df: DataFrame, interface: DataFrameInterface, read: SourceRead) -> None:
    """Look for a value of the declared set that two partitions have; `df`: the tuples of the read.
    Where Spark knows the partitioning it needs no exchange for that.

    Raises:
        SourceError: there is one.
    """
    if read.partitioned_by is None:
        return
    columns = {column.name: F.col(place(i)) for i, column in enumerate(read.columns)}
    translator = Translator(columns, {})
    expressions = read.partitioned_by.expressions
    values = [translator.column(expr).alias(f"v{i}") for i, expr in enumerate(expressions)]
    for column in read.columns:
        if column.checked_only:  # NULL may be a malformed value, on which no answer depends
            df = df.filter(columns[column.name].isNotNull())
    numbered = df.select(*values, F.spark_partition_id().alias("number"))
    ends = (F.min("number").alias("first"), F.max("number").alias("last"))
    places = numbered.groupBy(*(f"v{i}" for i in range(len(values)))).agg(*ends)
    for *found, first, last in places.filter("first < last").limit(1).collect():
        pairs = zip(expressions, found, strict=True)
        text = ", ".join(f"{show_expr(e)} = {show_expr(Lit(value, e.type))}" for e, value in pairs)
        raise SourceError(
            f"the partitions of {interface.described} are not by {read.partitioned_by}: partitions"
            f" {first} and {last} both have tuples with {text}; partition it by df.repartition(n,"
            " ...), or bind it without partitioned_by"
        )


@dataclass(frozen=True)
class CheckedColumn:
    """A column of the declared type; `fault` is a Fault or 0, None when every value fits."""

    value: SparkColumn
    fault: SparkColumn | None = None

    @property
    def without_faults(self) -> CheckedColumn:
        """NULL where a value does not fit."""
        if self.fault is None:
            return self
        return CheckedColumn(F.when(self.fault == F.lit(0), self.value))


def is_parsed(held: pa.DataType | None, column: Column) -> bool:
    """Whether the values have to be parsed one by one."""
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
    """A column that the JVM can convert, mostly unchanged."""
    if held is not None and pa.types.is_timestamp(held):
        return ticks(F.unix_micros(value.cast("timestamp")), PER_MICROSECOND, column)
    if held is not None and pa.types.is_date(held):
        return ticks(F.unix_date(value).cast("bigint"), PER_DAY, column)
    if held is not None and pa.types.is_null(held):
        return CheckedColumn(null(column.type))
    return of_unsigned(CheckedColumn(value.cast(sql_type(column.type))), column.type)


def of_unsigned(made: CheckedColumn, type: Type) -> CheckedColumn:
    """The check of an unsigned column: no negative numbers, and no UINT beyond 32 bits."""
    if not type.is_unsigned:
        return made
    least, most = value_range(type)
    fault = F.when(made.value < number(least), F.lit(int(Fault.NEGATIVE)))
    fault = fault.when(made.value > number(most), F.lit(int(Fault.ABOVE_UINT)))
    return CheckedColumn(
        made.value, fault.otherwise(F.lit(0) if made.fault is None else made.fault)
    )


def ticks(count: SparkColumn, nanoseconds: int, column: Column) -> CheckedColumn:
    """Times, given as a count of a unit, as nanoseconds or as ticks of the declared clock."""
    limit = INT_MAX // nanoseconds
    fits = count.between(number(-limit), number(limit))
    fault = F.when(~fits, F.lit(int(Fault.OUT_OF_RANGE))).otherwise(F.lit(0))
    value = count * number(nanoseconds)
    if column.clock is not None:
        per_tick = TICK_NS[column.clock]
        divisor = Operand(number(per_tick), Type.LLONG, True, per_tick)
        value = floor_divide(SparkArguments(F, (Operand(value, Type.LLONG), divisor), Type.LLONG))
    return of_unsigned(CheckedColumn(F.when(fits, value), fault), column.type)


def parsing(column: Column) -> Callable[..., SparkColumn]:
    """The conversion of Parquet columns as a Spark function."""

    def parse(values: pa.Array) -> pa.Array:
        made = of_range(arrow_column(values, column), column.type)
        faults = np.zeros(len(values), np.int8) if made.faults is None else made.faults
        codes = pa.array(faults.astype(np.int8))
        return pa.StructArray.from_arrays([made.values, codes], ["value", "fault"])

    return arrow_function(parse, f"value {sql_type(column.type)}, fault tinyint")
