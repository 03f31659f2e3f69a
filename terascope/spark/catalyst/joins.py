"""Joins in Spark: NULL equals nothing, duplicates on both sides multiply.

In: two Frames. Out: their join. The columns of both sides get names of their own (l0, ... and
r0, ...), so that a stream can be joined with itself. Rows of an outer side without a partner have
the missing side NULL, except for the columns that `fills` names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.plan.evaluate import Parameters
from terascope.plan.expr import Expr
from terascope.plan.rel import Field, Join, JoinKind
from terascope.spark.catalyst.expressions import Translator
from terascope.spark.catalyst.frame import Frame, project
from terascope.spark.catalyst.operands import Operand, alike
from terascope.types import unify

SPARK_KINDS: Mapping[JoinKind, str] = {
    "inner": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "semi": "left_semi",
}


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
    sides = ((a, left), (b, right))
    columns = [
        alike(Operand(Translator(f.columns, parameters).column(e), e.type), common)
        for e, f in sides
    ]
    return columns[0], columns[1]


def filled(rel: Join, sides: tuple[JoinInput, JoinInput], both: Translator) -> list[Column]:
    """The columns of both sides, with fill values where a side is missing."""
    fills = dict(rel.fills)
    columns: list[Column] = []
    for side in sides:
        for field, column in zip(side.frame.fields, side.columns.values(), strict=True):
            if field.name in fills:
                value = fill_value(fills[field.name], field, both)
                column = F.when(side.present.isNull(), value).otherwise(column)
            columns.append(column)
    return columns


def fill_value(expr: Expr, field: Field, both: Translator) -> Column:
    return alike(Operand(both.column(expr), expr.type), field.type)


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
