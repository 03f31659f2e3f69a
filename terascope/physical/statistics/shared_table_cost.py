"""What it takes to look tuples up in one table for several aggregations, or in one for each.

In: how many tuples aggregations with the same keys and different conditions take, and their slots.
Out: nanoseconds. One look-up does for all who want a tuple; but every slot then asks whether it is
one of its own, also of tuples that only others want. Plans of batches, which look at a sample of
their source, and streams, which look at samples of their tasks, ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

TUPLE_NS: Final = 12.0
"""To find the group of a tuple."""
SLOT_NS: Final = 1.0
"""To take it into a slot."""
MASKED_NS: Final = 1.5
"""To take it into one that has a condition of its own, or not."""
VIEW_NS: Final = 20.0
"""To give a group of a common table to one of those who share it, where each has a stream."""


@dataclass(frozen=True)
class Taking:
    """An aggregation: the tuples it takes, and its slots."""

    tuples: float
    slots: int

    @property
    def slots_ns(self) -> float:
        return SLOT_NS * self.slots * self.tuples

    @property
    def apart_ns(self) -> float:
        """In a table of its own."""
        return TUPLE_NS * self.tuples + self.slots_ns


def masked_ns(either: float, members: Sequence[Taking]) -> float:
    """The slots of all in one table, which `either` tuples enter, and a count for each."""
    return MASKED_NS * either * sum(member.slots + 1 for member in members)


def together_ns(either: float, members: Sequence[Taking]) -> float:
    """All in one table."""
    return TUPLE_NS * either + masked_ns(either, members)


def saves_lookups(parts: Iterable[tuple[float, Sequence[Taking]]]) -> bool:
    """Whether aggregations had better share a table than have one each: in every read, the tuples
    that any of them takes, and each of them.
    """
    together = apart = 0.0
    for either, members in parts:
        together += together_ns(either, members)
        apart += sum(member.apart_ns for member in members)
    return 0.0 < together < apart
