"""The stream, the query sets, the counts and the words of the experiments with windows."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console, RenderableType

from bench.dialects import translate
from bench.experiment import Check, Contender, Outcome, Settings
from bench.low_run import run_job
from bench.peers.flink import INTERPRETER, csv_of, flink_lacks, to_parquet
from bench.windows import communication, computation
from bench.windows.communication import AsTheEngineSends, PlanContender
from bench.windows.computation import MODES, AsCounted, SharingContender
from bench.windows.counts import FULL, PAIRED, PANED, PLANS, PULL_UP, Counted
from bench.windows.job import plan_windows
from bench.windows.peers import EXPERIMENT, window_pair
from bench.windows.sides import point
from bench.windows.sliding import RANGES, WINDOWS, flink_sql, spark_sql
from bench.windows.snort import DAY, SIZES, SOURCES, TUPLES, query_set, query_sets, syn_file, syns
from terascope.sharing.slices import Periodic, composed
from terascope.sharing.windows import Mode
from tests.bench.oracle import by_duckdb, by_reference

pytestmark = pytest.mark.bench

FEW = 20_000
"""SYNs: enough for groups of several, few enough for panes."""


@pytest.fixture(scope="module")
def few_syns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return syn_file(tmp_path_factory.mktemp("syns"), seed=3, tuples=FEW)


def test_a_day_of_syns() -> None:
    stream = syns(seed=1)
    assert len(stream) == TUPLES == 523_761
    assert (np.diff(stream.times) >= 0).all()
    assert stream.times[0] >= 0
    assert stream.times[-1] < DAY
    assert len(np.unique(stream.sources)) == SOURCES
    assert np.array_equal(stream.sources, syns(seed=1).sources)
    assert not np.array_equal(stream.sources, syns(seed=2).sources)
    per_source = np.bincount(stream.sources)
    ratio = per_source[:10].sum() / per_source[10:100].sum()
    ranks = np.arange(1.0, 101) ** -1.1
    assert ratio == pytest.approx(ranks[:10].sum() / ranks[10:].sum(), rel=0.02)


def test_the_file_has_the_stream(few_syns: Path) -> None:
    table, stream = pq.read_table(few_syns), syns(seed=3, tuples=FEW)
    assert np.array_equal(table["time"].to_numpy(), stream.times)
    assert np.array_equal(table["srcIP"].to_numpy(), stream.sources)


@pytest.mark.parametrize("n", SIZES)
def test_query_sets_are_those_of_the_paper(n: int) -> None:
    sets = query_sets(n, 50, seed=1)
    assert sets == query_sets(n, 50, seed=1)
    assert len(set(sets)) == 50
    for windows in sets:
        assert len(set(windows)) == len(windows) == n
        assert len({w.slide for w in windows}) == 1
        assert all(1000 < w.slide < 2000 for w in windows)
        assert all(1500 < w.range < 2500 for w in windows)
        assert all(w.range > w.slide for w in windows)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("n", [2, 5])
def test_what_is_counted_is_what_the_low_level_sends(few_syns: Path, n: int, grouped: bool) -> None:
    windows = query_set(n, seed=n)
    counted = Counted(syns(seed=3, tuples=FEW), grouped)

    def work(mode: Mode) -> tuple[int, int, int]:
        done = run_job(plan_windows(few_syns, windows, grouped, mode))
        return done.tuples, done.partials, done.rows

    sent = {plan: counted.sent(plan, windows) for plan in (FULL, PAIRED, PANED, PULL_UP)}
    assert work("paired") == (sent[PULL_UP], sent[PAIRED], sent[FULL])
    assert work("paned") == (sent[PULL_UP], sent[PANED], sent[FULL])
    apart = sum(counted.sent(PAIRED, (window,)) for window in windows)
    assert work("unshared") == (sent[PULL_UP], apart, sent[FULL])


@pytest.mark.parametrize("window", [Periodic(25, 10), Periodic(7, 10), Periodic(30, 30)])
def test_counts_are_those_of_duckdb(few_syns: Path, window: Periodic) -> None:
    """Also of hopping windows, whose slices have gaps."""
    counted = Counted(syns(seed=3, tuples=FEW), grouped=True)
    ends = f"(time // {window.slide} + 1) * {window.slide}, time + {window.range}, {window.slide}"
    source = f"(SELECT unnest(generate_series({ends})) AS wend, srcIP FROM '{few_syns}')"
    found = duckdb.execute(f"SELECT count(*) FROM (SELECT DISTINCT * FROM {source})").fetchall()
    assert counted.results(window) == found[0][0]
    vector = composed([window])
    assert vector is not None
    starts = [
        (base + start, base + start + length)
        for base in range(0, DAY, vector.period)
        for i, (start, length) in enumerate(zip(vector.starts, vector.lengths, strict=True))
        if i not in vector.gaps
    ]
    stream = counted.stream
    firsts = np.searchsorted(stream.times, [a for a, _ in starts])
    lasts = np.searchsorted(stream.times, [b for _, b in starts])
    groups = [len(set(stream.sources[a:b])) for a, b in zip(firsts, lasts, strict=True)]
    assert counted.groups(vector) == sum(groups)


def outcome_of(contender: Contender, check: Check, output: Path) -> Outcome:
    """Run as the harness does, but here."""
    output.mkdir()
    outcome = Outcome(contender.name, [1.0], [contender.start(1).run(output)])
    check.look(outcome, output)
    return outcome


def test_communication_is_checked_against_the_engine(few_syns: Path, tmp_path: Path) -> None:
    check = AsTheEngineSends(few_syns, (2,), seed=3)
    outcomes = [
        outcome_of(PlanContender(plan, (2,), 2, FEW, seed=3), check, tmp_path / plan)
        for plan in PLANS
    ]
    check.seen[PAIRED][point(2, True)] += 1
    check.judge(outcomes)
    assert [o.contender for o in outcomes if not o.checked] == [PAIRED]
    assert "grouped_2" in outcomes[PLANS.index(PAIRED)].remark
    means = {o.contender: o.figure(point(2, False)) for o in outcomes}
    counted = Counted(syns(seed=3, tuples=FEW), grouped=False)
    for plan in PLANS:
        sent = [counted.sent(plan, windows) for windows in query_sets(2, 2, seed=3)]
        assert means[plan] == sum(sent) / 2
    shown = shown_text(communication.conclude(outcomes))
    assert "(118)" in shown
    assert "(86,472)" in shown


def test_computation_has_the_rows_that_are_counted(few_syns: Path, tmp_path: Path) -> None:
    check = AsCounted((2,), FEW, seed=3)
    outcomes = [
        outcome_of(SharingContender(name, few_syns, (2,), 1, seed=3), check, tmp_path / name)
        for name in MODES
    ]
    check.seen["unshared"][point(2, False)] = [1]
    check.judge(outcomes)
    assert [o.checked for o in outcomes] == [True, True, False]
    assert all(o.figure(point(2, side)) for o in outcomes for side in (False, True))
    shown = shown_text(computation.conclude(outcomes))
    assert "common sub-query" in shown
    assert "(8.9)" in shown


def shown_text(parts: list[RenderableType]) -> str:
    told = io.StringIO()
    console = Console(width=200, file=told)
    for part in parts:
        console.print(part)
    return told.getvalue()


def test_ratios_of_the_largest_sets_are_told_beside_the_targets() -> None:
    times = {"shared paired": 0.5, "unshared": 3.5}
    outcomes = [
        Outcome(name, [1.0], [{point(32, side): t for side in (False, True)}])
        for name, t in times.items()
    ]
    shown = shown_text(computation.conclude(outcomes))
    assert "ungrouped: unshared takes 7.0 times as long as shared paired (the paper: 6.2" in shown


def test_flink_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(INTERPRETER, raising=False)
    assert flink_lacks() == f"{INTERPRETER} does not name a Python that has apache-flink"
    monkeypatch.setenv(INTERPRETER, sys.executable)
    assert flink_lacks() == f"{sys.executable} has no apache-flink"
    prepared = EXPERIMENT.prepare(Settings(scale=0.0001, data=tmp_path), lambda line: None)
    assert list(prepared.absent) == ["flink"]
    monkeypatch.setattr("bench.windows.peers.flink_lacks", lambda: None)
    prepared = EXPERIMENT.prepare(Settings(scale=0.0001, data=tmp_path), lambda line: None)
    assert [c.name for c in prepared.contenders][-1] == "flink"


def test_flink_reads_and_writes_csv(few_syns: Path, tmp_path: Path) -> None:
    made = csv_of(few_syns, ("srcIP", "time"))
    stream = syns(seed=3, tuples=FEW)
    first, *_ = made.read_text(encoding="utf-8").splitlines()
    assert first == f"{stream.sources[0]},{stream.times[0]}"
    folder = tmp_path / "query"
    folder.mkdir()
    (folder / "part-0").write_text("1,2\n3,4\n", encoding="utf-8")
    (folder / "part-1").write_text("", encoding="utf-8")
    (folder / "part-2").write_text("5,6\n", encoding="utf-8")
    to_parquet(folder, ("a", "b"))
    table = pq.read_table(folder / "all.parquet")
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == [(1, 2), (3, 4), (5, 6)]


def test_32_windows_half_of_them_no_multiples_of_their_slide() -> None:
    assert len(set(WINDOWS)) == 32
    assert sum(w.range % w.slide == 0 for w in WINDOWS) == 16
    assert all(slide < length <= 20 * slide for slide, some in RANGES.items() for length in some)


def test_sliding_windows_mean_the_same_in_gsql_and_sql(tmp_path: Path) -> None:
    workload = window_pair(Settings(data=tmp_path), 300).full
    found = by_reference(workload, tmp_path / "ours")
    assert len(found) == 32
    assert found == by_duckdb(workload, tmp_path / "theirs")
    assert min(each.rows for each in found.values()) >= 200


def test_spark_and_flink_are_told_where_windows_end() -> None:
    assert "'20' SECOND(2), INTERVAL '25' SECOND(2), INTERVAL '15' SECOND(2))" in flink_sql(
        Periodic(25, 20)
    )
    assert "'25 seconds', '20 seconds', '15 seconds'" in spark_sql(Periodic(25, 20))
    assert "'40 seconds', '20 seconds', '0 seconds'" in translate(
        spark_sql(Periodic(40, 20)), "spark"
    )
