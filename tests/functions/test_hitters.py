"""Heavy hitters as aggregates, and functions on their states."""

from __future__ import annotations

import json
from typing import Any

import datasketches
import numpy as np
import pytest

from terascope.functions.aggregates.hitters import HeavyHitters, HittersState, TopK
from terascope.functions.base import AggregateFunction, ValueMistake
from terascope.functions.registry import Functions
from terascope.sketches.base import Traffic, packed_states
from terascope.types import Type, parse_ip

FUNCTIONS = Functions.builtin()
WEIGHTS = {"10.0.0.1": 1200, "10.0.0.2": 40, "192.168.7.7": 600, "2001:db8::1": 40}


def call(name: str, *args: Any) -> Any:
    scalar = FUNCTIONS.scalar(name)
    assert scalar is not None
    result = scalar(*args)
    return json.loads(result) if isinstance(result, str) else result


def reduced(aggregate: AggregateFunction, weights: dict[str, int], *parameters: Any) -> Any:
    state = aggregate.zero("")
    for text, weight in weights.items():
        state = aggregate.reduce(state, parse_ip(text), weight)
    return aggregate.finish(state, *parameters)


def by_columns(aggregate: HittersState, type_: Type, values: Any, weights: Any) -> bytes:
    """The packed state of one group as the engine makes it."""
    kind = aggregate.state((type_, Type.UINT), ("",))
    assert kind is not None
    low, high = kind.low(), kind.high()
    zero = np.zeros(1, np.int64)
    low.iterate(np.zeros(len(values), np.int64), [values, weights])
    full = low.flushed()
    if full is not None:
        high.merge(*full)
    high.merge(zero, low.pack(zero))
    state: bytes = high.pack(zero)[0].as_py()
    return state


def test_heavy_hitters_are_a_list() -> None:
    answer = reduced(HeavyHitters(), WEIGHTS, 3)
    assert json.loads(answer) == [
        {"id": "10.0.0.1", "estimate": 1200, "error": 0},
        {"id": "192.168.7.7", "estimate": 600, "error": 0},
        {"id": "10.0.0.2", "estimate": 40, "error": 0},
    ]


def test_top_k_has_the_weight_of_all_others() -> None:
    assert json.loads(reduced(TopK(), WEIGHTS, 1)) == [
        {"id": "10.0.0.1", "estimate": 1200, "error": 0},
        {"id": None, "other": 680},
    ]


@pytest.mark.parametrize("k", [0, -1, 10_001, 2.5, True])
def test_a_wrong_number_of_identifiers(k: Any) -> None:
    for aggregate in (HeavyHitters(), TopK()):
        with pytest.raises(ValueMistake, match="between 1 and 10000"):
            aggregate.finish(aggregate.zero(""), k)
    check = FUNCTIONS.scalars["hitters_of"].check_constants
    assert check is not None
    with pytest.raises(ValueMistake, match="between 1 and 10000"):
        check([None, k])


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(ValueMistake, match=r"no strategy 'hush'; there are buffer\+direct, "):
        HeavyHitters().zero("hush")


def test_the_state_of_the_engine_says_what_the_reference_does_when_it_is_exact() -> None:
    rng = np.random.default_rng(3)
    ports, lengths = rng.integers(0, 50, 500), rng.integers(40, 1500, 500)
    for aggregate in (HeavyHitters(), TopK()):
        state = aggregate.zero("")
        for port, length in zip(ports.tolist(), lengths.tolist(), strict=True):
            state = aggregate.reduce(state, port, length)
        packed = by_columns(aggregate, Type.UINT, ports, lengths)
        assert aggregate.finish_state(packed, 7) == aggregate.finish(state, 7)


def test_top_k_of_many_identifiers_stays_within_its_error() -> None:
    rng = np.random.default_rng(4)
    ids = np.minimum(rng.zipf(1.2, 50_000), 10**6)
    packed = by_columns(TopK(), Type.UINT, ids, np.ones(len(ids), np.int64))
    *entries, last = json.loads(TopK().finish_state(packed, 5))
    for entry in entries:
        true = int((ids == entry["id"]).sum())
        assert true <= entry["estimate"] <= true + entry["error"]
    assert last["other"] >= len(ids) - sum(e["estimate"] for e in entries)


def test_states_are_merged_as_values() -> None:
    aggregate = HittersState()
    parts = [reduced(aggregate, dict([pair])) for pair in WEIGHTS.items()]
    state = aggregate.zero("")
    for part in parts:
        state = aggregate.reduce(state, part, 1)
    assert call("hitters_of", aggregate.finish(state), 4) == json.loads(
        reduced(HeavyHitters(), WEIGHTS, 4)
    )
    kind = aggregate.state((Type.BINARY, Type.INT), ("",))
    assert kind is not None
    assert kind.from_states
    column = kind.high()
    column.merge(np.zeros(len(parts), np.int64), packed_states(parts))
    (packed,) = column.pack(np.zeros(1, np.int64))
    assert call("hitters_total", packed.as_py()) == sum(WEIGHTS.values())


def test_functions_on_states() -> None:
    state = reduced(HittersState(), WEIGHTS)
    assert call("estimate_of", state, parse_ip("10.0.0.1")) == 1200
    assert call("estimate_of", state, "2001:db8::1") == 40
    assert call("estimate_of", state, parse_ip("10.0.0.99")) == 0
    assert call("hitters_total", state) == 1880
    assert call("hitters_error", state) == 0
    assert call("heavy_prefixes", state, 0.5) == [
        {"prefix": "10.0.0.1/32", "estimate": 1200, "rest": 1200, "error": 0}
    ]
    later = reduced(HittersState(), WEIGHTS | {"10.0.0.1": 900, "10.0.0.2": 90})
    assert call("heavy_changes", state, later, 2) == [
        {"id": "10.0.0.1", "change": -300, "error": 0},
        {"id": "10.0.0.2", "change": 50, "error": 0},
    ]


def test_frequent_items_are_those_of_datasketches() -> None:
    rng = np.random.default_rng(5)
    ids = np.minimum(rng.zipf(1.2, 20_000), 10**9)
    ones = np.ones(len(ids), np.int64)
    for values in (ids, ids[:20], ids[:0]):
        state = by_columns(TopK(), Type.UINT, values, ones[: len(values)])
        data = call("frequent_bytes", state)
        sketch = datasketches.frequent_items_sketch.deserialize(data, datasketches.PyLongsSerDe())
        assert sketch.total_weight == len(values)
        for item in set(values[:50].tolist()):
            assert sketch.get_upper_bound(item) == call("estimate_of", state, item)


def test_functions_name_themselves_in_mistakes() -> None:
    state = reduced(HittersState(), WEIGHTS)
    numbers = HittersState().finish(HittersState().reduce((), 7, 1))
    for name, args in (
        ("hitters_of", (b"nonsense", 5)),
        ("hitters_total", (state[:-3],)),
        ("estimate_of", (state, 7)),
        ("heavy_changes", (state, numbers, 5)),
        ("heavy_prefixes", (numbers, 0.1)),
        ("heavy_prefixes", (state, 0)),
        ("frequent_bytes", (state,)),
    ):
        with pytest.raises(ValueMistake, match=name):
            call(name, *args)


def test_identifiers_are_written_as_they_are() -> None:
    for value, text in (
        (True, "true"),
        (-7, "-7"),
        (0.5, "0.5"),
        (float("nan"), '"nan"'),
        ("é", '"é"'),
    ):
        aggregate = HeavyHitters()
        answer = aggregate.finish(aggregate.reduce(aggregate.zero(""), value, 2), 1)
        assert answer == f'[{{"id": {text}, "estimate": 2, "error": 0}}]'


def test_a_strategy_says_how_many_identifiers_are_exact() -> None:
    aggregate = HeavyHitters()
    for known in ("compress+adaptive(256)", "hash+adaptive", "buffer+adaptive(1)", "low_sketch"):
        assert aggregate.has_strategy(known)
    for number in ("(0)", "(99999)", "()", "(-1)", "(64", "(1.5)"):
        assert not aggregate.has_strategy(f"compress+adaptive{number}")
    for text in ("hash+direct(64)", "adaptive(64)"):
        assert not aggregate.has_strategy(text)
        with pytest.raises(ValueMistake, match="has no strategy"):
            aggregate.zero(text)
    kinds = [aggregate.state((Type.UINT, Type.UINT), (s,)) for s in ("", "compress+adaptive")]
    assert [kind.strategy for kind in kinds if kind] == [
        "compress+adaptive(2048)",
        "compress+adaptive",
    ]
    assert kinds[0] is not None
    assert kinds[0].choose is not None
    few, many = (kinds[0].choose(Traffic(t, g, 0.0)) for t, g in ((1e6, 1e4), (1e9, 1e5)))
    assert (few.strategy, many.strategy) == ("compress+adaptive(2048)", "compress+adaptive(512)")
