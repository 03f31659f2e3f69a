"""What a stream remembers of declared partitions: contradictions, and what is forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from terascope.connectors.base import Column
from terascope.diagnostic import SourceError
from terascope.execute.partition_check import PartitionHashes
from terascope.partitioning.sets import parse_set
from terascope.physical.ownership import KeyOwnership
from terascope.streaming.partition_values import PartitionValues
from terascope.streaming.state.segments import Segment
from terascope.types import Type

SET = parse_set("a", [Column("a", Type.INT)])
OWNED = KeyOwnership(
    {"left": SET, "right": SET}, {"left": 2, "right": 2}, frozenset(),
    linked=(frozenset({"left", "right"}),),
)  # fmt: skip


def values(folder: Path, before: int = -1) -> PartitionValues:
    return PartitionValues(folder, OWNED, (), (), before)


def report(source: str, number: int, *hashes: int) -> str:
    return PartitionHashes(source, number, np.array(sorted(hashes), np.uint64)).to_json()


def segment(low: int, high: int) -> Segment:
    return Segment("q", "groups", 0, "file", 0, 1, 1, low, high)


def test_a_value_that_comes_in_another_partition_later_is_an_error(tmp_path: Path) -> None:
    known = values(tmp_path)
    known.take(0, [report("left", 0, 1, 2), report("left", 1, 3)], [segment(0, 1)])
    known.take(1, [report("left", 0, 2), report("left", 1, 3, 4)], [segment(1, 1)])
    with pytest.raises(SourceError, match="partition 0 of 'left' and partition 1 of 'left'"):
        known.take(2, [report("left", 1, 2)], [segment(1, 2)])


def test_sources_that_meet_are_checked_together(tmp_path: Path) -> None:
    known = values(tmp_path)
    known.take(0, [report("left", 0, 1)], [segment(0, 1)])
    with pytest.raises(SourceError, match="do not go together"):
        known.take(1, [report("right", 1, 1)], [segment(0, 1)])


def test_values_are_forgotten_with_the_last_slice_they_are_in(tmp_path: Path) -> None:
    known = values(tmp_path)
    known.take(0, [report("left", 0, *range(1, 100))], [segment(0, 3)])
    known.expire([segment(2, 4)])
    assert known.count == 99
    known.take(1, [report("left", 0, 1)], [segment(4, 4)])
    known.expire([segment(4, 4)])
    assert known.count == 1  # only the value that batch 1 had as well
    known.take(2, [report("left", 1, 50)], [segment(5, 5)])
    known.expire([segment(5, 5)])
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["1.values", "2.values"]


def test_what_grows_without_end_is_forgotten(tmp_path: Path) -> None:
    known = values(tmp_path)
    for batch in range(50):
        fresh = range(1 + 100 * batch, 101 + 100 * batch)
        known.take(batch, [report("left", 0, *fresh)], [segment(batch, batch)])
        known.expire([segment(batch, batch)])
    assert known.count == 100
    assert len(list(tmp_path.iterdir())) <= 2


def test_a_restart_knows_what_was_read(tmp_path: Path) -> None:
    first = values(tmp_path)
    first.take(0, [report("left", 0, 7)], [segment(0, 1)])
    first.take(1, [report("left", 0, 8)], [segment(0, 1)])
    again = values(tmp_path, before=0)
    again.take(1, [report("left", 0, 8)], [segment(0, 1)])
    with pytest.raises(SourceError, match="partition 0 of 'left' and partition 1"):
        again.take(2, [report("left", 1, 7)], [segment(1, 1)])
