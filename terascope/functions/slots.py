"""The slot of a sub-aggregate: how the low level keeps its state in one 64-bit word of a group.

In: nothing. Out: `SlotKind`, which an aggregate declares (`AggregateFunction.slot`): its initial
state and the statements by which compiled kernels update it, merge it and take values back.
Statements are text, so that functions need no compiler; terascope.kernels writes them into its
kernels.

Beside its slots a group has a state word, which says of each slot whether it has seen a value. A
slot that has not seen one is 0, and NULLs are passed over, so that statements see values only. An
aggregate of its own declares a `Fold`: the state of one value is that value, and an update and a
merge are the same statement. What a value must become before that is said by the terms of the
aggregate's decomposition (terascope.functions.decomposition).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Final


@dataclass(frozen=True)
class SlotKind(ABC):
    """What a word of a group holds. Two kinds are equal when their names are."""

    name: str
    is_float: bool = field(default=False, compare=False, kw_only=True)
    """The word is a FLOAT, else an integer."""
    takes_argument: ClassVar[bool] = True
    reads_value: ClassVar[bool] = True
    """Kernels read the values of the argument; a count needs only which of them are NULL."""
    is_added: ClassVar[bool] = False
    """Two slots are merged by adding them."""
    is_nullable: ClassVar[bool] = True
    """A slot that has seen nothing is NULL; else it is 0."""

    @abstractmethod
    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        """Statements that merge the slot of another partial of the same group into a slot; `seen`
        is the condition that the slot has seen a value already.
        """

    def update(self, slot: str, value: str, seen: str) -> list[str]:
        """Statements that take the value of a tuple into a slot."""
        return self.merging(slot, value, seen)

    @property
    def start(self) -> int | float:
        """The word of a slot that `update_started` writes to."""
        return 0

    def update_started(self, slot: str, value: str, seen: str) -> list[str]:
        """As `update`, for a slot that begins with `start`."""
        return self.update(slot, value, seen)

    @property
    def of_partials(self) -> SlotKind:
        """The kind of slot that takes values of this kind."""
        return self

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TupleCount(SlotKind):
    """Counts tuples."""

    takes_argument: ClassVar[bool] = False
    reads_value: ClassVar[bool] = False
    is_added: ClassVar[bool] = True
    is_nullable: ClassVar[bool] = False

    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        return [f"{slot} += {value}"]

    def update(self, slot: str, value: str, seen: str) -> list[str]:
        return [f"{slot} += 1"]

    @property
    def of_partials(self) -> SlotKind:
        return SUM_INT


@dataclass(frozen=True)
class ValueCount(TupleCount):
    """Counts tuples whose argument is not NULL."""

    takes_argument: ClassVar[bool] = True


@dataclass(frozen=True)
class IntegerSum(SlotKind):
    """Adds integers. A table hands a group on before its sum overflows, and partial sums are added
    in 128 bits: only the whole sum decides whether it fits.
    """

    is_added: ClassVar[bool] = True

    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        return [f"{slot} += {value}"]


@dataclass(frozen=True)
class DigitRange(SlotKind):
    """The range of the FLOATs whose digits the five slots right behind it add
    (terascope.functions.exact_floats). Partials of different ranges stay apart, so that there is
    nothing to merge; in a table the range is 0.
    """

    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        return []


@dataclass(frozen=True)
class Fold(SlotKind):
    """Folds values with an associative and commutative operation."""

    statements: tuple[str, ...] = field(compare=False)
    """Take {value} into {slot}, which is 0 as long as {seen}, a condition, does not hold."""
    identity: int | float = field(default=0, compare=False)
    """The value that changes no other."""
    started: tuple[str, ...] = field(default=(), compare=False)
    """The same without {seen}, for a slot that begins with the identity: the processor has no
    branch to guess. Empty if `statements` serve."""
    take_back: tuple[str, ...] = field(default=(), compare=False)
    """Take {value} out of {slot} again, if the operation has an inverse and the identity 0: a
    sliding window needs one slot then, else two stacks of them."""
    numpy: str = field(default="", compare=False)
    """The operation as a ufunc of numpy; without one, numpy runs the statements for each value."""

    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        return written(self.statements, slot, value, seen)

    @property
    def start(self) -> int | float:
        return self.identity if self.started else 0

    def update_started(self, slot: str, value: str, seen: str) -> list[str]:
        return written(self.started or self.statements, slot, value, seen)

    def taking_back(self, slot: str, value: str) -> list[str]:
        return written(self.take_back, slot, value, "")


def written(statements: tuple[str, ...], slot: str, value: str, seen: str) -> list[str]:
    return [line.format(slot=slot, value=value, seen=seen) for line in statements]


COUNT: Final = TupleCount("count")
COUNT_OF: Final = ValueCount("count_of")
SUM_INT: Final = IntegerSum("sum_int")
RANGE: Final = DigitRange("range")
