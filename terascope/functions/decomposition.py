"""How an aggregate splits into sub- and super-aggregates (dissertation 3.4.1, paper 1, 3.2).

In: nothing. Out: `Decomposition`, which an aggregate gives of itself: the sub-aggregates of the low
level, the super-aggregate that merges each, and the value made of the merged ones. Functions know
no columns, so what they say of values is a `Term`: a small formula over numbered places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from terascope.functions.base import AggregateFunction, Scalar, Value
from terascope.types import Type


@dataclass(frozen=True)
class Place:
    """The value at that place: an argument of the call, or a merged part."""

    number: int


@dataclass(frozen=True)
class Constant:
    value: Value
    type: Type


@dataclass(frozen=True)
class Apply:
    """A scalar function of terms."""

    function: Scalar
    terms: tuple[Term, ...]


Term: TypeAlias = Place | Constant | Apply
FIRST: Final = Place(0)


@dataclass(frozen=True)
class Part:
    """A value that each partial group carries, in one sub-aggregate or in several that only make
    sense together.
    """

    subs: tuple[tuple[AggregateFunction, tuple[Term, ...]], ...]
    """Sub-aggregates and their arguments, in terms of the arguments of the call; none for f(*)."""
    merge: AggregateFunction
    """The super-aggregate: over the values of the partial groups it gives that of the whole. Its
    arguments are all of the sub-aggregates."""


def single(sub: AggregateFunction, merge: AggregateFunction, *over: Term) -> Part:
    """A part that is one sub-aggregate over these arguments."""
    return Part(((sub, over),), merge)


@dataclass(frozen=True)
class Decomposition:
    parts: tuple[Part, ...]
    finish: Term = FIRST
    """The value of the call, in terms of the merged parts."""
    of_nothing: Value = None
    """The value over no tuples, where no merged part has one."""
