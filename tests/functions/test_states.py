"""States travel as JSON without code; a user's own are pickled and read from private folders."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from pathlib import Path
from pickle import dumps
from typing import Any

import pyarrow as pa
import pytest

from terascope.functions.base import AggregateFunction, ValueMistake
from terascope.functions.packed_states import packed_object
from terascope.functions.registry import Functions
from terascope.functions.states import decode_state, encode_state
from terascope.functions.user import aggregate
from terascope.kernels.merge.payload import pack_tuples
from terascope.streaming.state.segments import SegmentWriter, Stored, read_segment


@aggregate(takes=("INT",), returns="INT")
class own_state:
    def zero(self) -> Any:
        return {"seen": []}

    def reduce(self, state: Any, value: int) -> Any:
        return state

    def merge(self, left: Any, right: Any) -> Any:
        return left

    def finish(self, state: Any) -> int:
        return 0


def own() -> AggregateFunction:
    made: Any = own_state
    assert isinstance(made, AggregateFunction)
    return made


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.putenv, ("TERASCOPE_BOMB", "1")


def builtin(name: str) -> AggregateFunction:
    found = Functions.builtin().aggregate(name)
    assert found is not None
    return found


@pytest.mark.parametrize("held", [["p", "x"], ["c", 7], ["f", "moon"], ["d", 1], []])
def test_what_is_no_state_is_refused(held: Any) -> None:
    with pytest.raises(ValueMistake, match="damaged"):
        decode_state(builtin("sum"), held, trusted=True)


def test_code_in_the_state_of_a_builtin_aggregate_does_not_run() -> None:
    held = b64encode(dumps(Bomb())).decode()
    with pytest.raises(ValueMistake, match="damaged"):
        decode_state(builtin("sum"), held, trusted=True)
    assert "TERASCOPE_BOMB" not in os.environ


EARLIER = [("sum", 1.5), ("avg", (1.5, 2)), ("posavg", (0, 0)), ("var_samp", (2, 1.0, 0.5, 0.5))]


@pytest.mark.parametrize(("name", "state"), EARLIER)
def test_a_sum_that_an_earlier_version_rounded_is_not_gone_on_with(name: str, state: Any) -> None:
    aggregate = builtin(name)
    held = encode_state(aggregate, state)
    with pytest.raises(ValueMistake, match=r"another version .* --checkpoint"):
        decode_state(aggregate, held, trusted=True)


def test_the_state_of_a_users_aggregate_is_read_only_where_it_is_trusted() -> None:
    seen = Counter(a=2)
    held = encode_state(own(), seen)
    assert decode_state(own(), held, trusted=True) == seen
    with pytest.raises(ValueMistake, match="other users may write"):
        decode_state(own(), held, trusted=False)


@pytest.mark.parametrize("trusted", [False, True])
def test_a_plain_state_of_a_users_aggregate_is_no_pickle(trusted: bool) -> None:
    held = encode_state(own(), {"seen": [1, {2}]})
    assert decode_state(own(), held, trusted) == {"seen": [1, {2}]}


def test_a_stored_pickle_is_refused_where_others_may_write(tmp_path: Path) -> None:
    """A folder of ours is read, the same folder open to others is not, unless states are plain."""
    stored = Stored("stream", None, "shelf")
    states = [packed_object(own(), state) for state in ({"seen": [1]}, Counter(a=2))]
    folder = tmp_path / "slices"
    for packed, refused in zip(states, (False, True), strict=True):
        rows = pa.record_batch({"s0": pa.array([packed], pa.large_binary())})
        with SegmentWriter(folder) as writer:
            writer.append(stored, "rows", 0, pack_tuples(rows))
            writer.close()
        (segment,) = writer.segments
        folder.chmod(0o700)
        assert read_segment(folder, segment) == pack_tuples(rows)
        folder.chmod(0o777)
        if not refused:
            assert read_segment(folder, segment) == pack_tuples(rows)
            continue
        with pytest.raises(ValueMistake, match="saved state of own_state is not read"):
            read_segment(folder, segment)


def test_a_state_with_something_unnamed_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="cannot have a Bomb"):
        encode_state(builtin("sum"), Bomb())
