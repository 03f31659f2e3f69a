"""Tables and trees that change while a stream runs: fewer hash operations, the same answers."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.execute.delivery import Delivery
from terascope.execute.reading_task import NativeRead, Partials, taken
from terascope.execute.reports import Outgoing
from terascope.execute.task import Groups, Ready
from terascope.physical.low_plan import LowAggregate
from terascope.physical.rules.grow_trees import attributes_of, families
from terascope.pipeline import Bindings, compile_set
from terascope.sharing.model import Node, Tree
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.replan import replanning
from terascope.streaming.replan.tree_choice import Choosing, Comparison
from terascope.streaming.replan.tree_plans import AggregateFamily, PlannedSharing, PlannedTree
from terascope.streaming.tasks import read as stream_task
from tests.agreement import WITHOUT_COMPILING, Answers
from tests.oracle.compare import assert_same_rows
from tests.physical.sharing_sets import AGGREGATES, CONDITIONS, PROTOCOL, random_tuples
from tests.properties.plain_streams import Killed, OffsetLog, PlainRun
from tests.properties.rival_conditions import rival_set
from tests.properties.stream_cases import KILL_POINTS
from tests.properties.stream_results import rows_of
from tests.properties.swapped_skew import (
    EPOCH_TUPLES,
    EPOCHS,
    SAMPLED,
    SET,
    Swapped,
    run_settings,
    swapped_set,
)
from tests.settings import Changes

TREES: list[Changes] = [
    {"share_trees": "time"},
    {"share_trees": "operations", "tree_memory": 1 << 20, "tree_leaves": "free"},
    {"share_trees": "operations", "tree_memory": 1 << 20},
]
SEEDS = range(2 + int(os.environ.get("TERASCOPE_STREAM_SEEDS", "0")) // 30)


@pytest.fixture(autouse=True)
def planned_at_once() -> Iterator[None]:
    """Between two batches, not beside them: which batch has which trees is not left to chance."""
    with patch.object(replanning, "in_background", lambda work: work()):
        yield


@dataclass
class Counted:
    """What tasks did."""

    late: list[tuple[int, float]] = field(default_factory=list)
    """Of each batch of the second half: its trees, and its probes per tuple."""

    def add(self, run: PlainRun) -> None:
        report = run.reports[-1]
        probes = sum(sum(beat.counters["probes"]) for beat in report.beats)
        tuples = sum(beat.counters["tuples"] for beat in report.beats)
        seen = sum(seen.tuples for seen in report.state.seen.values())
        if tuples and seen > EPOCHS * EPOCH_TUPLES // 2:
            self.late.append((report.beats[0].trees, probes / tuples))


def streamed(made: Swapped, settings: StreamRun, changes: int | None = None) -> Counted:
    """To the end; `changes`: after so many the trees stay."""
    run, counted = PlainRun(made.compiled, settings, OffsetLog()), Counted()
    while not run.ended:
        if not run.step():
            continue
        counted.add(run)
        if changes is not None and run.runner.replanner.trees.number >= changes:
            run.runner.replanner.close()
    run.close()
    return counted


@dataclass(frozen=True)
class Work:
    """Of one batch."""

    number: int
    """Of what was in force."""
    wanted: float
    """How many queries take a tuple."""
    probes: float
    """Look-ups a tuple."""


def work_of(run: PlainRun) -> list[Work]:
    """Of each batch, to the end."""
    found = []
    while not run.ended:
        beats = run.reports[-1].beats if run.step() else []
        if any(beat.counters["tuples"] for beat in beats):
            tuples = sum(beat.counters["tuples"] for beat in beats)
            probes = sum(sum(beat.counters["probes"]) for beat in beats)
            wanted = sum(sum(beat.counters["passed"]) for beat in beats)
            found.append(Work(beats[0].trees, wanted / tuples, probes / tuples))
    return found


def is_shared(run: PlainRun) -> bool:
    """Whether a query was made of another table than that of the tuples in the last batch."""
    return any(
        beat.counters["probes"][: len(beat.queries)] != beat.counters["passed"]
        for beat in run.reports[-1].beats
    )


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Of the stream whose skew changes, as a batch has them."""
    return swapped_set(tmp_path_factory.mktemp("batch"), TREES[0]).expected()


def assert_answers(expected: Answers, folder: Path) -> None:
    for name, answer in expected.items():
        assert_same_rows(answer.rows, rows_of(folder / name), answer.fields)


@pytest.mark.parametrize(
    ("trees", "tasks"),
    [pytest.param(TREES[0], 1, marks=pytest.mark.soak), (TREES[0], 3), (TREES[1], 2)],
)
def test_hash_operations_fall_when_the_tree_follows_the_skew(
    trees: Changes, tasks: int, tmp_path: Path, answers: Answers
) -> None:
    made = swapped_set(tmp_path, trees)
    rules = {**SAMPLED, **trees}
    follows = streamed(made, run_settings(tmp_path / "follows", rules, 30_000, tasks))
    stays = streamed(made, run_settings(tmp_path / "stays", rules, 30_000, tasks), changes=1)
    assert follows.late[0][0] == stays.late[0][0] == 1, "the first tree is that of the first half"
    assert follows.late[0][1] == stays.late[0][1]
    assert follows.late[-1][0] >= 2
    assert {number for number, _ in stays.late} == {1}
    assert follows.late[-1][1] < 0.8 * stays.late[-1][1]
    assert_answers(answers, tmp_path / "follows" / "out")
    assert_answers(answers, tmp_path / "stays" / "out")


def test_a_run_goes_on_with_its_trees(tmp_path: Path, answers: Answers) -> None:
    trees = TREES[0]
    made = swapped_set(tmp_path, trees)
    settings = run_settings(tmp_path, {**SAMPLED, **trees}, 30_000)
    log = OffsetLog()
    first = PlainRun(made.compiled, settings, log)
    while first.runner.replanner.trees.number == 0:
        assert first.step()
    before = first.runner.replanner.trees
    first.close()
    second = PlainRun(made.compiled, settings, log)
    assert second.runner.replanner.trees == before
    second.step()
    assert {beat.trees for beat in second.reports[-1].beats} == {1}
    assert is_shared(second)
    second.close()
    never = replace(settings, config=settings.config.changed(share_trees="never"))
    third = PlainRun(made.compiled, never, log)
    while not third.ended:
        third.step()
    assert not is_shared(third)
    third.close()
    assert_answers(answers, tmp_path / "out")


def test_sources_have_trees_of_their_own(tmp_path: Path) -> None:
    """Queries over two sources are called the same next to both."""
    made = swapped_set(tmp_path, TREES[0], ("left", "right"))
    rules = {**SAMPLED, **TREES[0]}
    run = PlainRun(made.compiled, run_settings(tmp_path, rules, 60_000, 2), OffsetLog())
    while not run.ended:
        run.step()
    told = run.runner.replanner.status()
    assert [one.source for one in told] == ["left", "right"]
    assert all(one.tree for one in told)
    assert all(one.probes_per_tuple and one.probes_per_tuple < 5.0 for one in told)
    run.close()
    assert_answers(made.expected(), tmp_path / "out")


def test_samples_are_asked_for_now_and_then(tmp_path: Path) -> None:
    made = swapped_set(tmp_path, TREES[0])
    rules = {**SAMPLED, "replan_sample_seconds": 1e6, "replan_sample_tuples": 100}
    run = PlainRun(made.compiled, run_settings(tmp_path, rules, 30_000, 3), OffsetLog())
    for _ in range(3):
        run.step()
    told = [[len(sample) for sample in report.samples] for report in run.reports]
    assert 0 < sum(told[0]) <= 102, "of all tasks together"
    assert len(told[0]) == 3
    assert told[1:] == [[], []]
    run.close()


def test_conditions_that_most_tuples_meet_ride_along(tmp_path: Path) -> None:
    """No two queries take the same tuples."""
    limits = iter(range(-9, 0))
    text = re.sub(r"GROUP BY", lambda _: f"WHERE v > {next(limits)} GROUP BY", SET)
    made = swapped_set(tmp_path, TREES[0], text=text)
    run = PlainRun(made.compiled, run_settings(tmp_path, SAMPLED, 30_000, 2), OffsetLog())
    used = work_of(run)
    (told,) = run.runner.replanner.status()
    run.close()
    assert used[0].probes == used[0].wanted, "at first all are made of tuples"
    assert used[1].number == 1
    assert used[1].probes < 0.7 * used[1].wanted
    assert used[-1].number == 2, "the skew has changed"
    assert used[-1].probes < 0.8 * used[-1].wanted
    assert told.tree
    assert_answers(made.expected(), tmp_path / "out")


# ---- common tables -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trees", "tasks"), [(TREES[0], 1), (TREES[1], 2), ({"share_trees": "never"}, 3)]
)
def test_a_tuple_is_looked_up_once_when_queries_begin_to_want_the_same(
    trees: Changes, tasks: int, tmp_path: Path
) -> None:
    made = rival_set(tmp_path, trees)
    rules = {**SAMPLED, **trees}
    settings = run_settings(tmp_path, rules, 30_000, tasks)
    run = PlainRun(made.compiled, settings, OffsetLog())
    used = work_of(run)
    (told,) = run.runner.replanner.status()
    run.close()
    first = used[: len(used) // 2]
    assert {one.number for one in first} == {0}, "nothing to share in the first half"
    assert all(one.probes == one.wanted for one in first)
    assert used[-1].number >= 1
    assert used[-1].wanted > 3.7
    assert used[-1].probes <= 2.0, "one look-up for three queries, and one for the other"
    ((*names,),) = told.tables
    assert sorted(names) == ["one_low", "three_low", "two_low"]
    assert told.gain > 0.15
    assert_answers(made.expected(), tmp_path / "out")


@pytest.mark.parametrize(("values", "tied"), [(3, True), (3000, False)])
def test_tables_are_shared_for_time_only_where_look_ups_are_slow_and_groups_few(
    values: int, tied: bool, tmp_path: Path
) -> None:
    """A look-up whose place is computed takes less than the conditions of the slots; and groups of
    a tuple each, given to everybody, take longer than to look the tuples up.
    """
    made = rival_set(tmp_path, values=values, tied=tied)
    run = PlainRun(made.compiled, run_settings(tmp_path, SAMPLED, 30_000), OffsetLog())
    while not run.ended:
        run.step()
    assert [one.tables for one in run.runner.replanner.status()] == [()]
    run.close()
    assert_answers(made.expected(), tmp_path / "out")


def test_tables_may_be_left_apart(tmp_path: Path) -> None:
    made = rival_set(tmp_path)
    rules = {**SAMPLED, "share_tables": "never", "share_trees": "never"}
    run = PlainRun(made.compiled, run_settings(tmp_path, rules, 30_000), OffsetLog())
    assert not run.runner.replanner.wants_samples
    run.close()


def test_a_run_goes_on_with_its_tables(tmp_path: Path) -> None:
    made = rival_set(tmp_path)
    settings = run_settings(tmp_path, SAMPLED, 30_000)
    log = OffsetLog()
    first = PlainRun(made.compiled, settings, log)
    while not (before := first.runner.replanner.trees).number:
        assert first.step()
    with suppress(Killed):
        first.step("state", 0)
    first.close()
    second = PlainRun(made.compiled, settings, log)
    assert second.runner.replanner.trees == before
    second.step()
    assert is_shared(second)
    second.close()
    apart = replace(settings, config=settings.config.changed(share_tables="never"))
    third = PlainRun(made.compiled, apart, log)
    third.step()
    assert third.runner.replanner.status()[0].tables == ()
    while not third.ended:
        third.step()
    third.close()
    assert_answers(made.expected(), tmp_path / "out")


# ---- whatever the trees --------------------------------------------------------------------------


def random_set(seed: int, folder: Path) -> Swapped:
    """Aggregations by a few sets of keys with several conditions, NULLs and all."""
    rng = random.Random(seed)
    columns = ["a", "b", "c", "s", "v"]
    keys = [rng.sample(columns, rng.choice([1, 2, 2, 3])) for _ in range(5)]
    conditions = ["", *(f" WHERE {one}" for one in rng.sample(CONDITIONS, 2))]
    statements = [PROTOCOL]
    for number in range(10):
        own = rng.choice(keys)
        named = ", ".join(rng.sample(own, len(own)))
        values = [f"{call} AS x{n}" for n, call in enumerate(rng.sample(AGGREGATES, 2))]
        statements.append(
            f"QUERY q{number}: SELECT tb, {named}, {', '.join(values)}"
            f" FROM left.S{rng.choice(conditions)} GROUP BY ts/40 AS tb, {named};"
        )
    path = folder / "in.parquet"
    table = random_tuples(random.Random(seed), 700).sort_by("ts")
    pq.write_table(table, path, row_group_size=50)
    interfaces = {"left": Interface("left", "parquet", str(path))}
    bindings = Bindings(interfaces, config=WITHOUT_COMPILING.changed(split_bytes=1))
    return Swapped(compile_set(Source("\n".join(statements), str(folder / "set.gsql")), bindings))


def random_sharing(rng: random.Random, family: AggregateFamily) -> PlannedSharing:
    """Any tables of some of those with the same keys, and trees of some of what results: conditions
    ride along, however few tuples meet them.
    """
    by_keys: dict[frozenset[str], list[str]] = {}
    for query, name in zip(family.members, family.ids, strict=True):
        by_keys.setdefault(attributes_of(query), []).append(name)
    drawn = (rng.sample(ids, rng.randint(1, len(ids))) for ids in by_keys.values())
    tables = tuple(tuple(ids) for ids in drawn if len(ids) > 1)
    units = {unit.query.name: unit for unit in family.units(tables)}
    trees = []
    shares = dict.fromkeys(units, 1.0)
    for members in families([unit.query for unit in units.values()], shares).values():
        some = rng.sample(members, rng.randint(1, len(members)))
        if len({attributes_of(query) for query in some}) > 1:
            tree = random_tree(rng, some)
            whole = tuple(node.buckets > 4 for node in tree.nodes)
            trees.append(PlannedTree(tuple(units[q.name].id for q in some), tree, whole))
    return PlannedSharing(tables, tuple(trees))


def random_tree(rng: random.Random, queries: Sequence[LowAggregate]) -> Tree:
    """Any one that answers the queries, in tables of any size."""
    asked = {attributes_of(query): len(query.slots) for query in queries}
    unions = [frozenset().union(*rng.sample(sorted(asked, key=sorted), 2)) for _ in range(3)]
    order = sorted({*asked, *unions}, key=lambda one: (-len(one), sorted(one)))
    parents: dict[frozenset[str], frozenset[str] | None] = {}
    for one in order:
        above = [node for node in parents if one < node]
        parents[one] = rng.choice(above) if above and rng.random() < 0.8 else None
    while idle := [one for one in parents if one not in asked and one not in parents.values()]:
        del parents[idle[0]]
    places: dict[frozenset[str] | None, int] = {one: place for place, one in enumerate(parents)}
    return Tree(
        tuple(
            Node(one, places.get(above), one in asked, rng.choice([1, 4, 1e9]), asked.get(one, 1))
            for one, above in parents.items()
        )
    )


def with_own_slots(
    ready: Ready, native: NativeRead, delivery: Delivery, partials: Partials
) -> Iterator[Outgoing]:
    """What becomes of groups, if they have the slots that those above know, and no others."""
    if isinstance(ready, Groups):
        fields = native.targets[native.streams[ready.query]].groups
        assert fields is not None
        assert ready.block.rows.shape[1] == fields.shape.stride
        assert not (ready.block.rows[:, 0] >> (1 + len(fields.slots))).any()
    yield from taken(ready, native, delivery, partials)


def surprised(_: logging.Logger, told: str, **__: object) -> None:
    raise AssertionError(f"nothing was to be warned of: {told}")


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_answers_do_not_depend_on_what_is_shared_or_kills(seed: int, tmp_path: Path) -> None:
    """Tables and trees are made up, and change after every slice; batches are killed and run again,
    with those of then.
    """
    rng = random.Random(seed)
    made = random_set(seed, tmp_path)
    rules = {**SAMPLED, "replan_slices": 1, "replan_least_tuples": 1}
    settings = run_settings(tmp_path, rules, 3000, rng.randrange(1, 4))
    log, numbers, shared = OffsetLog(), set[int](), 0

    def drawn(choosing: Choosing, _: PlannedSharing | None) -> Comparison:
        everybody = {frozenset(choosing.family.ids): (1.0, 0.0)}
        return Comparison(PlannedSharing(), random_sharing(rng, choosing.family), everybody)

    ended = False
    while not ended:
        run = PlainRun(made.compiled, settings, log)
        with (
            patch.object(Choosing, "compared", drawn),
            patch.object(stream_task, "taken", with_own_slots),
            patch.object(logging.Logger, "warning", surprised),
            suppress(Killed),
        ):
            for _ in range(rng.randrange(1, 7)):
                if not run.ended and run.step() and run.reports:
                    numbers |= {beat.trees for beat in run.reports[-1].beats}
                    shared += is_shared(run)
            if not run.ended:
                run.step(rng.choice(KILL_POINTS), rng.randrange(4))
        ended = run.ended
        run.close()
    assert_answers(made.expected(), tmp_path / "out")
    assert len(numbers) > 1, "trees were changed"
    assert shared, "and queries were made of each other"
