"""How evenly a partitioning spreads the tuples of a sample.

In: a placement and the sample of its sources. Out: for each source the number of different values
of its set, and the load of the fullest partition as a multiple of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.advise.sample import Sample
from terascope.functions.base import ValueMistake
from terascope.partitioning.balance import Balance
from terascope.partitioning.placing import even_bounds, partition_numbers, value_hashes
from terascope.partitioning.sets import PartitionSet, Placement

MOST_TUPLES: Final = 50_000


@dataclass(frozen=True)
class ValueSpread:
    """How the tuples of one source are spread."""

    values: int
    """The different values of the partitioning set."""
    skew: float
    """The load of the fullest partition, as a multiple of the mean."""


@dataclass
class Spreads:
    """The spreads of partitioning sets over a sample, computed once each."""

    sample: Sample
    into: int
    _known: dict[tuple[str, PartitionSet], ValueSpread | None] = field(default_factory=dict)

    def of(self, placement: Placement) -> dict[str, ValueSpread]:
        """By source; those without a sample are not in it."""
        found = {source: self._one(source, by) for source, by in placement.items()}
        return {source: one for source, one in found.items() if one is not None}

    def has_enough(self, placement: Placement) -> bool:
        """Whether every source has as many values as partitions, as far as that is known."""
        return all(one.values >= self.into for one in self.of(placement).values())

    def evenness(self, placement: Placement) -> tuple[float, int]:
        """Smaller for sets that split more evenly: by the skew of the worst source, as precisely as
        a sample tells it, then by its number of values, as more of them make more partitions even.
        """
        known = self.of(placement).values()
        skew = max((round(one.skew, 1) for one in known), default=1.0)
        return skew, -min((one.values for one in known), default=0)

    def _one(self, source: str, by: PartitionSet) -> ValueSpread | None:
        if not by.expressions or source not in self.sample.sources:
            return None
        key = (source, by)
        if key not in self._known:
            self._known[key] = spread(by, self.sample.sources[source].tuples, self.into)
        return self._known[key]


def spread(by: PartitionSet, tuples: pa.Table, into: int) -> ValueSpread | None:
    """How a set spreads some tuples; None: they lack its columns, or it has no value for them."""
    if not tuples.num_rows or not set(by.columns) <= set(tuples.column_names):
        return None
    some = tuples.select(list(by.columns)).slice(0, MOST_TUPLES).combine_chunks().to_batches()[0]
    try:
        hashes = value_hashes(by, some)
    except ValueMistake:
        return None
    loads = loads_of(hashes, into)
    return ValueSpread(len(np.unique(hashes)), Balance("", tuple(loads)).skew)


def loads_of(hashes: NDArray[np.uint64], into: int) -> list[float]:
    """The tuples of each partition."""
    numbers = partition_numbers(hashes, even_bounds(into))
    return [float(count) for count in np.bincount(numbers, minlength=into)]
