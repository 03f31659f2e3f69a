"""The estimators of `group-counts`."""

from __future__ import annotations

import numpy as np
import pytest

from bench.estimators import ESTIMATORS
from bench.group_counts import REAL_FLOWS, Estimating, drawn_streams, real_streams
from terascope.sharing.distinct import attribute_hashes, count_groups
from terascope.sharing.statistics import SampledStatistics

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_exact_when_all_tuples_are_there(name: str) -> None:
    found = count_groups(attribute_hashes(np.arange(1000) % 300, "a"))
    assert ESTIMATORS[name](found, 1.0) == 300


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_know_common_groups(name: str) -> None:
    found = count_groups(attribute_hashes(np.arange(10_000) % 50, "a"))
    assert ESTIMATORS[name](found, 20.0) == pytest.approx(50)


def test_ours_is_nearer_than_the_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    streams = tuple(hashes for _, hashes in drawn_streams(50_000))
    folder = tmp_path_factory.mktemp("nothing")
    figures = {name: Estimating(name, streams).run(folder) for name in ESTIMATORS}
    ours = figures.pop("terascope")
    assert ours["outside"] == 0
    assert ours["mean 0.1"] < 1.2
    for other in figures.values():
        assert ours["mean 0.1"] <= other["mean 0.1"]


def test_real_connections_are_near() -> None:
    if not REAL_FLOWS.exists():
        pytest.skip(f"no connections at shared/data/flows/{REAL_FLOWS.name}")
    for name, hashes in real_streams(REAL_FLOWS):
        truth = count_groups(hashes).groups
        sample = hashes[np.random.default_rng(7).random(len(hashes)) < 0.1]
        known = SampledStatistics({name: sample}, len(sample), float(len(hashes)))
        low, high = known.bounds(frozenset({name}))
        assert low <= truth <= high
        if truth > 100:
            assert known.groups(frozenset({name})) == pytest.approx(truth, rel=0.25)
