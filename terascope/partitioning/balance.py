"""The load of partitions, and advice where one of them has much more than the others.

In: the tuples of each partition of a source. Out: a `Balance`, as text for explain, status and the
end of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from terascope.connectors.base import interface_of, partition_of
from terascope.units import plural

HOT: Final = 1.5
"""A partition with more than this multiple of the mean load is hot."""


@dataclass(frozen=True)
class Balance:
    """The load of the partitions of one source, in tuples or in bytes."""

    source: str
    loads: tuple[float, ...]
    by: str = ""
    """The partitioning set, as text."""

    @property
    def hottest(self) -> int:
        """The partition with the largest load."""
        return max(range(len(self.loads)), key=lambda number: self.loads[number])

    @property
    def skew(self) -> float:
        """The largest load as a multiple of the mean."""
        total = sum(self.loads)
        return max(self.loads) * len(self.loads) / total if total else 1.0

    @property
    def is_hot(self) -> bool:
        return len(self.loads) > 1 and self.skew > HOT

    @property
    def text(self) -> str:
        empty = sum(not load for load in self.loads)
        parts = [plural(len(self.loads), "partition") + (f" by {self.by}" if self.by else "")]
        if any(self.loads):
            parts.append(f"the largest has {self.skew:.2f} times the mean load")
        if empty:
            parts.append(f"{empty} are empty" if empty > 1 else "1 is empty")
        return ", ".join(parts)

    @property
    def advice(self) -> str:
        """What to do about a hot partition; empty where none is."""
        if not self.is_hot:
            return ""
        return (
            f"partition {self.hottest} of {self.source} has {self.skew:.1f} times the mean load:"
            " split by more attributes ('terascope advise' names other sets), into more partitions,"
            " or let 'terascope split --rebalance' move the ranges"
        )


def balances(loads: Mapping[str, float], sets: Mapping[str, str] | None = None) -> list[Balance]:
    """The balance of every source with several partitions. `loads`: by interface; `sets`: the
    partitioning set by source.
    """
    found: dict[str, dict[int, float]] = {}
    for name, load in loads.items():
        number = partition_of(name)
        if number is not None:
            found.setdefault(interface_of(name), {})[number] = load
    return [
        Balance(
            source,
            tuple(some.get(number, 0.0) for number in range(max(some) + 1)),
            (sets or {}).get(source, ""),
        )
        for source, some in found.items()
    ]
