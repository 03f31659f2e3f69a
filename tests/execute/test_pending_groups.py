"""Groups that wait, in memory and on disk: merged, and each of them once."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from terascope.execute import spill
from terascope.execute.grouping import pending_groups
from terascope.execute.grouping.pending_groups import MERGED_ROWS, Lot, PendingGroups
from terascope.execute.spill import TAKEN_ROWS
from terascope.functions.aggregates.folding import MAX_INT
from terascope.functions.slots import COUNT, SUM_INT, state_slot
from terascope.kernels.columns.arrays import Ints, Rows
from terascope.kernels.merge import states
from terascope.kernels.merge.groups import Block
from terascope.kernels.merge.states import RowStates, UnpackedStates
from terascope.kernels.tables.slots import Shape
from terascope.sketches.base import StateColumn
from terascope.sketches.values import list_kind, numbers_of
from terascope.types import INT_MAX, Type
from tests.settings import SOAK

SHAPE = Shape(2, (COUNT, SUM_INT, MAX_INT))
SEEN = 0b1101  # a group, and both slots that take an argument have seen one


def lot(rng: np.random.Generator, number: int, groups: int, once: bool = True) -> Rows:
    keys = rng.choice(groups, number, replace=not once)
    rows = np.empty((number, SHAPE.stride), np.int64)
    rows[:, 0] = SEEN
    rows[:, 1] = (keys % 97 + 1) << 32 | (keys // 97 + 1)
    rows[:, 2] = rng.integers(1, 9, number)
    rows[:, 3] = rng.integers(-1000, 1000, number)
    rows[:, 4] = rng.integers(-1000, 1000, number)
    return rows


def expected(lots: list[Rows]) -> dict[int, tuple[int, int, int]]:
    found: dict[int, list[list[int]]] = defaultdict(list)
    for rows in lots:
        for _, key, *slots in rows.tolist():
            found[key].append(slots)
    return {
        key: (sum(s[0] for s in some), sum(s[1] for s in some), max(s[2] for s in some))
        for key, some in found.items()
    }


def released(
    waiting: PendingGroups, before: int | None
) -> dict[int | None, dict[int, tuple[int, ...]]]:
    found: dict[int | None, dict[int, tuple[int, ...]]] = defaultdict(dict)
    for one in waiting.release(before):
        assert one.whole
        epochs = one.block.values(one.block.epochs).tolist()
        for epoch, (_, key, *slots) in zip(epochs, one.block.rows.tolist(), strict=True):
            groups = found[epoch]
            assert key not in groups, "a group stands twice"
            groups[key] = tuple(slots)
    return dict(found)


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("disk", ["never", "once", "always"])
def test_lots_are_merged(once: bool, disk: str) -> None:
    rng = np.random.default_rng(7)
    waiting = PendingGroups(SHAPE, once)
    lots = {epoch: [lot(rng, 500, 900, once) for _ in range(4)] for epoch in (3, 4)}
    for number in range(4):
        for epoch in (3, 4):
            waiting.add(epoch, lots[epoch][number])
        if disk == "always" or (disk == "once" and number == 1):
            waiting.spill()
            assert waiting.memory_bytes == 0
    assert released(waiting, 4) == {3: expected(lots[3])}
    assert released(waiting, None) == {4: expected(lots[4])}
    assert waiting.is_empty
    waiting.add(5, lots[3][0])  # there is a file again
    waiting.spill()
    assert released(waiting, None) == {5: expected(lots[3][:1])}


@pytest.mark.parametrize("disk", [False, True])
def test_many_rows_are_merged_part_by_part(disk: bool) -> None:
    rng = np.random.default_rng(8)
    waiting = PendingGroups(SHAPE, once=True)
    lots = [lot(rng, 2 * MERGED_ROWS, 3 * MERGED_ROWS) for _ in range(3)]
    for rows in lots:
        waiting.add(1, rows)
        if disk:
            waiting.spill()
    assert released(waiting, None) == {1: expected(lots)}


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("disk", [0, 1, 2] if SOAK else [0, 2])
@pytest.mark.parametrize("spread", [5, 400, 100_000] if SOAK else [5, 100_000])
def test_lots_of_many_epochs_are_merged(spread: int, disk: int, once: bool) -> None:
    """`spread`: of how many epochs the groups are; most stand in one lot, in all, or far apart."""
    rng = np.random.default_rng(spread + disk)
    waiting = PendingGroups(SHAPE, once)
    lots: dict[int, list[Rows]] = defaultdict(list)
    for number in range(6):
        rows = lot(rng, 5_000, 6_000, once)
        epochs = rng.integers(0, spread, len(rows)) + number * spread // 4
        for epoch in np.unique(epochs).tolist():
            lots[epoch].append(rows[epochs == epoch])
        waiting.add(epochs, rows)
        waiting.add(spread, rows[:10])
        lots[spread].append(rows[:10].copy())
        waiting.settle()
        if number < disk:
            waiting.spill()
    wanted = {epoch: expected(some) for epoch, some in lots.items()}
    early = released(waiting, spread)
    assert early == {epoch: groups for epoch, groups in wanted.items() if epoch < spread}
    assert [*early] == sorted(e for e in early if e is not None)
    late = released(waiting, None)
    assert late == {epoch: groups for epoch, groups in wanted.items() if epoch >= spread}
    assert [*late] == sorted(e for e in late if e is not None)
    assert waiting.is_empty


def test_a_long_epoch_on_disk_among_short_ones() -> None:
    rng = np.random.default_rng(3)
    waiting = PendingGroups(SHAPE, once=True)
    lots: dict[int, list[Rows]] = defaultdict(list)
    for _ in range(3):
        for epoch, number in ((1, 20), (2, TAKEN_ROWS // 2), (3, 2 * TAKEN_ROWS), (4, 9)):
            rows = lot(rng, number, 3 * TAKEN_ROWS)
            lots[epoch].append(rows)
            waiting.add(epoch, rows)
        waiting.spill()
    few = lot(rng, 30, 3 * TAKEN_ROWS)
    lots[3].append(few)
    waiting.add(3, few)
    assert released(waiting, None) == {epoch: expected(some) for epoch, some in lots.items()}


def test_a_single_lot_of_a_table_that_evicts_is_merged_too() -> None:
    rows = lot(np.random.default_rng(9), 300, 20, once=False)
    waiting = PendingGroups(SHAPE, once=False)
    waiting.add(np.full(len(rows), 6, np.int64), rows)
    assert released(waiting, None) == {6: expected([rows])}


@pytest.mark.parametrize("disk", [False, True])
def test_sums_that_overflow_stay_apart(disk: bool) -> None:
    waiting = PendingGroups(SHAPE, once=True)
    large = lot(np.random.default_rng(1), 10, 10)
    large[:, 3] = INT_MAX // 2 + 1
    for _ in range(2):
        waiting.add(1, large.copy())
        if disk:
            waiting.spill()
    blocks = list(waiting.release(None))
    assert not any(block.whole for block in blocks)
    assert sum(len(block.block.rows) for block in blocks) == 20


def test_a_full_disk_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from terascope.diagnostic import OutputError

    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    waiting = PendingGroups(SHAPE, once=True)
    waiting.add(1, lot(np.random.default_rng(1), 10, 10))
    with pytest.raises(OutputError, match="cannot be kept in '/nowhere/at/all'"):
        waiting.spill()


# ---- groups with states --------------------------------------------------------------------------

KIND = list_kind(Type.INT)
WITH_STATES = Shape(2, (COUNT, state_slot(KIND)))
Values = dict[int, dict[int, Counter[int]]]
"""By epoch and key: the values in the state of a group."""


def rows_with_states(
    rng: np.random.Generator, keys: int, column: StateColumn, epochs: Ints, known: Values
) -> Rows:
    """Different groups of each epoch with a state in a column; some have none."""
    count = len(epochs)
    rows = np.zeros((count, WITH_STATES.stride), np.int64)
    rows[:, 1] = (rng.permutation(max(keys, count))[:count] + 1) << 32 | 1
    rows[:, 2] = 1
    has = rng.random(count) < 0.9
    rows[:, 0] = np.where(has, 0b101, 0b001)
    rows[has, 3] = np.arange(np.count_nonzero(has))
    values = rng.integers(0, 50, np.count_nonzero(has))
    column.iterate(rows[has, 3], [values])
    for epoch, key in zip(epochs[~has].tolist(), rows[~has, 1].tolist(), strict=True):
        known[epoch].setdefault(key, Counter())
    for epoch, key, value in zip(
        epochs[has].tolist(), rows[has, 1].tolist(), values.tolist(), strict=True
    ):
        known[epoch].setdefault(key, Counter())[value] += 1
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_states_leave_in_lots(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group leaves once with all its values, wherever its partials were: pending, in the
    columns of a table, or on disk.
    """
    for module in (pending_groups, spill, states):
        monkeypatch.setattr(module, "LOT_BYTES", 4000)
    rng = np.random.default_rng(seed)
    waiting, known = PendingGroups(WITH_STATES, once=False), defaultdict[int, Any](dict)
    assert waiting.states is not None
    for step in range(12):
        column, count = KIND.low(), int(rng.choice([1, 40, 700]))
        epochs = np.sort(rng.integers(step // 4, step // 4 + rng.choice([1, 3]), count))
        rows = rows_with_states(rng, 900, column, epochs, known)
        seen = np.flatnonzero(rows[:, 0] & 0b100)
        live = RowStates(WITH_STATES, (UnpackedStates(KIND, column, len(seen)),))
        table = Lot(Block.of_each(epochs, rows), live)
        match int(rng.integers(0, 3)):
            case 0:
                waiting.add(epochs, live.moved(rows, waiting.states))
            case 1:
                waiting.spill(table)
            case 2:
                check_states(waiting, step // 4, table, known)
    check_states(waiting, None, None, known)
    assert not known
    assert waiting.is_empty
    assert waiting.memory_bytes == 0


def check_states(
    waiting: PendingGroups, before: int | None, table: Lot | None, known: Values
) -> None:
    """Release the epochs before one: `known` loses them."""
    found: Values = defaultdict(dict)
    for one in waiting.release_states(before, table):
        assert one.whole
        assert one.block.states is not None
        packed = one.block.states.column(one.block.rows, 1).to_pylist()
        epochs = one.block.values(one.block.epochs).tolist()
        for epoch, key, state in zip(epochs, one.block.rows[:, 1].tolist(), packed, strict=True):
            assert key not in found[epoch], "a group stands twice"
            found[epoch][key] = Counter() if state is None else Counter(numbers_of(state))
    due = [epoch for epoch in known if before is None or epoch < before]
    assert found == {epoch: known.pop(epoch) for epoch in due}
