"""The bound is below every tree, and the search finds one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bench.trees.lattice import Lattice

pytestmark = pytest.mark.bench


def random_lattice(seed: int, attributes: int) -> Lattice:
    """Groups of independent attributes, as a sample of some tuples would have them."""
    chance = np.random.default_rng(seed)
    tuples = 1000
    codes = [chance.integers(0, chance.integers(2, 40), tuples) for _ in range(attributes)]
    groups = np.ones(1 << attributes)
    for number in range(1, len(groups)):
        some = [codes[i] for i in range(attributes) if number >> i & 1]
        groups[number] = len(np.unique(np.stack(some), axis=1).T)
    return Lattice(groups, float(tuples))


def best_of_all(lattice: Lattice) -> float:
    queries = set(lattice.queries.tolist())
    others = [n for n in range(1, len(lattice.groups)) if n not in queries]
    others = [n for n in others if n.bit_count() > 2]
    sets = (c for size in range(len(others) + 1) for c in combinations(others, size))
    return min(lattice.operations(queries | set(some)) for some in sets)


@pytest.mark.parametrize("seed", range(6))
def test_no_tree_is_below_the_bound(seed: int) -> None:
    lattice = random_lattice(seed, 4)
    best, bound, found = best_of_all(lattice), lattice.bound(400), lattice.searched(5)
    assert bound <= best * (1 + 1e-9)
    assert best <= found <= best * 1.05
    assert bound > 0.5 * best


def test_a_tree_of_pairs_alone_costs_all_tuples_each() -> None:
    lattice = random_lattice(1, 4)
    assert lattice.operations(lattice.queries.tolist()) == 6 * lattice.tuples
