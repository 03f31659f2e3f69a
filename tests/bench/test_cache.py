"""The experiment `cache`: its measures against what theory says, its check, its report."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bench import cache
from bench.cache import chains, evictions, gaps, report, sizes
from bench.cache.streams import uniform_tuples, zipf_shares, zipf_tuples
from bench.experiment import Outcome, Settings
from bench.registry import find_experiment
from terascope.kernels.tables.table_policies import POLICIES, Policy

pytestmark = pytest.mark.bench

TUPLES = 100_000
EFFORT = cache.Effort(per_group=4, edge_tuples=5_000, crossings=1, fillings=1, zipf_tuples=100_000)


def test_uniform_groups_need_the_sizes_that_theory_gives() -> None:
    """LRU evicts 1 - b/g. Direct-mapped: of k groups at one place, every tuple but those of the
    owner's turn evict: 1 - (1 - exp(-x))/x for x groups a place, 1% at x = 0.02.
    """
    found = {policy: sizes.smallest_table(policy, 2_000, 20, seed=1) for policy in POLICIES}
    assert abs(found["lru"] - 1_980) < 20
    assert 60_000 < found["direct_mapped"] < 140_000
    assert 3 * 1_980 / 2 < found["second_chance"] < 8_000


def test_chains_are_as_long_as_those_of_balls_in_bins() -> None:
    found = chains.chains(10_000, fillings=20, seed=1)
    assert abs(found.mean - 1 / (1 - math.exp(-1))) < 0.01
    least, most = chains.PAPER_LONGEST
    assert least <= found.longest <= most


@pytest.mark.parametrize("exponent", evictions.EXPONENTS)
def test_streams_follow_the_law_and_lru_stays_above_perfect_lfu(exponent: float) -> None:
    tuples = zipf_tuples(evictions.GROUPS, exponent, 400_000, seed=1)
    counts = np.sort(np.bincount(tuples.groups, minlength=evictions.GROUPS))[::-1]
    most_frequent = counts[:100].sum() / len(tuples)
    assert abs(most_frequent - zipf_shares(evictions.GROUPS, exponent)[99]) < 0.01
    by_policy = {
        policy: evictions.zipf_evictions(policy, exponent, 400_000, seed=1)[0.05]
        for policy in POLICIES
    }
    perfect = evictions.perfect_lfu(exponent, 0.05)
    assert perfect < by_policy["lru"] < by_policy["second_chance"] + 0.002
    assert by_policy["lru"] < 1.5 * perfect
    assert abs(evictions.lemma(exponent, 0.05) - perfect) < 0.08


def test_an_edge_sends_all_groups_off_at_once_or_one_by_one() -> None:
    case = gaps.Case(groups=400, queries=2, eager_loss=0, lazy_loss=0)
    edges = {
        (policy, flush): gaps.cross(policy, flush, case, tuples=400, crossings=2, seed=1)
        for policy in POLICIES
        for flush in gaps.FLUSHES
    }
    present = len(np.unique(uniform_tuples(400, gaps.TUPLES_PER_GROUP * 400, seed=1).groups))
    assert edges["lru", "eager"].most_at_once == present
    assert edges["lru", "lazy"].most_at_once == 1
    for policy in POLICIES:
        eager, lazy = edges[policy, "eager"], edges[policy, "lazy"]
        assert 1 <= lazy.most_at_once < eager.most_at_once
        assert eager.longest_us > 0


def measured(policy: Policy, output: Path) -> tuple[cache.SameGroups, Outcome]:
    """A run without the papers' questions, looked at by the check."""
    contender = cache.PolicyContender(policy, TUPLES, EFFORT, seed=3)
    running = contender.start(1)
    figures = running.run(output)
    running.close()
    check, outcome = cache.SameGroups(TUPLES, 3), Outcome(contender.name)
    outcome.seconds, outcome.figures = [1.0], [figures]
    check.look(outcome, output)
    return check, outcome


@pytest.mark.parametrize("policy", POLICIES)
def test_partials_are_checked_to_add_up(policy: Policy, tmp_path: Path) -> None:
    check, outcome = measured(policy, tmp_path)
    check.judge([outcome])
    assert outcome.checked, outcome.remark
    assert outcome.rows is not None
    assert outcome.rows == outcome.figure("rows")
    assert cache.EPOCHS < outcome.rows < TUPLES


def test_a_lost_tuple_is_noticed(tmp_path: Path) -> None:
    _, outcome = measured("lru", tmp_path)
    told = json.loads((tmp_path / cache.ANSWER).read_text())
    told["sums"][0] += 1
    (tmp_path / cache.ANSWER).write_text(json.dumps(told))
    check = cache.SameGroups(TUPLES, 3)
    check.look(outcome, tmp_path)
    check.judge([outcome])
    assert not outcome.checked
    assert outcome.remark


def test_the_report_has_the_papers_figures_beside_ours() -> None:
    figures = {report.smallest(g): 1_234_567.0 for g in sizes.PAPER}
    figures |= {report.gap(f, c.groups): 77.0 for f in gaps.FLUSHES for c in gaps.PAPER}
    lru = {report.mean_chain(b): 1.582 for b in chains.BUCKETS}
    lru |= {report.longest_chain(b): 7.25 for b in chains.BUCKETS}
    outcomes = [
        Outcome("second_chance", [1.0], [figures]),
        Outcome("lru", [1.0], [{**figures, **lru}]),
    ]
    text = io.StringIO()
    console = Console(width=160, file=text)
    for table in report.tables(outcomes):
        console.print(table)
    for figure in ("1,234,567", "44,000", "77", "1.8", "7.25", "1.582", "6 to 8", "0.499"):
        assert figure in text.getvalue()
    assert "410,000" not in text.getvalue()  # the direct-mapped table was not asked for

    figure_module = pytest.importorskip("matplotlib.figure")
    picture = figure_module.Figure()
    report.draw(picture, outcomes)
    assert len(picture.axes) == 4


def test_the_experiment_is_registered() -> None:
    experiment = find_experiment("cache")
    prepared = experiment.prepare(Settings(scale=0.01), lambda line: None)
    assert [c.name for c in prepared.contenders] == list(POLICIES)
    assert cache.Effort.at(1.0).fillings > cache.Effort.at(0.01).fillings > 1
