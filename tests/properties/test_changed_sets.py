"""A changed query set on an old checkpoint: unchanged queries go on, new ones begin, others end.

Random subsets of a pool of queries over a growing stream, changed between two batches at random
moments: queries that were there all the time give what a batch gives; a query that came later gives
rows that a batch gives, too, and all of them from some slice on.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import OutputError, Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.properties.stream_results import rows_of
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK, config_with

PROTOCOL = "PROTOCOL T (time UINT increasing clock(s), k INT, v INT);\n"
POOL = {
    "counts": "SELECT tb, k, COUNT(*) AS n FROM T GROUP BY time/10 AS tb, k",
    "sums": "SELECT tb, k, SUM(v) AS s, MAX(v) AS m FROM T GROUP BY time/10 AS tb, k",
    "turned": "SELECT tb, v, MIN(k) AS m FROM T GROUP BY time/4 AS tb, v HAVING COUNT(*) > 1",
    "chosen": "SELECT tb, v, COUNT(*) AS n FROM T WHERE k > 1 GROUP BY time/4 AS tb, v",
    "merged": "SELECT time, k, v FROM T WHERE v > 3",
    "left_only": "SELECT time, v FROM left.T WHERE v > 4",
    "pairs": "SELECT a.tb, a.k, a.n, b.n AS before FROM counts a LEFT JOIN counts b"
    " ON a.k = b.k AND a.tb = b.tb + 1",
    "sliding": "SELECT k, COUNT(*) AS n FROM T [RANGE '12 sec' SLIDE '6 sec'] GROUP BY k",
    "odd": "SELECT k, SUM(v) AS s FROM T [RANGE 7 SLIDE 3] GROUP BY k",
    "wide": "SELECT k, MAX(v) AS m FROM T [RANGE 40 SLIDE 5] GROUP BY k",
    "middle": "SELECT tb, median(v) AS m FROM T GROUP BY time/10 AS tb",
    "longer": "SELECT tb2, SUM(n) AS n FROM counts GROUP BY tb/2 AS tb2",
}
TIME = {"merged": 0, "left_only": 0, "sliding": 3, "odd": 3, "wide": 3}
"""Where time stands in the rows; elsewhere first."""
SECONDS = 150
MOMENTS = 20 if SOAK else 8


def query_set(names: set[str]) -> str:
    wanted = set(names)
    if wanted & {"pairs", "longer"}:
        wanted.add("counts")
    return PROTOCOL + "".join(f"QUERY {n}: {q};\n" for n, q in POOL.items() if n in wanted)


def interfaces(folder: Path, rng: random.Random) -> Bindings:
    """Two links with rates and gaps of their own."""
    for name, step in (("left", 1), ("right", 3)):
        times = sorted(rng.randrange(SECONDS) for _ in range(3 * SECONDS // step))
        table = pa.table(
            {
                "time": pa.array(times, pa.int64()),
                "k": pa.array([rng.randrange(4) for _ in times], pa.int64()),
                "v": pa.array([rng.randrange(6) for _ in times], pa.int64()),
            }
        )
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=25)
    names = ("left", "right")
    found = {n: parse_interface(f"{n}=parquet:{folder / n}.parquet") for n in names}
    return Bindings(found, config=WITHOUT_COMPILING)


def compiled(names: set[str], bindings: Bindings) -> Compiled:
    return compile_set(Source(query_set(names), "set"), bindings)


def batch_rows(bindings: Bindings) -> dict[str, Counter[tuple[object, ...]]]:
    made = compiled(set(POOL), bindings)
    found = evaluate(made.plan, ConnectorSources(bindings.interfaces))
    answers: dict[str, Counter[tuple[object, ...]]] = {}
    for name in POOL:
        visible = [i for i, f in enumerate(found[name].fields) if not f.hidden]
        answers[name] = Counter(tuple(r[i] for i in visible) for r in found[name].tuples)
    return answers


def settings(folder: Path) -> StreamRun:
    live = LiveSettings(Speed.parse("max"), True, split_bytes=400, most_bytes=900)
    return StreamRun(
        folder / "state", folder / "out", live=live, config=config_with(kernels="numpy", tasks=2)
    )


@pytest.mark.parametrize("seed", range(MOMENTS))
def test_set_changes_at_a_random_moment(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    bindings = interfaces(tmp_path, rng)
    want, log = batch_rows(bindings), OffsetLog()
    names = {n for n in POOL if rng.random() < 0.6} or {"counts"}
    always, began = set(names), dict.fromkeys(names, 0)
    phases = 0
    while True:
        made = compiled(names, bindings)
        always &= {s.name for s in made.plan.visible}
        run = PlainRun(made, settings(tmp_path), log)
        for _ in range(rng.randrange(1, 5)):
            if not run.step():
                break
        ended = run.ended
        run.close()
        if ended:
            break
        phases += 1
        kept = {n for n in names if n in always or rng.random() < 0.7}
        came = {n for n in POOL if n not in began and rng.random() < 0.4}
        began |= dict.fromkeys(came, phases)
        names = kept | came
    assert phases > 1, f"seed {seed} changes nothing"
    for name in sorted(names):
        got = Counter(rows_of(tmp_path / "out" / name))
        about = f"seed {seed}, {name}, from phase {began[name]} of {phases}"
        assert not got - want[name], f"{about}: rows that no batch gives"
        if name in always:
            assert got == want[name], about
        elif got:
            place = TIME.get(name, 0)
            first = min(int(str(row[place])) for row in got)
            later = {r: n for r, n in want[name].items() if int(str(r[place])) > first}
            assert not Counter(later) - got, f"{about}: gaps after {first}"


def test_changed_column_of_a_source_is_refused(tmp_path: Path) -> None:
    bindings = interfaces(tmp_path, random.Random(1))
    log = OffsetLog()
    run = PlainRun(compiled({"counts"}, bindings), settings(tmp_path), log)
    assert run.step()
    run.close()
    text = query_set({"counts"}).replace("time UINT increasing", "time UINT banded_increasing(2)")
    changed = compile_set(Source(text, "set"), bindings)
    with pytest.raises(OutputError, match=r"column 'time' of 'left' was .*--checkpoint"):
        PlainRun(changed, settings(tmp_path), log)


def test_changed_keys_of_an_untouched_query_are_refused(tmp_path: Path) -> None:
    """What it reads has changed below it."""
    bindings = interfaces(tmp_path, random.Random(1))
    log = OffsetLog()
    text = PROTOCOL + "QUERY a: SELECT time, {} AS x FROM T;\nQUERY b: SELECT tb, x FROM a"
    text += " GROUP BY time/10 AS tb, x;\n"
    first = compile_set(Source(text.format("k"), "set"), bindings)
    run = PlainRun(first, settings(tmp_path), log)
    assert run.step()
    run.close()
    changed = compile_set(Source(text.format("CAST(k AS STRING)"), "set"), bindings)
    with pytest.raises(OutputError, match="query b is the one of the checkpoint, but its keys"):
        PlainRun(changed, settings(tmp_path), log)
