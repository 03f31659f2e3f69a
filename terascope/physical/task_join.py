"""A join that tasks make: of the groups of two streams, epoch by epoch. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from terascope.physical.row_pipeline import RowPipeline
from terascope.plan.expr import Expr
from terascope.plan.rel import Field, JoinKind, Named, Rel
from terascope.types import Type


def can_match(left: Type, right: Type) -> bool:
    """Whether values of two types are compared as they are: integers, or others of one type. There
    is more to FLOATs.
    """
    if left.is_integer and right.is_integer:
        return True
    return left is right and left not in (Type.FLOAT, Type.NULL)


@dataclass(frozen=True)
class Side:
    """One input of a join."""

    stream: int
    """The low-level stream its rows are made of."""
    program: RowPipeline
    fields: tuple[Field, ...]
    rest: int
    """The number under which its rows go up that cannot be joined here."""


@dataclass(frozen=True)
class TaskJoin:
    """A query that joins two streams of groups; see plan.rel.Join."""

    query: str
    kind: JoinKind
    left: Side
    right: Side
    equalities: tuple[tuple[Expr, Expr], ...]
    ahead: int
    """An epoch of the left meets the one so many before it on the right."""
    fills: tuple[Named, ...]
    after: RowPipeline
    """What is done to the rows of the join."""
    fields: tuple[Field, ...]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right


@dataclass(frozen=True)
class Joining:
    """A join of the tasks, and the same for Spark."""

    pairing: TaskJoin
    rest: Rel
    """Reads the streams `rest_name(query, 0)` and `rest_name(query, 1)`."""


def rest_name(query: str, side: int) -> str:
    """The stream of a side's rows that no task could join; no query can have such a name."""
    return f"#{('left', 'right')[side]} {query}"
