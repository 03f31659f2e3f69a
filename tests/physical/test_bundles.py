"""Splits for tasks that are waited for together."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.base import Edge, Split
from terascope.physical.splits import even_bundles


def splits(path: Path, seconds: list[tuple[int, int]]) -> list[Split]:
    """Equally large, each of some seconds."""
    path.write_bytes(b"x" * 10 * len(seconds))
    return [
        Split("csv", "t", str(path), 0, 10 * i, 10 * i + 10, bounds=(("time", low, high),))
        for i, (low, high) in enumerate(seconds)
    ]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_tasks_have_equally_much_and_neighbours(tasks: int, tmp_path: Path) -> None:
    some = splits(tmp_path / "a", [(i, i) for i in range(40)])
    made = even_bundles(some, tasks)
    assert [s for bundle in made for s in bundle] == some
    assert len(made) == tasks
    assert max(map(len, made)) - min(map(len, made)) <= 1


def test_an_edge_nearby_is_taken_and_one_far_away_is_not(tmp_path: Path) -> None:
    some = splits(tmp_path / "a", [(10 * i, 10 * i + 9) for i in range(40)])
    cut_at = {
        edge: len(even_bundles(some, 2, edge)[0])
        for edge in (
            Edge("time", 190),  # ends with the 19th split
            Edge("time", 300),  # 30 to 10 would be too uneven
            Edge("time", 300, often=210),  # the second best
            Edge("other", 190),
        )
    }
    assert list(cut_at.values()) == [19, 20, 21, 20]


def test_few_splits_are_tasks_of_their_own(tmp_path: Path) -> None:
    some = splits(tmp_path / "a", [(0, 1), (2, 3)])
    assert even_bundles(some, 4) == [(some[0],), (some[1],)]
    assert even_bundles([], 4) == [()]
