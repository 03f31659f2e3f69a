"""Aggregate trees give the groups of the flat plan, whatever the tables of their nodes, and cost
what paper 4, III-D says they cost.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.execute import task
from terascope.execute.grouping import aggregator
from terascope.execute.grouping.tree import TreeMistake, tree_of
from terascope.functions.aggregates.folding import (
    AND_INT,
    MAX_FLOAT,
    MAX_INT,
    MIN_FLOAT,
    MIN_INT,
    OR_INT,
    XOR_INT,
)
from terascope.functions.slots import COUNT, COUNT_OF, SUM_INT
from terascope.physical.low_plan import LowAggregate, LowPlan, Slot, TableChoice, TableKind
from terascope.types import INT_MAX
from tests.execute.tree_plans import (
    CONDITIONAL,
    KEYS,
    WHERES,
    Columns,
    Found,
    conditional_plan,
    expected,
    keys_of,
    node,
    plan_of,
    random_tuples,
    run,
    slot,
    written,
)
from tests.kernels.some_groups import same
from tests.settings import SOAK

SLOTS = (
    slot(COUNT),
    slot(SUM_INT, "n"),
    slot(COUNT_OF, "n"),
    slot(MIN_FLOAT, "x"),
    slot(MAX_FLOAT, "x"),
    slot(MIN_INT, "n"),
    slot(MAX_INT, "n"),
    slot(OR_INT, "n"),
    slot(AND_INT, "n"),
    slot(XOR_INT, "n"),
)
FEW = (slot(COUNT), slot(SUM_INT, "n"), slot(MAX_FLOAT, "x"))
"""Of machine code: each shape has to be compiled."""
KINDS: tuple[tuple[TableKind, ...], ...] = (
    ("lru", "open"),
    ("lru", "direct_mapped", "open"),
    ("open",),
    ("open",),
)
"""By depth, for the same reason."""


# ---- random trees --------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn, compiled: bool) -> LowPlan:
    """Up to four levels (three, and always a key less, where shapes have to be compiled); every
    child has some of its parent's keys, slots and tuples.
    """
    last = 2 if compiled else 3
    queries: list[LowAggregate] = []
    inner: list[LowAggregate] = []

    def grow(parent: LowAggregate | None, keys: Sequence[str], slots: Sequence[Slot]) -> None:
        depth = 0 if parent is None else int(parent.name.split("-")[1]) + 1
        is_inner = depth < last and draw(st.booleans())
        table = TableChoice(
            draw(st.sampled_from(KINDS[depth])),
            draw(st.sampled_from(["eager", "lazy"])),
            groups=draw(st.integers(1, 8)),
        )
        made = node(f"n{len(queries) + len(inner)}-{depth}", "".join(keys), slots, table=table)
        if parent is not None:
            made = replace(made, parent=parent.name)
            if not compiled:
                made = with_some(draw, made, parent)
        if not made.slots:
            return
        (inner if is_inner else queries).append(made)
        if depth < last:
            for _ in range(draw(st.integers(int(is_inner), 2))):
                shuffled = draw(st.permutations(keys))
                size = len(keys) - 1 if compiled else draw(st.integers(0, len(keys)))
                grow(made, shuffled[:size], made.slots)

    for _ in range(draw(st.integers(1, 2))):
        first = draw(st.permutations(KEYS))[: 2 if compiled else 4]
        grow(None, first, FEW if compiled else (*SLOTS, *CONDITIONAL))
    return plan_of(queries or [node("only-0", "a", FEW)], inner, compiled=compiled)


def with_some(draw: st.DrawFn, child: LowAggregate, parent: LowAggregate) -> LowAggregate:
    """Some slots of the parent, and perhaps only the tuples of one of its conditions, or two."""
    counted = [s.where for s in parent.slots if s.kind == COUNT and s.where is not None]
    some = draw(st.lists(st.sampled_from(counted), unique=True)) if counted else []
    match some:
        case []:
            wanted, more = parent.slots, inherited(parent)
        case [where]:
            plain = inherited(parent)
            own = {*plain["signature"], *where.signature}, (*plain["rest"], *where.rest)
            more = {"signature": tuple(own[0]), "rest": own[1]}
            wanted = tuple(replace(s, where=None) for s in parent.slots if s.where == where)
        case _:
            wanted = tuple(s for s in parent.slots if s.where in some)
            more = inherited(parent) | {"anyof": tuple(some)}
    picked = draw(st.lists(st.sampled_from(wanted), unique=True, min_size=1))
    return replace(child, slots=tuple(picked), **more)


def inherited(parent: LowAggregate) -> dict[str, Any]:
    return {"signature": parent.signature, "rest": parent.rest, "anyof": parent.anyof}


@st.composite
def tuples(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(0, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    gaps = draw(st.sampled_from([0.0, 0.3]))

    def some(values: list[Any], holes: float) -> list[Any]:
        picked = [values[i] for i in rng.integers(0, len(values), count).tolist()]
        return [None if rng.random() < holes else value for value in picked]

    epochs = rng.integers(0, 4, count).tolist()
    if draw(st.booleans()):
        epochs.sort()
    sizes = draw(st.sampled_from([[0, 1, 2, 3, 7], [INT_MAX, INT_MAX - 1, -INT_MAX, 5, 1]]))
    return {
        "tb": epochs,
        **{key: some(list(range(2 + 2 * i)), gaps / 3) for i, key in enumerate(KEYS)},
        "n": some(sizes, gaps),
        "x": some([0.0, 1.0, -3.0, 1024.0], gaps),
    }


@dataclass(frozen=True)
class Circumstances:
    """What must not matter."""

    row_group: int
    every_batch: bool
    """Every row group is a batch of its own, wherever epochs end."""
    parts: bool
    """All tuples and groups are put apart first, as if they were many."""
    memory_bytes: int


circumstances = st.builds(
    Circumstances,
    st.integers(1, 60),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1 << 30, 1 << 12]),
)


@given(trees(compiled=False), tuples(), circumstances)
@settings(max_examples=50 if SOAK else 12, deadline=None)
def test_numpy_gives_the_groups_of_the_flat_plan(
    plan: LowPlan, columns: Columns, around: Circumstances
) -> None:
    check(plan, columns, around)


@given(trees(compiled=True), tuples(), circumstances)
@settings(max_examples=40 if SOAK else 4, deadline=None)
def test_machine_code_gives_the_same(
    plan: LowPlan, columns: Columns, around: Circumstances
) -> None:
    check(plan, columns, around)


def check(plan: LowPlan, columns: Columns, around: Circumstances) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if around.every_batch:
            patch.setattr(task.LowTask, "_is_batch", lambda *_: True)
        if around.parts:
            patch.setattr(aggregator, "MANY_ROWS", 1)
            patch.setattr(aggregator, "MANY_GROUPS", 1)
        path = written(columns, Path(folder), around.row_group)
        found, counted = run(replace(plan, memory_bytes=around.memory_bytes), path, 1)
    assert_same(found, expected(plan, columns))
    tree = tree_of(plan)
    for place, edge in tree.edges.items():
        above = tree.parents[place]
        if not edge.present:
            left = counted.evicted[above] + counted.flushed[above]
            if tree.is_tableless(place):
                assert counted.probes[place] == 0, "its groups are those of the parent"
                assert counted.flushed[place] == left
            else:
                assert counted.probes[place] == left, "all that leaves the parent, nothing else"


def assert_same(found: Found, wanted: Found) -> None:
    assert found.keys() == wanted.keys()
    for name, groups in wanted.items():
        assert found[name].keys() == groups.keys(), name
        wrong = [k for k, values in groups.items() if not same(found[name][k], values)]
        assert not wrong, (name, wrong[0], found[name][wrong[0]], groups[wrong[0]])


# ---- predicates, short epochs, many groups -------------------------------------------------------


@pytest.mark.parametrize("kind", ["open", "second_chance"])
def test_predicates_ride_along(kind: TableKind, tmp_path: Path) -> None:
    columns = random_tuples(800, 6, 3)
    plan = conditional_plan(kind)
    found, counted = run(plan, written(columns, tmp_path))
    assert_same(found, expected(plan, columns))
    assert counted.passed[2] == counted.passed[0] < counted.passed[1]


@pytest.mark.parametrize("kind", ["open", "second_chance", "lru"])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("epochs", [3, 400])
def test_queries_with_the_keys_of_their_parent_have_no_table(
    kind: TableKind, compiled: bool, epochs: int, tmp_path: Path
) -> None:
    """One look-up a tuple that any of them takes, whatever their conditions; a group is given to
    those that it saw a tuple of.
    """
    columns = random_tuples(2000, 6, epochs)
    many = epochs > 100 and kind == "open"
    table = TableChoice(kind, groups=7)
    more: dict[str, Any] = {"epoch_in_key": many}
    inner = node("inner", "ab", CONDITIONAL, table=table, anyof=WHERES, **more)
    one = node("one", "ba", (slot(SUM_INT, "n"), slot(COUNT)), "inner", signature=(0,), **more)
    bits, rest = WHERES[1].signature, WHERES[1].rest
    two = node("two", "ab", (slot(COUNT),), "inner", signature=bits, rest=rest, **more)
    either = node("either", "ab", CONDITIONAL[:3], "inner", anyof=WHERES, **more)
    below = node("below", "b", (slot(COUNT),), "one", signature=(0,), **more)
    again = node("again", "ab", (slot(COUNT),), "one", signature=(0,), **more)
    plan = plan_of([one, two, either, below, again], [inner], compiled=compiled)
    found, counted = run(plan, written(columns, tmp_path))
    wanted = expected(plan, columns)
    assert_same(found, wanted)
    assert len(wanted["two"]) < len(wanted["either"]), "some groups saw none of its tuples"
    assert counted.probes.tolist()[:3] == [0, 0, 0]
    assert counted.probes[4] == 0
    assert counted.probes[3] == counted.flushed[0]
    assert counted.probes[5] == counted.passed[2] < 2000


def test_many_epochs_in_a_batch(tmp_path: Path) -> None:
    columns = random_tuples(3000, 5, 700)
    inner = node("inner", "ab", FEW, epoch_in_key=True)
    plan = plan_of([node("q", "b", FEW, "inner", epoch_in_key=True)], [inner])
    found, _ = run(plan, written(columns, tmp_path))
    assert_same(found, expected(plan, columns))


def test_many_groups_stay_apart_on_their_way_down(tmp_path: Path) -> None:
    """Without the parts of the parent, a child would put its rows apart itself."""
    columns = random_tuples(150_000, 400, 2)
    inner = node("inner", "ab", FEW)
    plan = plan_of([node("a", "a", FEW, "inner"), node("b", "b", FEW, "inner")], [inner])
    found, counted = run(plan, written(columns, tmp_path))
    assert_same(found, expected(plan, columns))
    assert counted.probes.tolist()[:2] == [counted.flushed[2]] * 2


# ---- the cost of a tree --------------------------------------------------------------------------


@dataclass
class Simulated:
    """A node of paper 4, III-D: an LRU table that sends what it cannot keep to its children."""

    keys: str
    room: int
    children: list[Simulated]
    counted: Counter[str] = field(default_factory=Counter)
    _epoch: int | None = None
    _held: OrderedDict[tuple[Any, ...], dict[str, Any]] = field(default_factory=OrderedDict)

    def insert(self, row: dict[str, Any]) -> None:
        if self._epoch is not None and row["tb"] != self._epoch:
            self.flush()
        self._epoch = row["tb"]
        self.counted["probes"] += 1
        group = tuple(row[key] for key in self.keys)
        if group not in self._held and len(self._held) == self.room:
            self._send("evicted")
        self._held[group] = row
        self._held.move_to_end(group)

    def flush(self) -> None:
        while self._held:
            self._send("flushed")

    def flush_all(self) -> None:
        self.flush()
        for child in self.children:
            child.flush_all()

    def _send(self, why: str) -> None:
        self.counted[why] += 1
        _, row = self._held.popitem(last=False)
        for child in self.children:
            child.insert(row)


ENOUGH = 1 << 20


@pytest.mark.parametrize(("top", "next_"), [(1, 1), (9, 3), (30, 5), (3, ENOUGH)])
def test_the_cost_is_that_of_the_paper(top: int, next_: int, tmp_path: Path) -> None:
    columns = random_tuples(2000, 7, 4)

    def table(room: int) -> TableChoice:
        return TableChoice("open") if room == ENOUGH else TableChoice("lru", groups=room)

    plan = plan_of(
        [node("b", "b", FEW, "ab", table=table(next_)), node("all", "", FEW, "b")],
        [node("ab", "ab", FEW, table=table(top))],
    )
    found, counted = run(plan, written(columns, tmp_path))
    assert_same(found, expected(plan, columns))
    leaf = Simulated("", ENOUGH, [])
    below = Simulated("b", next_, [leaf])
    root = Simulated("ab", top, [below])
    for row in zip(*columns.values(), strict=True):
        root.insert(dict(zip(columns, row, strict=True)))
    root.flush_all()
    simulated = (below, leaf, root)
    assert counted.probes.tolist() == [n.counted["probes"] for n in simulated]
    assert counted.evicted.tolist() == [n.counted["evicted"] for n in simulated]
    assert counted.flushed.tolist() == [n.counted["flushed"] for n in simulated]


# ---- what is no tree -----------------------------------------------------------------------------


WRONG: dict[str, Callable[[LowAggregate], LowAggregate]] = {
    "there is no node nobody for q": lambda q: replace(q, parent="nobody"),
    "is its own ancestor": lambda q: replace(q, name="inner"),
    "inner has no key c for q": lambda q: replace(q, keys=keys_of("ac")),
    "inner has no slot min_int_n for q": lambda q: replace(q, slots=(slot(MIN_INT, "n"),)),
    "q has other epochs than inner": lambda q: replace(q, interfaces=("others",)),
    "inner does not count the tuples of q": lambda q: replace(q, anyof=(WHERES[0],), slots=()),
}


@pytest.mark.parametrize("problem", WRONG)
def test_a_node_that_cannot_be_made_of_its_parent_is_refused(problem: str) -> None:
    query = WRONG[problem](node("q", "a", (slot(COUNT),), "inner"))
    inner = [] if query.name == "inner" else [node("inner", "ab", (slot(COUNT),))]
    with pytest.raises(TreeMistake, match=problem):
        tree_of(plan_of([query], inner))
