"""The slot of a sub-aggregate: how the low level keeps its state in one 64-bit word of a group.

In: nothing. Out: `SlotKind`, which an aggregate declares (`AggregateFunction.slot`): its initial
state and the statements by which compiled kernels update it, merge it and take values back.
Statements are text, so that functions need no compiler; terascope.kernels writes them into its
kernels.

Beside its slots a group has a state word, which says of each slot whether it has seen a value. A
slot that has not seen one is 0, and NULLs are passed over, so that statements see values only. Most
kinds fold values with an associative and commutative operation: the state of one value is that
value, and an update and a merge are the same statements. What a value must become before that is
said by the terms of the aggregate's decomposition (terascope.functions.base).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from terascope.sketches.base import StateColumn, StateKind


@dataclass(frozen=True)
class SlotKind:
    """The content of a word of a group. Two kinds are equal when their names are."""

    name: str
    statements: tuple[str, ...] = field(compare=False)
    """Take {value} into {slot}, which is 0 as long as {seen}, a condition, does not hold. The value
    is that of a tuple, or the slot of another partial of the same group."""
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
    is_float: bool = field(default=False, compare=False)
    """The word is a FLOAT, else an integer."""
    is_added: bool = field(default=False, compare=False)
    """Two slots are merged by adding them, in 128 bits."""
    is_count: bool = field(default=False, compare=False)
    """A tuple counts as 1, whatever the value of its argument; what has seen nothing is 0."""
    takes_argument: bool = field(default=True, compare=False)
    state: StateKind | None = field(default=None, compare=False)
    """For a state that does not fit a word: the columns that keep it. The word is its number."""

    @property
    def reads_value(self) -> bool:
        """Kernels read the values of the argument; a count needs only which of them are NULL, and
        of states kernels keep no more than the numbers.
        """
        return not self.is_count and self.state is None

    @property
    def is_nullable(self) -> bool:
        """A slot that has seen nothing is NULL; else it is 0."""
        return not self.is_count

    def merging(self, slot: str, value: str, seen: str) -> list[str]:
        """Statements that merge the slot of another partial of the same group into a slot; `seen`
        is the condition that the slot has seen a value already.
        """
        return written(self.statements, slot, value, seen)

    def update(self, slot: str, value: str, seen: str) -> list[str]:
        """Statements that take the value of a tuple into a slot."""
        return self.merging(slot, "1" if self.is_count else value, seen)

    @property
    def start(self) -> int | float:
        """The word of a slot that `update_started` writes to."""
        return self.identity if self.started else 0

    def update_started(self, slot: str, value: str, seen: str) -> list[str]:
        """The same as `update`, for a slot that begins with `start`."""
        if not self.started:
            return self.update(slot, value, seen)
        return written(self.started, slot, value, seen)

    def taking_back(self, slot: str, value: str) -> list[str]:
        return written(self.take_back, slot, value, "")

    @property
    def of_partials(self) -> SlotKind:
        """The kind of slot that takes values of this kind."""
        if self.state is not None:
            return self if self.state.from_states else state_slot(self.state.merging)
        return SUM_INT if self.is_count else self

    def __str__(self) -> str:
        return self.name


def written(statements: tuple[str, ...], slot: str, value: str, seen: str) -> list[str]:
    column = value.partition("[")[0]
    return [line.format(slot=slot, value=value, seen=seen, column=column) for line in statements]


ADDED: Final = ("{slot} += {value}",)
COUNT: Final = SlotKind("count", ADDED, is_added=True, is_count=True, takes_argument=False)
COUNT_OF: Final = SlotKind("count_of", ADDED, is_added=True, is_count=True)
"""Counts tuples whose argument is not NULL."""
SUM_INT: Final = SlotKind("sum_int", ADDED, is_added=True)
"""Adds integers. A table hands a group on before its sum overflows, and partial sums are added in
128 bits: only the whole sum decides whether it fits."""
RANGE: Final = SlotKind("range", ())
"""The range of the FLOATs whose digits the five slots right behind it add
(terascope.functions.exact_floats). Partials of different ranges stay apart, so that there is
nothing to merge; in a table the range is 0."""

NUMBERED: Final = (
    "if not ({seen}):",
    "    {slot} = {column}[np.uint64(len({column}) - 1)]",
    "    {column}[np.uint64(len({column}) - 1)] += 1",
    "{value} = {slot}",
)
"""The update of a slot that numbers its groups: the column has one entry more than there are
tuples, the next free number. Each tuple gets the number of its group."""


def state_slot(kind: StateKind) -> SlotKind:
    """The slot of a state that does not fit a word."""
    return SlotKind(f"state[{kind.name}]", NUMBERED, state=kind)


ANY_STATE: Final = state_slot(StateKind("any", StateColumn, StateColumn))
"""Stands for all states where only the kernels of tables matter, which are the same for all."""
