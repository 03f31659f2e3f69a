"""The slice store: payloads in files, and what of them belongs to which slices."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from terascope.kernels.merge.payload import EPOCHS, pack_tuples, unpack_tuples
from terascope.streaming.state.segments import (
    Segment,
    SegmentWriter,
    Stored,
    extent,
    groups_between,
    read_segment,
)


def groups(runs: list[tuple[int | None, int]]) -> bytes:
    """Partials of some epochs, so many of each; the slot counts them through."""
    ends: list[int] = []
    for _, rows in runs:
        ends.append((ends[-1] if ends else 0) + rows)
    epochs = pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, pa.int32()), pa.array([e for e, _ in runs], pa.int64()), EPOCHS
    )
    slot = pa.array(range(ends[-1]), pa.int64())
    return pack_tuples(pa.RecordBatch.from_arrays([epochs, slot], ["epoch", "s0"]))


def content(payloads: list[bytes]) -> list[tuple[int | None, int]]:
    found: list[tuple[int | None, int]] = []
    for payload in payloads:
        for batch in unpack_tuples(payload):
            epochs = pc.run_end_decode(batch.column("epoch")).to_pylist()
            found += zip(epochs, batch.column("s0").to_pylist(), strict=True)
    return found


RUNS: list[tuple[int | None, int]] = [(3, 2), (4, 1), (7, 2), (None, 1)]


@pytest.mark.parametrize(
    ("low", "high", "kept"),
    [
        (None, 4, [(3, 0), (3, 1)]),
        (4, 7, [(4, 2)]),
        (None, 5, [(3, 0), (3, 1), (4, 2)]),
        (4, None, [(4, 2), (7, 3), (7, 4), (None, 5)]),
        (8, 9, []),
        (None, None, [(3, 0), (3, 1), (4, 2), (7, 3), (7, 4), (None, 5)]),
    ],
)
def test_groups_between(low: int | None, high: int | None, kept: list[object]) -> None:
    """Groups of no epoch come at the end."""
    assert content(list(groups_between(groups(RUNS), low, high))) == kept


def test_every_cut_gives_everything_once() -> None:
    payload = groups(RUNS)
    for cut in range(2, 9):
        parts = [*groups_between(payload, None, cut), *groups_between(payload, cut, None)]
        assert sorted(content(parts), key=lambda row: row[1]) == content([payload])


def test_extent_tells_slices_and_rows_without_one() -> None:
    assert extent(groups(RUNS), "epoch") == (6, 3, 7, True)
    assert extent(groups([(5, 2)]), "epoch") == (2, 5, 5, False)
    rows = pa.RecordBatch.from_pydict({"t": [4, None, 2]})
    assert extent(pack_tuples(rows), "t") == (3, 2, 4, True)
    assert extent(pack_tuples(rows), None) == (3, None, None, True)


def test_writer_shares_files_by_shelf(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path) as writer:
        writer.append(Stored("a", None, "minutes"), "groups", 0, groups([(1, 1)]))
        writer.append(Stored("b", None, "minutes"), "groups", 1, groups([(2, 3)]))
        writer.append(Stored("c", None, "hours"), "groups", 0, groups([(9, 1)]))
    first, second, third = writer.segments
    assert first.file == second.file != third.file
    assert {p.name for p in tmp_path.iterdir()} == {first.file, third.file}
    assert content([read_segment(tmp_path, second)]) == [(2, 0), (2, 1), (2, 2)]
    assert Segment(*json.loads(json.dumps(second))) == second


def test_falling_values_are_noted_with_the_other_sign(tmp_path: Path) -> None:
    rows = pack_tuples(pa.RecordBatch.from_pydict({"t": [9, 5, 7]}))
    with SegmentWriter(tmp_path) as writer:
        writer.append(Stored("a", "t", "a", descending=True), "rows", 0, rows)
    (segment,) = writer.segments
    assert (segment.low, segment.high) == (-9, -5)


def test_attempt_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def attempt() -> None:
        with SegmentWriter(tmp_path) as writer:
            writer.append(Stored("a", None, "x"), "groups", 0, groups([(1, 1)]))
            raise ValueError("died")

    with pytest.raises(ValueError, match="died"):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_segment_before_an_edge() -> None:
    one = Segment("a", "groups", 0, "f", 0, 1, 1, 3, 5)
    assert one.has_before(4)
    assert not one.has_before(3)
    assert one.ends_before(6)
    assert not one.ends_before(5)
    assert not Segment("a", "rows", 0, "f", 0, 1, 1, 3, 5, unsliced=True).ends_before(6)
