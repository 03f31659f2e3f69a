"""The Spark forms of functions.

In: nothing. Out: the types of two forms. An aggregate makes a `SparkForm` of a `SparkCall`: what
Spark's GROUP BY computes, and the value made of that (`AggregateFunction.spark`). A scalar makes a
Column of `SparkArguments` (`Scalar.spark`). Only terascope.spark imports pyspark: functions are
handed Columns, and pyspark's functions as `F`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from terascope.types import Type

SparkColumn: TypeAlias = Any
"""A Column of Spark."""


def itself(parts: Sequence[SparkColumn]) -> SparkColumn:
    return parts[0]


@dataclass(frozen=True)
class SparkForm:
    """AggregateFunction Columns of a GROUP BY, and the value made of their results."""

    parts: tuple[SparkColumn, ...]
    finish: Callable[[Sequence[SparkColumn]], SparkColumn] = itself


class SparkOperand(Protocol):
    """An argument of a scalar: its Column and type, and its value when it is constant."""

    @property
    def column(self) -> SparkColumn: ...

    @property
    def type(self) -> Type: ...

    @property
    def constant(self) -> bool: ...

    @property
    def value(self) -> Any: ...


class SparkArguments(Protocol):
    """A call of a scalar in Spark."""

    @property
    def F(self) -> Any:
        """The module pyspark.sql.functions."""

    @property
    def operands(self) -> Sequence[SparkOperand]: ...

    @property
    def columns(self) -> tuple[SparkColumn, ...]:
        """The Columns of all arguments."""

    @property
    def texts(self) -> tuple[SparkColumn, ...]:
        """All arguments as texts; raw bytes as one character each."""

    @property
    def bytes(self) -> tuple[SparkColumn, ...]:
        """All arguments as bytes."""

    @property
    def unified(self) -> tuple[SparkColumn, ...]:
        """All arguments as values of the one type that holds them."""

    @property
    def alike(self) -> tuple[SparkColumn, ...]:
        """All arguments as values of the result's type."""

    @property
    def type(self) -> Type:
        """The type of the result."""

    def number(self, value: int) -> SparkColumn:
        """An integer of 64 bits."""

    def null(self, type: Type) -> SparkColumn: ...


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
        """What puts tuples in stream order."""

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
