from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.functions.slots import SUM_INT
from terascope.kernels.columns.dictionary import Dictionary, dictionary_for
from terascope.kernels.merge.groups import Block
from terascope.kernels.merge.payload import pack, pack_tuples, runs_of, unpack, unpack_tuples
from terascope.kernels.tables.slots import Shape
from terascope.types import Type
from tests.kernels.some_groups import Case, Key, blocks_of, cases, dictionaries_for


def keys_of(payload: bytes) -> list[Key]:
    """The keys of every group in a payload."""
    unpacked = unpack(payload)
    runs = runs_of(unpacked, np.arange(len(unpacked.epochs), dtype=np.int32))
    columns = [[unpacked.epochs.to_pylist()[run] for run in runs]]
    for indices, values in unpacked.keys:
        columns.append(values.take(pa.array(indices)).to_pylist())
    return list(zip(*columns, strict=True))


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(1, 5))
def test_a_group_of_any_worker_goes_to_one_destination(case: Case, destinations: int) -> None:
    sent: Counter[Key] = Counter()
    went: dict[Key, set[int]] = {}
    for partials in case.workers:
        dictionaries = dictionaries_for(case.types)
        blocks = blocks_of(partials, case.shape, dictionaries)
        for destination, payload in pack(blocks, dictionaries, case.shape, destinations):
            assert 0 <= destination < destinations
            for key in keys_of(payload):
                sent[key] += 1
                went.setdefault(key, set()).add(destination)
    assert sent == Counter(key for worker in case.workers for key, _ in worker)
    assert all(len(places) == 1 for places in went.values())


def one_key(count: int) -> tuple[Shape, list[Block], list[Dictionary]]:
    shape = Shape(1, (SUM_INT,))
    dictionary = dictionary_for(Type.LLONG)
    codes = dictionary.encode(pa.array(np.arange(count) * 7919))
    rows = np.zeros((count, shape.stride), np.int64)
    rows[:, 0], rows[:, 1], rows[:, 2] = 3, codes.astype(np.int64) << 32, np.arange(count)
    return shape, [Block.of(7, rows)], [dictionary]


def test_groups_are_spread_evenly_and_by_seed_in_another_way() -> None:
    shape, blocks, dictionaries = one_key(20_000)
    spreads = []
    for seed in (0, 1):
        keys: list[set[Key]] = [set() for _ in range(8)]
        for place, payload in pack(blocks, dictionaries, shape, 8, seed):
            keys[place].update(keys_of(payload))
        assert all(2_200 < len(part) < 2_800 for part in keys)
        spreads.append(keys)
    assert 200 < len(spreads[0][0] & spreads[1][0]) < 450


def test_a_payload_has_only_the_values_that_occur_and_narrow_integers() -> None:
    shape, blocks, dictionaries = one_key(20_000)
    few = [Block.of(1, blocks[0].rows[5:8])]
    ((_, payload),) = pack(few, dictionaries, shape, 1)
    with pa.ipc.open_stream(payload) as stream:
        batch = stream.read_next_batch()
    assert batch.column("k0").dictionary.to_pylist() == [5 * 7919, 6 * 7919, 7 * 7919]
    assert batch.column("s0").type == pa.int8()
    assert batch.column("state").to_pylist() == [3, 3, 3]
    assert batch.column("epoch").to_pylist() == [1, 1, 1]


def test_large_blocks_become_several_payloads() -> None:
    shape, blocks, dictionaries = one_key(20_000)
    packed = list(pack(blocks, dictionaries, shape, 2, 0, 1_000))
    assert len(packed) == 20
    assert max(unpack(payload).rows for _, payload in packed) < 1_200


def test_tuples_travel_as_they_are() -> None:
    batch = pa.record_batch({"a": [1, None, 3], "b": ["x", None, ""]})
    assert [b.to_pydict() for b in unpack_tuples(pack_tuples(batch))] == [batch.to_pydict()]
