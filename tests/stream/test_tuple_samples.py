"""Samples of tasks: every tuple has the same chance, and what they say can be put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from terascope.connectors.base import Column
from terascope.functions import slots
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot
from terascope.physical.statistics.sampling import Thinning
from terascope.plan.build import call
from terascope.plan.expr import Col, Expr, Lit
from terascope.plan.show import show_expr
from terascope.streaming.replan.samples import (
    MOST_TUPLES,
    Sampler,
    SliceSamples,
    TupleSample,
    sampled_traffic,
    statistics_of,
)
from terascope.streaming.replan.tree_plans import families_of
from terascope.types import Type

COUNT = Slot("n", slots.COUNT, None, Type.LLONG)
TYPES = {"ts": Type.LLONG, "a": Type.LLONG, "s": Type.STRING}


def col(name: str) -> Col:
    return Col(name, TYPES[name])


EPOCH = call("/", col("ts"), Lit(10, Type.LLONG))
ODD = call("%", col("a"), Lit(2, Type.LLONG))


def plan(signature: tuple[int, ...] = ()) -> LowPlan:
    keys: list[tuple[Expr, ...]] = [(col("a"),), (col("s"),), (ODD, col("s"))]
    queries = tuple(
        LowAggregate(
            f"q{i}",
            ("left",),
            signature,
            (),
            (("tb", EPOCH), *((f"k{j}", expr) for j, expr in enumerate(some))),
            0,
            (COUNT,),
        )
        for i, some in enumerate(keys)
    )
    columns = tuple(Column(name, type) for name, type in TYPES.items())
    predicates = (call("<", col("a"), Lit(5, Type.LLONG)),)
    return LowPlan(columns, predicates, queries, compiled=False)


def tuples(rows: Sequence[tuple[int | None, int | None, str | None]]) -> pa.RecordBatch:
    vectors = zip(*rows, strict=True)
    types = [pa.int64(), pa.int64(), pa.string()]
    arrays = [pa.array(vector, type) for vector, type in zip(vectors, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(TYPES))


def sampled(made: LowPlan, *batches: pa.RecordBatch, most: int = 10_000) -> list[TupleSample]:
    sampler = Sampler("left", made, most, 3)
    for batch in batches:
        sampler.see(batch)
    return [TupleSample.of(one.to_text()) for one in sampler.samples()]


values = st.tuples(
    st.one_of(st.none(), st.integers(0, 50)),
    st.one_of(st.none(), st.integers(-3, 9)),
    st.sampled_from([None, "", "x", "yy"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(values, min_size=1, max_size=40), st.integers(0, 40), st.booleans())
def test_a_whole_sample_has_the_groups_of_its_tuples(
    rows: list[tuple[int | None, int | None, str | None]], cut: int, some: bool
) -> None:
    """Whoever read which tuples: hashes are of values, and NULL is one."""
    made = plan((0,) if some else ())
    parts = [part for part in (rows[:cut], rows[cut:]) if part]
    found = [one for part in parts for one in sampled(made, tuples(part))]
    taken = [
        (ts // 10, a, s, None if a is None else int(np.fmod(a, 2)))
        for ts, a, s in rows
        if ts is not None and (not some or (a is not None and a < 5))
    ]
    names = sorted(found[0].keys) if found else []
    got = Counter(
        (int(one.epochs[i]), *(int(one.keys[name][i]) for name in names))
        for one in found
        for i in range(len(one))
    )
    assert sorted(got.values()) == sorted(Counter(taken).values())
    assert sum(len(one) for one in found) == len(taken)


@settings(max_examples=40, deadline=None)
@given(st.lists(values, min_size=1, max_size=40))
def test_a_sample_of_several_conditions_tells_who_takes_which_tuples(
    rows: list[tuple[int | None, int | None, str | None]],
) -> None:
    """A key that overflows among tuples of others is asked of those of its own."""
    huge = call("*", col("a"), Lit(1 << 61, Type.LLONG))
    first, *rest = plan().queries
    assert isinstance(first, LowAggregate)
    small = (call("<", col("a"), Lit(3, Type.LLONG)), call(">=", col("a"), Lit(0, Type.LLONG)))
    own = replace(first, name="own", signature=(1, 2), keys=(("tb", EPOCH), ("k", huge)))
    made = replace(
        plan(),
        predicates=(*plan().predicates, *small),
        queries=(replace(first, signature=(0,)), own, *(replace(q, signature=(0,)) for q in rest)),
    )
    (family,) = families_of("left", made)
    found = sampled(made, tuples(rows))
    taken = [(ts, a) for ts, a, _ in rows if ts is not None and a is not None and a < 5]
    assert sum(len(one) for one in found) == len(taken)
    if not taken:
        return
    (one,) = found
    most, few = family.conditions[:2]
    assert set(one.met) == {most, few}
    assert one.met[most].all()
    assert one.met[few].sum() == sum(0 <= a < 3 for _, a in taken)
    assert len(set(one.keys[show_expr(huge)][one.met[few]].tolist())) == len(
        {a for _, a in taken if 0 <= a < 3}
    )
    (piece,) = list(one.pieces())[:1]
    assert len(piece.meeting([few])) == piece.met[few].sum()
    assert len(piece.meeting([few, most])) == len(piece)


def test_traffic_is_told_for_any_conditions() -> None:
    """Half of the tuples meet one condition, a quarter another; none of both."""
    keys = np.arange(4000, dtype=np.uint32)
    met = {"half": keys % 2 == 0, "quarter": keys % 4 == 1, "none": keys < 0}
    sample = TupleSample("f", 1.0, np.zeros(4000, np.int64), {"k": keys % 1000}, met)
    pieces = list(sample.pieces())
    traffic = sampled_traffic([*pieces, *pieces])
    for conditions, tuples, groups in (
        ({"half"}, 2000, 500), ({"quarter"}, 1000, 250), ({"half", "quarter"}, 3000, 750),
        ({"none"}, 0, 0),
    ):  # fmt: skip
        found, number = traffic(frozenset(conditions))
        assert found.tuples * number == pytest.approx(2 * tuples)
        if tuples:
            assert found.groups(frozenset({"k"})) == pytest.approx(groups)


def test_samples_are_small_and_every_tuple_has_the_same_chance() -> None:
    chosen = np.zeros(5000)
    for seed in range(60):
        thinned = Thinning(300, seed)
        for start in range(0, 5000, 700):
            numbers = np.arange(start, min(start + 700, 5000))
            thinned.add(0, pa.RecordBatch.from_arrays([pa.array(numbers)], ["n"]))
        kept = np.concatenate([batch.column("n").to_numpy() for _, batch, _ in thinned.batches])
        assert len(kept) <= 300
        assert len(set(kept.tolist())) == len(kept)
        chosen[kept] += 1 / thinned.chance
    by_batch = [chosen[start : start + 700].mean() / 60 for start in range(0, 5000, 700)]
    assert by_batch == pytest.approx([1.0] * len(by_batch), abs=0.12)


def piece(epoch: int, keys: NDArray[np.int64], chance: float = 1.0) -> TupleSample:
    epochs = np.full(len(keys), epoch, np.int64)
    return TupleSample("family", chance, epochs, {"k": keys.astype(np.uint32)})


def test_statistics_are_those_of_the_pieces_of_tasks() -> None:
    """Two tasks with the same hundred groups each have a hundred, and so has the mean."""
    made = SliceSamples()
    keys = np.tile(np.arange(100), 5)
    made.add([piece(1, keys), piece(1, keys)])
    made.add([piece(1, keys[:250]), piece(2, keys)])
    (over,) = made.take_over()
    found = statistics_of(over)
    assert found.tuples == pytest.approx(1250 / 3)
    assert found.groups(frozenset({"k"})) == 100.0
    assert made.take_over() == []


def test_pieces_that_were_thinned_differently_are_thinned_alike() -> None:
    random = np.random.default_rng(2)
    everything = random.integers(0, 2000, (3, 8000))
    parts = []
    for chance, keys in zip((1.0, 0.5, 0.25), everything, strict=True):
        parts.append(piece(1, keys[random.random(8000) < chance], chance))
    made = SliceSamples()
    made.add([*parts, piece(2, everything[0])])
    (over,) = made.take_over()
    found = statistics_of(over)
    assert found.tuples == pytest.approx(8000, rel=0.03)
    truth = float(np.mean([len(np.unique(keys)) for keys in everything]))
    assert found.groups(frozenset({"k"})) == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("chance", [1 / 4, 1 / 32, 1 / 128])
def test_short_slices_of_which_nothing_was_drawn_are_counted(chance: float) -> None:
    """40 tuples each, of 10 groups: most have no tuple in a small sample."""
    random = np.random.default_rng(4)
    made = SliceSamples()
    for epoch in range(20_000):
        keys = random.integers(0, 10, random.binomial(40, chance))
        if len(keys):
            made.add([piece(epoch, keys, chance)])
    found = statistics_of([one for pieces in made.take_over() for one in pieces])
    assert found.tuples == pytest.approx(40, rel=0.1)
    assert found.epochs == pytest.approx(20_000, rel=0.1)


def test_what_is_kept_of_a_slice_is_bounded() -> None:
    made = SliceSamples()
    for _ in range(100):
        made.add([piece(1, np.arange(2000))])
    made.add([piece(2, np.arange(3))])
    (over,) = made.take_over()
    assert 0 < sum(len(one) for one in over) <= MOST_TUPLES
    assert {len(one) for one in over} == {2000}, "rather fewer pieces than less of each"


def test_tuples_of_a_slice_that_was_judged_are_passed_over() -> None:
    made = SliceSamples()
    made.add([piece(1, np.arange(9)), piece(3, np.arange(9))])
    assert len(made.take_over()) == 1
    made.add([piece(1, np.arange(9)), piece(0, np.arange(9)), piece(2, np.arange(9))])
    assert len(made.take_over()) == 1, "slice 2 alone"
