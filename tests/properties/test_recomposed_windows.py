"""Windows that are composed in another way while a stream runs: the same answers."""

from __future__ import annotations

import os
import random
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.cli.status_view import window_lines
from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from terascope.sharing.compositions import Composition, marked, recomposed
from terascope.sharing.slices import Periodic, composed, composed_panes
from terascope.sharing.windows import Cluster
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.state.state import StateFolder
from terascope.streams import could_go_on
from tests.agreement import WITHOUT_COMPILING, Answers, delivered
from tests.operate.statuses import STATUS
from tests.oracle.compare import assert_same_rows
from tests.properties.plain_streams import Killed, OffsetLog, PlainRun, limited_to
from tests.properties.stream_cases import KILL_POINTS
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

SEEDS = range(1 + int(os.environ.get("TERASCOPE_STREAM_SEEDS", "0")) // 100)
"""Each takes as long as a hundred random streams."""
PROTOCOL = """PROTOCOL T (time UINT increasing clock(s), k INT, v INT, x FLOAT);
"""
POOL = {
    "short": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM T [RANGE 12 SLIDE 6] GROUP BY k",
    "odd": "SELECT k, MAX(v) AS m, AVG(v) AS a FROM T [RANGE 7 SLIDE 3] GROUP BY k",
    "long": "SELECT k, COUNT(*) AS n, MIN(v) AS m FROM T [RANGE 90 SLIDE 2] GROUP BY k",
    "best": "SELECT k, COUNT(*) AS n FROM T [RANGE 30 SLIDE 5] GROUP BY k ORDER BY n DESC LIMIT 1",
    "hops": "SELECT k, SUM(v) AS s FROM T [RANGE 3 SLIDE 8] GROUP BY k",
    "tumbles": "SELECT k, SUM(v) AS s FROM T [RANGE 6 SLIDE 6] GROUP BY k",
    "floats": "SELECT k, SUM(x) AS s FROM T [RANGE 10 SLIDE 4] GROUP BY k",
    "values": "SELECT COUNT(DISTINCT v) AS n FROM T [RANGE 10 SLIDE 4]",
    "all": "SELECT COUNT(*) AS n FROM T [RANGE 9 SLIDE 2]",
    "some": "SELECT k, COUNT(*) AS n FROM T [RANGE 12 SLIDE 5] WHERE v > 0 GROUP BY k",
    "twice": "SELECT a.wend, a.k, a.n, b.n AS before FROM short a, short b"
    " WHERE a.k = b.k AND a.wend = b.wend + 6",
}
SECONDS = 240


def made_set(folder: Path, rng: random.Random, names: list[str] | None = None) -> Compiled:
    """A stream whose rate jumps by a hundred times, and back."""
    times: list[int] = []
    for second in range(SECONDS):
        busy = SECONDS // 3 <= second < SECONDS // 2
        times += [second] * (20 if busy else rng.randrange(5) == 0)
    columns = {
        "time": pa.array(times, pa.int64()),
        "k": pa.array([rng.randrange(3) for _ in times], pa.int64()),
        "v": pa.array([rng.randrange(-5, 50) for _ in times], pa.int64()),
        "x": pa.array([rng.choice([1e16, -1e16, 0.1, 0.7]) for _ in times]),
    }
    path = folder / "link.parquet"
    if not path.exists():
        pq.write_table(pa.table(columns), path, row_group_size=16)
    bindings = Bindings({"link": parse_interface(f"link=parquet:{path}")}, config=WITHOUT_COMPILING)
    text = PROTOCOL + "".join(f"QUERY {n}: {POOL[n]};\n" for n in names or POOL)
    return compile_set(Source(text, "set"), bindings)


def expected(made: Compiled) -> Answers:
    """What a batch gives."""
    sources = ConnectorSources(made.bindings.interfaces)
    return delivered(made.plan, evaluate(made.plan, sources))


def settings(folder: Path, rng: random.Random) -> StreamRun:
    live = LiveSettings(Speed.parse("max"), True, split_bytes=400, most_bytes=900)
    tasks = rng.randrange(1, 4)
    return StreamRun(
        folder / "state",
        folder / "out",
        live=live,
        config=config_with(kernels="numpy", tasks=tasks),
    )


def drawn(rng: random.Random, before: Composition) -> Composition:
    """Any other composition of the same windows."""
    free = sorted(before.windows)
    rng.shuffle(free)
    clusters: list[Cluster] = []
    while free:
        some: tuple[Periodic, ...] = tuple(sorted(free[: rng.randrange(1, len(free) + 1)]))
        free = [window for window in free if window not in some]
        vector = rng.choice([composed, composed_panes])(some)
        assert vector is not None
        clusters.append(Cluster(some, vector))
    return recomposed(before, marked(clusters), before.traffic, before.since + 1)


def assert_answers(answers: Answers, folder: Path) -> None:
    for name, answer in answers.items():
        assert_same_rows(answer.rows, rows_of(folder / name), answer.fields)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda s: f"seed-{s}")
def test_answers_do_not_depend_on_compositions_or_kills(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    made = made_set(tmp_path, rng)
    running, log = settings(tmp_path, rng), OffsetLog()
    changes = 0
    ended = False
    with limited_to(rng.choice([None, None, 200])):
        while not ended:
            run = PlainRun(made, running, log)
            with suppress(Killed):
                for _ in range(rng.randrange(1, 4)):
                    if not run.ended:
                        run.step()
                if not run.ended and rng.random() < 0.5:
                    run.step(rng.choice(KILL_POINTS), rng.randrange(4))
            if rng.random() < 0.7:
                plans = run.windows
                changed = {key: drawn(rng, one) for key, one in plans.known.items()}
                state = StateFolder(run.runner.folder.state).newest()
                assert could_go_on(made, state, plans.with_changes(changed))
                plans.known |= changed
                plans.save(run.runner.folder.path)
                changes += 1
            ended = run.ended
            late = sum(seen.late for seen in run.runner.pipeline.state.seen.values())
            assert late == 0
            run.close()
    assert changes > 1
    assert_answers(expected(made), tmp_path / "out")


JUMPING = {
    "each": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM T [RANGE 6 SLIDE 6] GROUP BY k",
    "over": "SELECT k, MAX(v) AS m FROM T [RANGE 30 SLIDE 6] GROUP BY k",
}
AT_ONCE = {"replan_seconds": 0.0, "replan_least_core": 0.0, "replan_core": float("inf")}


def jumping_set(folder: Path, rng: random.Random) -> Compiled:
    """Two windows over a stream of one tuple a second, then a hundred, then one."""
    rates = [1] * 120 + [100] * 48 + [1] * 240
    times = [second for second, rate in enumerate(rates) for _ in range(rate)]
    columns = {
        "time": pa.array(times, pa.int64()),
        "k": pa.array([rng.randrange(3) for _ in times], pa.int64()),
        "v": pa.array([rng.randrange(-5, 50) for _ in times], pa.int64()),
        "x": pa.array([0.5 for _ in times]),
    }
    path = folder / "link.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=25)
    bindings = Bindings({"link": parse_interface(f"link=parquet:{path}")}, config=WITHOUT_COMPILING)
    text = PROTOCOL + "".join(f"QUERY {n}: {q};\n" for n, q in JUMPING.items())
    return compile_set(Source(text, "set"), bindings)


@pytest.mark.parametrize(
    "kills", [pytest.param(False, marks=pytest.mark.soak), True], ids=["stopped", "killed"]
)
def test_windows_share_slices_while_many_tuples_come(kills: bool, tmp_path: Path) -> None:
    """One tuple a second, then a hundred, then one: to look a tuple up for both windows costs more
    than slices do while there are many, and less while there are few.
    """
    rng = random.Random(kills)
    made = jumping_set(tmp_path, rng)
    live = LiveSettings(Speed.parse("max"), True, split_bytes=400, most_bytes=1500)
    running = StreamRun(
        tmp_path / "state", tmp_path / "out", live=live,
        config=config_with(kernels="numpy", tasks=2, **AT_ONCE),
    )  # fmt: skip
    log, ended = OffsetLog(), False
    lines: list[str] = []
    used: list[tuple[int, int, bool]] = []
    while not ended:
        run = PlainRun(made, running, log)
        replanner = run.runner.windows
        assert replanner is not None
        changed: dict[str, Composition] = {}
        with suppress(Killed):
            while not run.ended and not changed:
                kill = kills and rng.random() < 0.02
                run.step(rng.choice(KILL_POINTS) if kill else None)
                (told,) = replanner.status()
                lines.append(str(window_lines(replace(STATUS, windows=(told,)))[0]))
                used.append((len(told.clusters), round(told.rate_now or 0.0), told.measured))
                changed = replanner.due()
        state = run.runner.pipeline.state
        if changed:
            assert could_go_on(made, state, run.windows.with_changes(changed))
            replanner.put_in_force(changed)
        ended = run.ended
        assert sum(seen.late for seen in state.seen.values()) == 0
        run.close()
    assert all(measured for _, _, measured in used), "the first plan was made of a sample"
    if not kills:  # after a restart three slices have to be seen once more
        assert 1 in {number for number, rate, _ in used if rate > 90}
        assert used[-1][0] == 2, "apart when few come again"
        shared = (
            r"in 1 cluster of slices, .* for (9\d|100) tuples a second \(measured\); now \d+; 2 "
        )
        assert any(re.search(shared + "earlier still read$", line) for line in lines)
        assert "2 queries in 2 clusters of slices" in lines[-1]
        assert lines[-1].endswith("; now 1; 1 earlier still read")
    assert_answers(expected(made), tmp_path / "out")
