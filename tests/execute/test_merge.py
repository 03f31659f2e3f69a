from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.execute.merge import Merger
from terascope.functions.base import ValueMistake
from terascope.functions.slots import COUNT, SUM_INT
from terascope.kernels.columns.dictionary import dictionary_for
from terascope.kernels.merge.groups import Block
from terascope.kernels.merge.payload import pack
from terascope.kernels.tables.slots import Shape
from terascope.types import INT_MAX, INT_MIN, Type
from tests.kernels.some_groups import (
    Case,
    Key,
    Values,
    blocks_of,
    cases,
    dictionaries_for,
    merged,
    overflows,
    partials_of,
    same,
)  # fmt: skip


def payloads_of(case: Case) -> list[bytes]:
    found: list[bytes] = []
    for partials in case.workers:
        dictionaries = dictionaries_for(case.types)
        blocks = blocks_of(partials, case.shape, dictionaries)
        found += [payload for _, payload in pack(blocks, dictionaries, case.shape, 1)]
    return found


@settings(deadline=None, max_examples=100)
@given(cases(), st.randoms(use_true_random=False))
def test_the_partials_of_all_workers_become_one_group_each(case: Case, random: Random) -> None:
    payloads = payloads_of(case)
    random.shuffle(payloads)
    merger = Merger(case.shape, case.types, 1 << 30, Path(tempfile.gettempdir()))
    for payload in payloads:
        merger.add(payload)
    wanted = merged(case)
    if overflows(case, wanted):
        with pytest.raises(ValueMistake, match="integer overflow in SUM"):
            partials_of(merger.results(), case.shape)
        return
    found = partials_of(merger.results(), case.shape)
    assert len(found) == len(wanted)
    for key, values in found:
        assert same(values, wanted[key]), key
    epochs = [key[0] for key, _ in found]
    assert epochs == sorted(epochs, key=lambda e: (e is None, e or 0))
    assert partials_of(merger.results(), case.shape) == []


@settings(deadline=None, max_examples=50)
@given(cases(), st.sampled_from([1, 1 << 30]))
def test_groups_that_were_put_together_can_be_merged_again(case: Case, memory: int) -> None:
    """Half of the partials first, and the rest when they have come; a sum may be too large in
    between.
    """
    payloads = payloads_of(case)
    half = len(payloads) // 2
    first, second = (
        Merger(case.shape, case.types, memory, Path(tempfile.gettempdir())) for _ in range(2)
    )
    for payload in payloads[:half]:
        first.add(payload)
    for payload in (*first.partials(), *payloads[half:]):
        second.add(payload)
    assert list(first.partials()) == [], "it is empty"
    wanted = merged(case)
    if overflows(case, wanted):
        return
    found = partials_of(second.results(), case.shape)
    assert len(found) == len(wanted)
    for key, values in found:
        assert same(values, wanted[key]), key


def test_only_the_whole_sum_decides() -> None:
    shape = Shape(0, (SUM_INT,))
    parts = [INT_MAX, INT_MAX, INT_MAX, -5, INT_MIN, INT_MIN, INT_MIN]
    case = Case(shape, (), [[((None,), (value,))] for value in parts])
    merger = Merger(shape, (), 1 << 20, Path(tempfile.gettempdir()))
    for payload in payloads_of(case):
        merger.add(payload)
    assert partials_of(merger.results(), shape) == [((None,), (sum(parts),))]


@settings(deadline=None, max_examples=50)
@given(cases(), st.randoms(use_true_random=False), st.sampled_from([1, 1 << 30]))
def test_partials_that_were_put_together_are_merged_as_all_of_them(
    case: Case, random: Random, memory: int
) -> None:
    payloads = payloads_of(case)
    random.shuffle(payloads)
    cut = random.randrange(len(payloads) + 1)
    last = Merger(case.shape, case.types, 1 << 30, Path(tempfile.gettempdir()))
    for some in (payloads[:cut], payloads[cut:]):
        merger = Merger(case.shape, case.types, memory, Path(tempfile.gettempdir()))
        for payload in some:
            merger.add(payload)
        for payload in merger.partials():
            last.add(payload)
        assert list(merger.partials()) == []
    wanted = merged(case)
    if overflows(case, wanted):
        with pytest.raises(ValueMistake, match="integer overflow in SUM"):
            partials_of(last.results(), case.shape)
        return
    found = partials_of(last.results(), case.shape)
    assert len(found) == len(wanted)
    for key, values in found:
        assert same(values, wanted[key]), key


def random_groups(
    seed: int, partials: int, groups: int
) -> tuple[Shape, list[bytes], dict[Key, Values]]:
    """Partials of several workers with two keys, and their groups as numpy adds them up."""
    shape = Shape(2, (COUNT, SUM_INT))
    random = np.random.default_rng(seed)
    group = random.integers(0, groups, partials)
    epoch, a, b = group % 3, group // 3 % 1000, group // 3000
    value = random.integers(-(2**40), 2**40, partials)
    payloads: list[bytes] = []
    for some in np.array_split(np.arange(partials), 7):
        dictionaries = [dictionary_for(Type.LLONG), dictionary_for(Type.STRING)]
        blocks = []
        for e in range(3):
            own = some[epoch[some] == e]
            rows = np.ones((len(own), shape.stride), np.int64)
            first = dictionaries[0].encode(pa.array(a[own] * 10**9)).astype(np.int64)
            second = dictionaries[1].encode(pa.array(b[own]).cast(pa.string())).astype(np.int64)
            rows[:, 0], rows[:, 1], rows[:, 3] = 7, first << 32 | second, value[own]
            blocks.append(Block.of(e, rows))
        payloads += [payload for _, payload in pack(blocks, dictionaries, shape, 1, 0, 5_000)]
    counts = np.bincount(group, minlength=groups)
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, value)
    wanted: dict[Key, Values] = {
        (g % 3, g // 3 % 1000 * 10**9, str(g // 3000)): (int(counts[g]), int(sums[g]))
        for g in np.flatnonzero(counts).tolist()
    }
    return shape, payloads, wanted


@pytest.mark.parametrize(
    ("memory", "groups"),
    [(1 << 30, 60_000), (1 << 30, 50), (3 << 20, 60_000), (1 << 18, 20_000), (1, 20_000)],
    ids=["in memory", "few groups", "spilled", "spilled twice", "no memory at all"],
)
def test_any_number_of_groups_is_merged_in_any_memory(
    memory: int, groups: int, tmp_path: Path
) -> None:
    shape, payloads, wanted = random_groups(memory, 100_000, groups)
    merger = Merger(shape, [Type.LLONG, Type.STRING], memory, tmp_path)
    for payload in payloads:
        merger.add(payload)
    assert (merger.spilled_bytes > 0) == (memory < 1 << 30)
    assert dict(partials_of(merger.results(), shape)) == wanted
    assert list(tmp_path.iterdir()) == []


def test_more_partials_than_memory_holds_are_put_together(tmp_path: Path) -> None:
    shape, payloads, wanted = random_groups(5, 40_000, 20_000)
    types = [Type.LLONG, Type.STRING]
    merger, last = Merger(shape, types, 1 << 18, tmp_path), Merger(shape, types, 1 << 30, tmp_path)
    for payload in payloads:
        merger.add(payload)
    assert merger.spilled_bytes
    for payload in merger.partials():
        last.add(payload)
    assert dict(partials_of(last.results(), shape)) == wanted
    assert list(tmp_path.iterdir()) == []


def test_a_sum_that_overflows_is_found_on_disk_too(tmp_path: Path) -> None:
    shape = Shape(1, (SUM_INT,))
    dictionary = dictionary_for(Type.LLONG)
    codes = dictionary.encode(pa.array(np.arange(20_000))).astype(np.int64)
    rows = np.full((20_000, shape.stride), 3, np.int64)
    rows[:, 1], rows[:, 2] = codes << 32, INT_MAX // 2
    merger = Merger(shape, [Type.LLONG], 1 << 16, tmp_path)
    for _ in range(3):
        for _, payload in pack([Block.of(None, rows)], [dictionary], shape, 1):
            merger.add(payload)
    assert merger.spilled_bytes
    with pytest.raises(ValueMistake, match="integer overflow in SUM"):
        partials_of(merger.results(), shape)
    assert list(tmp_path.iterdir()) == []
