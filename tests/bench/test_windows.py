"""The stream, the query sets, the counts and the words of the experiments with windows."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.dialects import translate
from bench.experiment import Settings
from bench.windows.counts import FULL, PAIRED, PANED, PULL_UP, Counted
from bench.windows.engine import plan_windows, run_windows
from bench.windows.peers import window_pair
from bench.windows.sliding import RANGES, WINDOWS, is_multiple, spark_sql
from bench.windows.snort import DAY, SIZES, SOURCES, TUPLES, query_set, query_sets, syn_file, syns
from terascope.sharing.slices import Periodic, composed
from terascope.sharing.windows import Mode
from tests.bench.oracle import by_duckdb, by_reference

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
        done = run_windows(plan_windows(few_syns, windows, grouped, mode))
        return done.tuples, done.partials, done.results

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


def test_32_windows_half_of_them_no_multiples_of_their_slide() -> None:
    assert len(set(WINDOWS)) == 32
    assert sum(is_multiple(window) for window in WINDOWS) == 16
    assert all(slide < length <= 20 * slide for slide, some in RANGES.items() for length in some)


def test_sliding_windows_mean_the_same_in_gsql_and_sql(tmp_path: Path) -> None:
    workload = window_pair(Settings(data=tmp_path), 300).full
    found = by_reference(workload, tmp_path / "ours")
    assert len(found) == 32
    assert found == by_duckdb(workload, tmp_path / "theirs")
    assert min(each.rows for each in found.values()) >= 200


def test_spark_is_told_where_windows_end() -> None:
    assert "'25 seconds', '20 seconds', '15 seconds'" in spark_sql(Periodic(25, 20))
    assert "'40 seconds', '20 seconds', '0 seconds'" in translate(
        spark_sql(Periodic(40, 20)), "spark"
    )
