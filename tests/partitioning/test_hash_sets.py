"""Sets of hashes: as np.unique says, whatever the batches."""

from __future__ import annotations

import numpy as np
import pytest

from terascope.partitioning.hash_sets import HashSet, first_outside


@pytest.mark.parametrize("distinct", [1, 100, 5000, 60_000])
def test_a_set_has_each_hash_once(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    known = rng.integers(0, 1 << 63, distinct).astype(np.uint64) * np.uint64(2)
    known[0] = 0
    hashes = known[rng.integers(0, distinct, 100_000)]
    found = HashSet()
    for begin in range(0, len(hashes), 7777):
        found.add(hashes[begin : begin + 7777])
    assert np.array_equal(found.values(), np.unique(hashes))
    assert len(found) == len(np.unique(hashes))


def test_the_first_hash_outside_of_a_range() -> None:
    hashes = np.array([5, 7, 9, 1, (1 << 64) - 1], np.uint64)
    assert first_outside(hashes, 0, (1 << 64) - 1) == -1
    assert first_outside(hashes, 5, 8) == 2
    assert first_outside(hashes, 1, 9) == 4
