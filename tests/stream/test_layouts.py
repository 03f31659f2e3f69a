"""Payloads of a set that has changed: slots in other places, slots that are new."""

from __future__ import annotations

import pyarrow as pa

from terascope.kernels.merge.payload import EPOCHS, pack_tuples, unpack_tuples
from terascope.streaming.state.segments import Layouts

BEFORE = ["time DIV 10", "srcIP", "count()", "sum_int(len)", "max_int(ttl)"]


def payload() -> bytes:
    epochs = pa.RunEndEncodedArray.from_arrays(
        pa.array([2], pa.int32()), pa.array([7], pa.int64()), EPOCHS
    )
    # Bit 0: a group; bits 1 to 3: count, sum and max have a value; the second has no max.
    return pack_tuples(
        pa.RecordBatch.from_arrays(
            [
                epochs,
                pa.array(["x", "y"]).dictionary_encode(),
                pa.array([0b1111, 0b0111], pa.int8()),
                pa.array([2, 3]),
                pa.array([20, 30]),
                pa.array([64, 0]),
            ],
            ["epoch", "k0", "state", "s0", "s1", "s2"],
        )
    )


def test_same_layout_is_left_alone() -> None:
    one = payload()
    assert Layouts({"then": BEFORE}).groups(one, "then", BEFORE, 2) is one


def test_slots_move_and_new_ones_have_seen_nothing() -> None:
    now = ["time DIV 10", "srcIP", "max_int(ttl)", "max_float(x)", "count()"]
    made = Layouts({"then": BEFORE}).groups(payload(), "then", now, 2)
    (batch,) = unpack_tuples(made)
    assert batch.column("s0").to_pylist() == [64, 0]
    assert batch.column("s1").to_pylist() == [0.0, 0.0]
    assert batch.column("s2").to_pylist() == [2, 3]
    assert batch.column("state").to_pylist() == [0b1011, 0b1001]
    assert batch.column("k0").to_pylist() == ["x", "y"]


def test_rows_by_what_their_columns_are() -> None:
    rows = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["p", "q"]})
    layouts = Layouts({"then": ["len", "srcIP"]})
    types = [pa.string(), pa.int64(), pa.float64()]
    made = layouts.rows(rows, "then", ["srcIP", "len", "rate"], types)
    assert [column.to_pylist() for column in made] == [["p", "q"], [1, 2], [None, None]]
