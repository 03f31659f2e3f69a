"""A stream in whose middle two attributes change places: the one with few values gets many.

In: a folder. Out: `Swapped`: a set of aggregations over a file of such tuples, and how it is run
without Spark, with trees that follow the traffic or with those it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING, Answers, delivered
from tests.reference.connector_sources import ConnectorSources
from tests.settings import Changes, config_with

EPOCHS, EPOCH_TUPLES = 20, 600
FEW, MANY = 4, 3000
SET: Final = """
PROTOCOL S (ts UINT increasing clock(s), a UINT, b UINT, c UINT, d STRING, v INT);
QUERY ac: SELECT tb, a, c, COUNT(*) AS n, SUM(v) AS x FROM [links].S GROUP BY ts/100 AS tb, a, c;
QUERY ad: SELECT tb, a, d, COUNT(*) AS n, MAX(v) AS x FROM [links].S GROUP BY ts/100 AS tb, a, d;
QUERY cd: SELECT tb, c, d, COUNT(*) AS n FROM [links].S GROUP BY ts/100 AS tb, c, d;
QUERY bc: SELECT tb, b, c, COUNT(*) AS n, MIN(v) AS x FROM [links].S GROUP BY ts/100 AS tb, b, c;
QUERY bd: SELECT tb, b, d, COUNT(*) AS n FROM [links].S GROUP BY ts/100 AS tb, b, d;
QUERY acd: SELECT tb, a, c, d, SUM(v) AS x FROM [links].S GROUP BY ts/100 AS tb, a, c, d;
"""
SAMPLED: Final[Changes] = {
    "replan_seconds": 0.0,
    "replan_sample_seconds": 0.0,
    "replan_core": float("inf"),
}
"""Every batch is sampled, and trees may be changed at any time."""


@dataclass(frozen=True)
class Swapped:
    compiled: Compiled

    def expected(self) -> Answers:
        plan = self.compiled.optimized
        return delivered(plan, evaluate(plan, ConnectorSources(self.compiled.bindings.interfaces)))


def swapped_set(
    folder: Path, trees: Changes, names: Sequence[str] = ("left",), text: str = SET
) -> Swapped:
    """The queries are over all of these interfaces together."""
    interfaces = {}
    for seed, name in enumerate(names):
        path = folder / f"{name}.parquet"
        pq.write_table(swapped_tuples(seed), path, row_group_size=EPOCH_TUPLES // 4)
        interfaces[name] = Interface(name, "parquet", str(path))
    config = WITHOUT_COMPILING.changed(split_bytes=1, **trees)
    bindings = Bindings(interfaces, {"links": tuple(names)}, config=config)
    return Swapped(compile_set(Source(text, str(folder / "swapped.gsql")), bindings))


def swapped_tuples(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    count = EPOCHS * EPOCH_TUPLES
    half = np.arange(count) < count // 2
    few, many = random.integers(0, FEW, count), random.integers(0, MANY, count)
    columns: Mapping[str, object] = {
        "ts": np.arange(count) * 100 // EPOCH_TUPLES,
        "a": np.where(half, few, many),
        "b": np.where(half, many, few),
        "c": random.integers(0, 3, count),
        "d": np.array(["x", "y", "z"])[random.integers(0, 3, count)],
        "v": random.integers(-9, 9, count),
    }
    return pa.table(dict(columns))


def run_settings(folder: Path, replanning: Changes, batch_bytes: int, tasks: int = 1) -> StreamRun:
    live = LiveSettings(Speed.parse("max"), True, split_bytes=1, most_bytes=batch_bytes)
    return StreamRun(
        folder / "checkpoint",
        folder / "out",
        live=live,
        config=config_with(trigger=0.0, kernels="numpy", tasks=tasks, **replanning),
    )
