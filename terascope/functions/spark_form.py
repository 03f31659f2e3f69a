"""The Spark forms of functions.

In: nothing. Out: the types of two forms. An aggregate makes a `SparkForm` of a `SparkCall`: what
Spark's GROUP BY computes, and the value made of that (`AggregateFunction.spark`). A scalar makes a
Column of `SparkArguments` (`Scalar.spark`). Only terascope.spark imports pyspark: functions are
handed Columns, and pyspark's functions as `F`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from terascope.types import Type, unified

SparkColumn: TypeAlias = Any
"""A Column of Spark."""


@dataclass(frozen=True)
class SparkForm:
    """The aggregate Columns of a GROUP BY, and the value made of their results."""

    parts: tuple[SparkColumn, ...]
    finish: Callable[[Sequence[SparkColumn]], SparkColumn] = itemgetter(0)


@dataclass(frozen=True)
class Operand:
    """An argument of a scalar: its Column and type, and its value when it is constant."""

    column: SparkColumn
    type: Type
    constant: bool = False
    value: Any = None

    def alike(self, type: Type) -> SparkColumn:
        """The value converted to the wider type that it was unified to."""
        needs_cast = (
            self.type is Type.NULL
            or (type is Type.FLOAT and self.type.is_integer)
            or (type is Type.BINARY and self.type is Type.STRING)
        )
        return self.column.cast(sql_type(type)) if needs_cast else self.column

    def text(self, F: Any) -> SparkColumn:
        """Text unchanged; raw bytes as one character each."""
        if self.type is Type.BINARY:
            return F.decode(self.column, "ISO-8859-1")
        return self.alike(Type.STRING)


@dataclass(frozen=True)
class SparkArguments:
    """A call of a scalar in Spark."""

    F: Any
    """The module pyspark.sql.functions."""
    operands: tuple[Operand, ...]
    type: Type
    """The type of the result."""

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        return tuple(o.column for o in self.operands)

    @property
    def texts(self) -> tuple[SparkColumn, ...]:
        return tuple(o.text(self.F) for o in self.operands)

    @property
    def bytes(self) -> tuple[SparkColumn, ...]:
        return tuple(column.cast("binary") for column in self.columns)

    @property
    def unified(self) -> tuple[SparkColumn, ...]:
        """All arguments as values of the one type that holds them."""
        common = unified(o.type for o in self.operands) or self.operands[0].type
        return tuple(o.alike(common) for o in self.operands)

    @property
    def alike(self) -> tuple[SparkColumn, ...]:
        """All arguments as values of the result's type."""
        return tuple(o.alike(self.type) for o in self.operands)

    def number(self, value: int) -> SparkColumn:
        """An integer of 64 bits."""
        return self.F.lit(value).cast("bigint")

    def null(self, type: Type) -> SparkColumn:
        return self.F.lit(None).cast(sql_type(type))


def sql_type(type: Type) -> str:
    """The type of a column of a GSQL type (see terascope.types) in Spark's SQL."""
    match type:
        case Type.BOOL:
            return "boolean"
        case Type.INT | Type.UINT | Type.LLONG | Type.ULLONG | Type.WIDE:
            return "bigint"
        case Type.FLOAT:
            return "double"
        case Type.STRING | Type.NULL:
            return "string"
        case Type.IP | Type.IPV6 | Type.BINARY:
            return "binary"


SparkScalar: TypeAlias = Callable[[SparkArguments], SparkColumn | None]
"""None when these arguments have no native form: Python computes them then."""


class SparkCall(Protocol):
    """A call of an aggregate in Spark."""

    @property
    def F(self) -> Any:
        """The module pyspark.sql.functions."""

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        """The arguments; none for f(*)."""

    @property
    def value(self) -> SparkColumn:
        """The first argument."""

    @property
    def type(self) -> Type:
        """The type of the first argument."""

    @property
    def distinct(self) -> bool: ...

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The constants of the call: those for the state, then those for the end."""

    @property
    def place(self) -> SparkColumn:
        """The Column that puts tuples in stream order."""

    @property
    def cannot_overflow(self) -> bool:
        """The sum of the argument fits 64 bits, however many tuples a group has."""

    def number(self, value: int) -> SparkColumn:
        """An integer of 64 bits."""

    def overflow(self) -> SparkColumn:
        """Stops the run: the value of the call does not fit 64 bits."""

    def float_sum(self) -> SparkForm:
        """The exact sum of a FLOAT argument, rounded once, under DISTINCT as well."""

    def merged_float_sum(self) -> SparkForm:
        """The same from ranges and digits (terascope.functions.aggregates.float_sums)."""

    def moments(self, finish: Callable[[Any], float | None]) -> SparkForm:
        """A value made of the exact moments (terascope.functions.aggregates.spread) of a group."""
