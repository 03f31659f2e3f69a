"""Bounded tables lose nothing, keep order, and evict exactly whom their policy names."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cache.placement import chain_lengths, places
from terascope.functions.aggregates.folding import (
    AND_INT,
    MAX_FLOAT,
    MAX_INT,
    MIN_FLOAT,
    MIN_INT,
    OR_INT,
    XOR_INT,
)
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT, SlotKind
from terascope.kernels.columns.arrays import Rows
from terascope.kernels.tables.bounded_tables import (
    LATE_LIMIT,
    OUTPUT_ROWS,
    BoundedTable,
    Flush,
    capacity_for,
)
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import POLICIES, Policy
from tests.kernels.table_models import (
    Name,
    Number,
    Tuple,
    collector,
    fed,
    merged,
    model_of,
    read_row,
    same,
    slots_of,
)
from tests.settings import SOAK

SMALL = Shape(1, (COUNT, SUM_INT), with_epoch=True)
LARGE = Shape(
    3,
    (
        COUNT,
        COUNT_OF,
        SUM_INT,
        MIN_INT,
        MAX_INT,
        MIN_FLOAT,
        MAX_FLOAT,
        OR_INT,
        AND_INT,
        XOR_INT,
    ),
    with_epoch=True,
)
KEYLESS = Shape(0, (COUNT, MAX_INT), with_epoch=True)
SHAPES = (SMALL, LARGE, KEYLESS) if SOAK else (SMALL,)
"""Each shape of each policy takes seconds to compile."""
FLUSHES: tuple[Flush, ...] = ("eager", "lazy")

CODES = [*range(40), -1, 2**31 - 1, 70_000]
CALM_INTEGERS = [0, 1, 7, -5, 2**40]
WILD_INTEGERS = [None, *CALM_INTEGERS, 2**62, -(2**62), 2**63 - 1, -(2**63)]
CALM_FLOATS = [0.0, 1.5, -2.25, 1024.0]
WILD_FLOATS = [None, *CALM_FLOATS, float("nan")]


@dataclass(frozen=True)
class Stream:
    """Tuples for a table. They come from a seed: streams that hypothesis builds tuple by tuple are
    too short and too even to make groups meet in a table.
    """

    shape: Shape
    seed: int
    length: int
    groups: int
    advance: float
    """How likely an epoch ends after a tuple."""
    late: float
    """How likely a tuple is late."""
    wild: bool
    """Whether arguments are NULL, NaN, or so large that sums overflow."""

    def batches(self) -> list[list[Tuple]]:
        chance = random.Random(self.seed)
        keys = [tuple(chance.choices(CODES, k=self.shape.keys)) for _ in range(self.groups)]
        rows, epoch = [], -3
        for _ in range(self.length):
            epoch += chance.random() < self.advance
            behind = chance.choice([1, 1, 2, 5]) if chance.random() < self.late else 0
            arguments = tuple(self._argument(kind, chance) for kind in self.shape.slots)
            taken = tuple(
                a for a, k in zip(arguments, self.shape.slots, strict=True) if k.takes_argument
            )
            rows.append(Tuple(epoch - behind, chance.choice(keys), taken))
        cuts = sorted(chance.choices(range(self.length + 1), k=2))
        return [rows[a:b] for a, b in pairwise([0, *cuts, self.length])]

    def _argument(self, kind: SlotKind, chance: random.Random) -> Number:
        if kind.is_float:
            return chance.choice(WILD_FLOATS if self.wild else CALM_FLOATS)
        return chance.choice(WILD_INTEGERS if self.wild else CALM_INTEGERS)


def streams(late: tuple[float, ...] = (0.0, 0.03, 0.4)) -> st.SearchStrategy[Stream]:
    return st.builds(
        Stream,
        shape=st.sampled_from(SHAPES),
        seed=st.integers(0, 2**32),
        length=st.integers(1, 200),
        groups=st.sampled_from([1, 3, 10, 30]),
        advance=st.sampled_from([0.0, 0.02, 0.1, 0.5]),
        late=st.sampled_from(late),
        wild=st.booleans(),
    )


POLICY = st.sampled_from(POLICIES)
FLUSH = st.sampled_from(FLUSHES)
CAPACITY = st.sampled_from([1, 2, 3, 7, 64])
OUTPUT = st.sampled_from([3, 4, 50])


def opened(
    shape: Shape, policy: Policy, capacity: int, flush: Flush, output_rows: int = OUTPUT_ROWS
) -> tuple[BoundedTable, list[Rows]]:
    rows, take = collector()
    return BoundedTable(shape, policy, capacity, flush, take, output_rows), rows


@given(streams(), POLICY, CAPACITY, FLUSH, OUTPUT)
@settings(max_examples=150 if SOAK else 60, deadline=None)
def test_partials_combined_are_the_groups(
    stream: Stream,
    policy: Policy,
    capacity: int,
    flush: Flush,
    output: int,
) -> None:
    shape, batches = stream.shape, stream.batches()
    table, rows = opened(shape, policy, capacity, flush, output)
    for batch in batches:
        fed(table, batch)
        assert table.occupied <= capacity
    table.flush()
    assert table.occupied == table.waiting == 0

    partials: dict[Name, list[tuple[Number, ...]]] = defaultdict(list)
    for row in rows:
        name, slots = read_row(shape, row)
        partials[name].append(slots)
    groups: dict[Name, list[Tuple]] = defaultdict(list)
    for tuple_ in (t for batch in batches for t in batch):
        groups[tuple_.name].append(tuple_)
    assert partials.keys() == groups.keys()
    for name, members in groups.items():
        assert same(merged(shape, partials[name]), slots_of(shape, members))


@given(streams(late=(0.0,)), POLICY, CAPACITY, FLUSH, OUTPUT)
@settings(max_examples=100, deadline=None)
def test_epochs_leave_in_order(
    stream: Stream,
    policy: Policy,
    capacity: int,
    flush: Flush,
    output: int,
) -> None:
    shape, batches = stream.shape, stream.batches()
    table, rows = opened(shape, policy, capacity, flush, output)
    for batch in batches:
        fed(table, batch)
    table.flush()
    epochs = [int(row[1]) for row in rows]
    assert epochs == sorted(epochs)
    assert table.counters.late == 0


@given(streams(), POLICY, CAPACITY, FLUSH, OUTPUT)
@settings(max_examples=300, deadline=None)
def test_rows_leave_as_from_the_model(
    stream: Stream,
    policy: Policy,
    capacity: int,
    flush: Flush,
    output: int,
) -> None:
    """Which groups leave, in which order, with which tuples in them, late ones included."""
    shape, batches = stream.shape, stream.batches()
    table, rows = opened(shape, policy, capacity, flush, output)
    model = model_of(table, policy, flush)
    for batch in batches:
        fed(table, batch)
        for tuple_ in batch:
            model.add(tuple_)
        assert table.occupied == len(model.groups())
        assert table.waiting == len(model.old())
    table.flush()
    model.drain(everything=True)

    got = [read_row(shape, row) for row in rows]
    assert [name for name, _ in got] == [group.name for group in model.out]
    for (_, slots), group in zip(got, model.out, strict=True):
        assert same(slots, slots_of(shape, group.tuples))
    counters = table.counters
    assert len(rows) == counters.evictions + counters.flushed + counters.late
    assert counters.probes == sum(len(batch) for batch in batches)


@given(streams(late=(0.0,)), POLICY, st.sampled_from([2, 7, 64]))
@settings(max_examples=100, deadline=None)
def test_a_tuple_sends_one_old_group_off(stream: Stream, policy: Policy, capacity: int) -> None:
    """More than one only when the epoch changes again or a new group must leave."""
    table, out = opened(stream.shape, policy, capacity, "lazy")
    epoch = None
    for tuple_ in (t for batch in stream.batches() for t in batch):
        changes, before, waiting = tuple_.epoch != epoch, table.counters, table.waiting
        out.clear()
        fed(table, [tuple_])
        after = table.counters
        flushed = after.flushed - before.flushed
        if changes:
            assert flushed in (waiting, waiting + 1)
        elif after.evictions > before.evictions:
            assert flushed == waiting
        else:
            assert flushed == min(waiting, 1)
        assert len(out) == flushed + after.evictions - before.evictions
        epoch = tuple_.epoch


@pytest.mark.parametrize("policy", POLICIES)
def test_eager_flush_empties_the_table_at_once(policy: Policy) -> None:
    table, out = opened(SMALL, policy, 500, "eager", output_rows=8)
    fed(table, [Tuple(1, (code,), (code,)) for code in range(100)])
    present = table.occupied
    out.clear()
    fed(table, [Tuple(2, (0,), (0,))])
    assert (len(out), table.occupied, table.waiting) == (present, 1, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_lazy_flush_spreads_the_groups_over_the_tuples(policy: Policy) -> None:
    table, out = opened(SMALL, policy, 500, "lazy", output_rows=8)
    fed(table, [Tuple(1, (code,), (code,)) for code in range(100)])
    present = table.occupied
    out.clear()
    for arrived in range(1, 11):
        fed(table, [Tuple(2, (1000,), (0,))])
        assert (len(out), table.waiting) == (arrived, present - arrived)
    assert table.counters.backlog == present


@pytest.mark.parametrize("policy", POLICIES)
def test_a_clock_that_was_set_back_does_not_disable_the_table(policy: Policy) -> None:
    table, out = opened(SMALL, policy, 8, "lazy", output_rows=8)
    fed(table, [Tuple(10**6, (1,), (1,))])
    for _ in range(10):
        fed(table, [Tuple(5, (2,), (1,))] * 30)
    counters = table.counters
    assert counters.late == LATE_LIMIT
    assert counters.probes - counters.misses == 300 - LATE_LIMIT - 1
    table.flush()
    assert sum(int(row[SMALL.slot(0)]) for row in out) == 301


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sum_that_would_overflow_starts_again(policy: Policy) -> None:
    table, out = opened(SMALL, policy, 8, "lazy")
    fed(table, [Tuple(1, (3,), (2**63 - 1,)), Tuple(1, (3,), (1,)), Tuple(1, (3,), (2,))])
    table.flush()
    sums = [(int(row[SMALL.slot(0)]), int(row[SMALL.slot(1)])) for row in out]
    assert sums == [(1, 2**63 - 1), (2, 3)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("budget", [0, 50_000, 100_000, 1_000_000])
def test_a_table_keeps_within_its_memory(policy: Policy, budget: int) -> None:
    capacity = capacity_for(SMALL, budget, policy)
    assert capacity >= 1
    table, _ = opened(SMALL, policy, capacity, "lazy")
    larger, _ = opened(SMALL, policy, capacity + 1, "lazy")
    assert table.memory_bytes <= budget or capacity == 1
    assert larger.memory_bytes > budget


def test_chains_hold_every_group_once() -> None:
    table, _ = opened(SMALL, "lru", 1000, "lazy")
    fed(table, [Tuple(1, (code,), (code,)) for code in range(700)])
    lengths = chain_lengths(table)
    buckets, _ = places(table, [np.arange(700, dtype=np.int32)])
    assert (lengths == np.bincount(buckets, minlength=1000)).all()
    with pytest.raises(ValueError, match="no chains"):
        chain_lengths(opened(SMALL, "direct_mapped", 10, "lazy")[0])


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["one key", "three keys"])
def test_hashes_of_dense_codes_look_random(shape: Shape) -> None:
    """Codes are 0, 1, 2, ...: groups must fill places as if they were thrown."""
    table, _ = opened(shape, "second_chance", 10_000, "lazy")
    codes = np.arange(10_000, dtype=np.int32)
    columns = [codes] if shape.keys == 1 else [codes % 100, codes // 100, np.zeros_like(codes)]
    first, second = places(table, columns)
    for found in (first, second):
        filled = len(np.unique(found))
        assert abs(filled - 10_000 * (1 - np.exp(-1))) < 200  # four standard deviations
    assert np.count_nonzero(first == second) < 12
    together = len(np.unique(first * 10_000 + second))
    assert together > 9_990


def test_no_table_without_an_epoch() -> None:
    with pytest.raises(ValueError, match="epoch"):
        BoundedTable(Shape(1, (COUNT,)), "lru", 8, "lazy", lambda rows: None)
    with pytest.raises(ValueError, match="no table of 0 groups"):
        BoundedTable(SMALL, "lru", 0, "lazy", lambda rows: None)
