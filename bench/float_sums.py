"""`float-sums`: what exact sums of FLOATs cost in Spark.

SUM of a FLOAT by epoch and key, as a GROUP BY of ours in Spark, beside the same GROUP BY with
Spark's own `sum`, whose last digits depend on the order of the tuples. Both read one Parquet file
and give their rows to nobody, in one session, in turn. Told are seconds by the clock and the
processor time of the JVM and its workers, each the least of the runs, and the ratios of these.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Column, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.harness import made_once
from bench.start import tree_seconds

if TYPE_CHECKING:
    from terascope.spark.session import DataFrame, SparkSession

ROWS = (1_000_000, 4_000_000, 16_000_000)
FEW, ROWS_EACH = 100, 10
"""Keys of an epoch where groups are few; tuples of a group where they are many."""
EPOCHS, SECONDS = 6, 600
REPEATS = 4
MOST = 3.0
"""Times Spark's own sum, at most."""


def measurements(path: Path, rows: int, keys: int) -> None:
    """Ordinary FLOATs in order of time, in row groups for several tasks."""
    rng = np.random.default_rng(rows + keys)
    columns = {
        "ts": np.sort(rng.integers(0, EPOCHS * SECONDS, rows)),
        "k": rng.integers(0, keys, rows).astype(np.int32),
        "x": rng.normal(size=rows) * 1e3,
    }
    pq.write_table(pa.table(columns), path, row_group_size=max(1, rows // 8))


@dataclass(frozen=True)
class Sums:
    """A shape of data."""

    name: str
    path: Path
    repeats: int
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Summing:
        from terascope.spark.session import open_session

        return Summing(self, open_session(f"local[{cores}]"))


@dataclass(frozen=True)
class Summing:
    of: Sums
    spark: SparkSession

    def warm(self) -> None:
        """Each is run once before it counts."""

    def run(self, output: Path) -> Figures:
        del output
        df = self.spark.read.parquet(str(self.of.path)).selectExpr("ts div 600 AS tb", "k", "x")
        ways = {"spark": by_spark, "ours": by_us}
        clock: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(1 + self.of.repeats):
            for name, way in ways.items():
                before, began = tree_seconds(), time.perf_counter()
                way(df).write.format("noop").mode("overwrite").save()
                clock[name].append(time.perf_counter() - began)
                cpu[name].append(tree_seconds() - before)
        (spark, ours), (spark_cpu, our_cpu) = (
            [min(runs[1:]) for runs in kind.values()] for kind in (clock, cpu)
        )
        return {
            "spark": spark,
            "ours": ours,
            "times": ours / spark,
            "cpu_times": our_cpu / max(spark_cpu, 0.01),
        }

    def close(self) -> None:
        self.spark.stop()


def by_spark(df: DataFrame) -> DataFrame:
    return df.groupBy("tb", "k").agg({"x": "sum"})


def by_us(df: DataFrame) -> DataFrame:
    from terascope.functions.aggregates.total import Sum
    from terascope.plan.expr import AggCall, Col
    from terascope.plan.rel import Aggregate, Field, Read
    from terascope.spark.catalyst.frame import project
    from terascope.spark.catalyst.grouping import aggregate_frame
    from terascope.types import Type

    fields = (Field("tb", Type.LLONG), Field("k", Type.LLONG), Field("x", Type.FLOAT))
    keys = tuple((name, Col(name, Type.LLONG)) for name in ("tb", "k"))
    summed = AggCall(Sum(), (Col("x", Type.FLOAT),), Type.FLOAT)
    frame = project(df, [df[f.name] for f in fields], fields)
    return aggregate_frame(Aggregate(Read("m", fields), keys, (("s", summed),)), frame, {}).df


class AtMost:
    """No shape takes more than it may."""

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        found = outcome.figure("cpu_times")
        outcome.checked = found is not None and found <= MOST
        if not outcome.checked:
            outcome.remark = f"more than {MOST:.0f} times Spark's own sum"

    def judge(self, outcomes: list[Outcome]) -> None:
        """Each has been judged by itself."""


class FloatSums:
    name = "float-sums"
    title = "exact sums of FLOATs in Spark beside Spark's own, for few groups and many"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        contenders: list[Contender] = []
        for rows in [settings.count(rows) for rows in (ROWS[:1] if settings.quick else ROWS)]:
            for kind, keys in (("few", FEW), ("many", max(1, rows // ROWS_EACH // EPOCHS))):
                path = settings.data / f"float-sums-{rows}-{keys}.parquet"
                made_once(path, partial(measurements, rows=rows, keys=keys))
                contenders.append(
                    Sums(f"{rows} tuples of {kind} groups", path, 1 if settings.quick else REPEATS)
                )
        tell(f"{len(contenders)} shapes of data in {settings.data}")
        return Prepared(
            contenders=tuple(contenders),
            check=AtMost(),
            columns=(
                Column("spark", "Spark s", "{:.2f}"),
                Column("ours", "ours s", "{:.2f}"),
                Column("times", "times", "{:.2f}"),
                Column("cpu_times", "times, processor", "{:.2f}"),
            ),
            runs=0,
            alternating=False,
        )


EXPERIMENT = FloatSums()
