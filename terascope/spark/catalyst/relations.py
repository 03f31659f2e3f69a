"""Rel -> Frame: every operator of the algebra as DataFrame operations.

In: a tree, and the frames of the sources and of the streams computed before. Out: the Frame of its
rows, hidden columns included. Nothing runs here; Spark computes when rows are collected.

In joins NULL equals nothing, and duplicates on both sides multiply. The columns of both sides get
names of their own (l0, ... and r0, ...), so that a stream can be joined with itself. Rows of an
outer side without a partner have the missing side NULL, except for the columns that `fills` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import assert_never

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from terascope.connectors.base import INTERFACE, LAYERS, interface_of
from terascope.functions.spark_form import Operand
from terascope.physical.job import SourceRead
from terascope.plan import rel as algebra
from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Expr
from terascope.plan.horizon import Horizons
from terascope.plan.rel import IFACE, Join, JoinKind, Lookup, Merge, Project, Rank, Rel, Scan
from terascope.reference.watch_list import read_watch_list
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import Frame, number, place, project, table_frame
from terascope.spark.catalyst.grouping import aggregate_frame
from terascope.spark.catalyst.running import running_frame
from terascope.spark.catalyst.windows import window_frame
from terascope.types import Type, unify

SPARK_KINDS: Mapping[JoinKind, str] = {
    "inner": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "semi": "left_semi",
}


@dataclass(frozen=True)
class Context:
    """The inputs of an operator beside its relations."""

    spark: SparkSession
    sources: Mapping[str, tuple[SourceRead, DataFrame]]
    """The read that delivers each interface, and its tuples as c0, c1, ..."""
    streams: Mapping[str, Frame]
    parameters: Parameters
    horizons: Horizons

    def translator(self, frame: Frame) -> Translator:
        return Translator(frame.columns, self.parameters)


def frame_of(rel: Rel, context: Context) -> Frame:
    match rel:
        case Scan():
            return scan_frame(rel, context)
        case algebra.Read():
            return Frame(context.streams[rel.stream].df, rel.fields)
        case Lookup():
            return table_frame(context.spark, read_watch_list(rel), rel.schema)
        case algebra.Filter():
            source = frame_of(rel.source, context)
            predicate = context.translator(source).typed(rel.predicate, Type.BOOL)
            return Frame(source.df.filter(predicate), source.fields)
        case Project():
            source = frame_of(rel.source, context)
            translator = context.translator(source)
            columns = [translator.typed(expr, expr.type) for _, expr in rel.items]
            return project(source.df, columns, rel.fields)
        case algebra.Window():
            return window_frame(rel, frame_of(rel.source, context))
        case algebra.Aggregate():
            return aggregate_frame(rel, frame_of(rel.source, context), context.parameters)
        case algebra.Running():
            horizon = context.horizons.of(rel.keys[0][1], rel.source)
            return running_frame(rel, frame_of(rel.source, context), context.parameters, horizon)
        case Rank():
            return rank_frame(rel, frame_of(rel.source, context), context)
        case algebra.Join():
            left, right = frame_of(rel.left, context), frame_of(rel.right, context)
            return join_frame(rel, left, right, context.parameters)
        case Merge():
            return merge_frame(rel, [frame_of(s, context) for s in rel.sources])
        case _:
            assert_never(rel)


def scan_frame(rel: Scan, context: Context) -> Frame:
    """The tuples of one protocol, from every read that has one of its interfaces."""
    by_read: dict[str, list[str]] = {}
    for interface in rel.interfaces:
        by_read.setdefault(context.sources[interface][0].name, []).append(interface)
    frames = [read_frame(rel, interfaces, context) for interfaces in by_read.values()]
    return Frame(reduce(DataFrame.union, (f.df for f in frames)), rel.fields)


def read_frame(rel: Scan, interfaces: list[str], context: Context) -> Frame:
    read, df = context.sources[interfaces[0]]
    columns = {c.name: F.col(place(i)) for i, c in enumerate(read.columns)}
    if rel.layer is not None:
        df = df.filter(columns[LAYERS].bitwiseAND(number(rel.layer)) != number(0))
    if {i.name for i in read.interfaces} != set(interfaces):
        df = df.filter(columns[INTERFACE].isin(*{interface_of(name) for name in interfaces}))
    if len({interface_of(i.name) for i in read.interfaces}) == 1:
        columns.setdefault(INTERFACE, F.lit(interface_of(interfaces[0])))
    names = [
        INTERFACE if f.name == IFACE and f.read_from not in columns else f.read_from
        for f in rel.columns
    ]
    return project(df, [columns[name] for name in names], rel.fields)


def rank_frame(rel: Rank, source: Frame, context: Context) -> Frame:
    """The first rows of every combination of the `per` columns. The output sorts its rows
    itself.
    """
    if rel.limit is None:
        return source
    translator = context.translator(source)
    order = [sort_column(translator.column(expr), down) for expr, down in rel.order]
    if not rel.per:
        return Frame(source.df.orderBy(*order).limit(rel.limit), source.fields)
    window = Window.partitionBy(*(source.column(n) for n in rel.per)).orderBy(*order)
    numbered = source.df.withColumn("rank", F.row_number().over(window))
    kept = numbered.filter(F.col("rank") <= F.lit(rel.limit))
    return project(kept, source.columns.values(), source.fields)


def sort_column(column: Column, descending: bool) -> Column:
    """A sort column in which NULL counts as the largest value."""
    return column.desc_nulls_first() if descending else column.asc_nulls_last()


def ordered_rows(
    frame: Frame, order: Iterable[tuple[str, bool]], names: Iterable[str]
) -> DataFrame:
    """Some columns of a frame under their own names, rows in order; True: descending."""
    sorting = [sort_column(frame.column(name), down) for name, down in order]
    df = frame.df.orderBy(*sorting) if sorting else frame.df
    return df.select(*(frame.column(name).alias(name) for name in names))


def merge_frame(rel: Merge, sources: list[Frame]) -> Frame:
    """All tuples of all inputs, columns by position, typed as in the first."""
    frames = []
    for source in sources:
        given = zip(source.columns.values(), source.fields, rel.fields, strict=True)
        columns = [Operand(column, have.type).alike(want.type) for column, have, want in given]
        frames.append(project(source.df, columns, rel.fields).df)
    return Frame(reduce(DataFrame.union, frames), rel.fields)


@dataclass(frozen=True)
class JoinInput:
    """One input of a join: its columns, its join keys and a mark that the side is present."""

    letter: str
    frame: Frame
    keys: tuple[Column, ...]

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: F.col(f"{self.letter}{i}") for i, name in enumerate(self.frame.names)}

    @property
    def key_columns(self) -> list[Column]:
        return [F.col(f"{self.letter}k{i}") for i in range(len(self.keys))]

    @property
    def present(self) -> Column:
        return F.col(f"{self.letter}p")

    @property
    def df(self) -> DataFrame:
        kept = [
            column.alias(f"{self.letter}{i}")
            for i, column in enumerate(self.frame.columns.values())
        ]
        keys = [key.alias(f"{self.letter}k{i}") for i, key in enumerate(self.keys)]
        return self.frame.df.select(*kept, *keys, F.lit(True).alias(f"{self.letter}p"))


def join_frame(rel: Join, left: Frame, right: Frame, parameters: Parameters) -> Frame:
    pairs = [key_pair(a, b, left, right, parameters) for a, b in rel.equalities]
    sides = (
        JoinInput("l", left, tuple(a for a, _ in pairs)),
        JoinInput("r", right, tuple(b for _, b in pairs)),
    )
    both = Translator({**sides[0].columns, **sides[1].columns}, parameters)
    equal = [a == b for a, b in zip(sides[0].key_columns, sides[1].key_columns, strict=True)]
    residual = None if rel.residual is None else both.translate(rel.residual)
    if residual is None or residual.native or rel.kind == "inner":
        conditions = [*equal, residual.column] if residual is not None else equal
        on = reduce(and_, conditions) if conditions else F.lit(True)
        joined = sides[0].df.join(sides[1].df, on, SPARK_KINDS[rel.kind])
    else:
        joined = join_by_parts(rel.kind, sides, equal, residual.column)
    if rel.kind == "semi":
        return project(joined, sides[0].columns.values(), rel.fields)
    return project(joined, filled(rel, sides, both), rel.fields)


def key_pair(
    a: Expr, b: Expr, left: Frame, right: Frame, parameters: Parameters
) -> tuple[Column, Column]:
    """Both sides of an equality as values of one type."""
    common = unify(a.type, b.type) or a.type
    one, other = (Translator(f.columns, parameters) for f in (left, right))
    return one.typed(a, common), other.typed(b, common)


def filled(rel: Join, sides: tuple[JoinInput, JoinInput], both: Translator) -> list[Column]:
    """The columns of both sides, with fill values where a side is missing."""
    fills = dict(rel.fills)
    columns: list[Column] = []
    for side in sides:
        for field, column in zip(side.frame.fields, side.columns.values(), strict=True):
            if field.name in fills:
                value = both.typed(fills[field.name], field.type)
                column = F.when(side.present.isNull(), value).otherwise(column)
            columns.append(column)
    return columns


def join_by_parts(
    kind: JoinKind, sides: tuple[JoinInput, JoinInput], equal: Sequence[Column], residual: Column
) -> DataFrame:
    """An outer or semi-join whose condition calls Python, which Spark supports for inner joins
    only: the pairs, and the rows of each side that are in no pair. Equal rows behave alike, so the
    values of a row identify it.
    """
    left, right = sides
    on = reduce(and_, equal) if equal else F.lit(True)
    pairs = left.df.join(right.df, on, "inner").filter(residual)
    if kind == "semi":
        return found(left, pairs, "left_semi")
    joined = pairs
    if kind in ("left", "full"):
        joined = joined.unionByName(found(left, pairs, "left_anti"), allowMissingColumns=True)
    if kind in ("right", "full"):
        joined = joined.unionByName(found(right, pairs, "left_anti"), allowMissingColumns=True)
    return joined


def found(side: JoinInput, pairs: DataFrame, kind: str) -> DataFrame:
    """The rows of a side that are, or are not, among the pairs."""
    names = [f"{side.letter}{i}" for i in range(len(side.frame.fields))]
    partners = pairs.select(*(F.col(n).alias(f"with_{n}") for n in names)).distinct()
    same = [F.col(n).eqNullSafe(F.col(f"with_{n}")) for n in names]
    return side.df.join(partners, reduce(and_, same), kind)
