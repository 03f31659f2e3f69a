"""Kills in the second half of a stream: every batch from the middle on is killed at one step after
the other, the last one too, whose slices close with the end of the sources, and whose commit comes
after everything else. Then nothing is lost, nothing is there twice, and the stream knows that it is
over.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

from terascope.connectors.live import Speed
from tests.properties.plain_streams import Killed, limited_to
from tests.properties.stream_cases import KILL_POINTS, KillPoint, make_stream_case
from tests.properties.stream_results import assert_counted, assert_delivered
from tests.properties.stream_runs import CaseRuns, tear

QUERIES, ROWS = 4, 60
SEEDS = (200, 210, 221)
MOST_STEPS = 100


def test_kills_from_the_middle_to_the_end_lose_nothing(tmp_path: Path) -> None:
    last: Counter[KillPoint] = Counter()
    before: Counter[KillPoint] = Counter()
    for seed in SEEDS:
        killed = killed_late(seed, tmp_path / str(seed))
        last.update(killed.pop(max(killed)))
        for kills in killed.values():
            before.update(kills)
    assert set(last) == set(KILL_POINTS), "the last batch was not killed at every step"
    assert last["noted"] >= len(SEEDS), "the commit of the last batch was not always missing"
    assert len(before) > 1, "the batches before the last were not killed"


def killed_late(seed: int, folder: Path) -> dict[int, list[KillPoint]]:
    """The steps at which each batch of a case was killed; the last batch is one of them."""
    case = replace(make_stream_case(seed, folder / "in", QUERIES, ROWS), stops=())
    rng = random.Random(seed)
    expected = case.expected()
    killed: dict[int, list[KillPoint]] = {}
    with limited_to(case.portion):
        batches = CaseRuns(case, folder / "undisturbed").replay().batches
        runs = CaseRuns(case, folder / "killed")
        live = runs.live(Speed.parse("max"), until_idle=True)
        log = runs.trace.log
        plans = {number: kills_of(number, batches, rng) for number in range(batches)}
        run = runs.opened(live, 2)
        for _ in range(MOST_STEPS):
            if run.ended and log.done == len(log.offsets):
                break
            number, kill = log.done, None
            if plans.get(number):
                kill = plans[number].pop(0)
            try:
                run.step(kill, rng.randrange(2) if kill == "manifest" else 0)
                if kill is None:
                    continue
                # It did not come to that step: killed when all but the commit was done.
                kill, log.done = "noted", number
            except Killed:
                assert kill is not None
            killed.setdefault(number, []).append(kill)
            run.close()
            if rng.random() < 0.5:
                tear(runs.folder)
            run = runs.opened(live, rng.randrange(1, 4))
        assert run.ended, f"seed {seed}: the stream does not end"
        assert max(killed) == log.done - 1, f"seed {seed}: the last batch was not killed"
        assert_counted(case, run.runner.pipeline.state.seen)
        run.close()
        # Started once more it has nothing to do, and changes nothing.
        run = runs.opened(live, 2)
        assert not run.step(), f"seed {seed}: an ended stream goes on"
        assert run.ended
        run.close()
    assert_delivered(expected, runs.folder / "out", case)
    return killed


def kills_of(number: int, batches: int, rng: random.Random) -> list[KillPoint]:
    """None in the first half of a stream, one from then on; all in the last batch."""
    if number == batches - 1:
        return [*rng.sample(KILL_POINTS, len(KILL_POINTS)), "noted"]
    return [rng.choice(KILL_POINTS)] if number >= batches // 2 else []
