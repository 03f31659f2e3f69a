"""What a tuple costs in a query as users write it, with the strategies the engine picks itself.

In: GSQL over a file of packets. Out: processor time a tuple on one core, by level, without Spark:
the low level in one task, the states and groups it makes complete. Decoding counts for neither;
nor does turning the states of groups into values, once for each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.experiment import BenchError
from bench.holistic.level_costs import LevelClock, LevelMeter
from bench.low_run import prepared
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.execute.task import Groups, LowTask
from terascope.physical.low_plan import LowAggregate
from terascope.physical.splits import owned
from terascope.pipeline import Bindings, compile_set

PROTOCOL: Final = "PROTOCOL PKT (tb UINT increasing, srcIP UINT, destIP UINT, len UINT);\n"
NAME: Final = "answer"
BY_SOURCE: Final = ("tb", "srcIP")
BY_PAIR: Final = ("tb", "srcIP", "destIP")


def gsql_of(values: str, keys: tuple[str, ...] = BY_SOURCE) -> str:
    """One query: some values of each group."""
    wanted = ", ".join(keys)
    query = f"QUERY {NAME}:\nSELECT {wanted}, {values}\nFROM packets.PKT GROUP BY {wanted};\n"
    return PROTOCOL + query


@dataclass(frozen=True)
class GsqlCost:
    """In nanoseconds of processor time a tuple."""

    low: float
    high: float
    groups: int

    @property
    def total(self) -> float:
        return self.low + self.high


def gsql_cost(path: Path, text: str) -> GsqlCost:
    """Of one query.

    Raises:
        BenchError: the low level does not aggregate for it.
    """
    interface = Interface("packets", "parquet", str(path))
    bindings = Bindings(interfaces={"packets": interface})
    job = prepared(compile_set(Source(text, "udafs.gsql"), bindings).job())
    (read,) = job.reads
    assert read.low is not None
    (query,) = read.low.queries
    if not isinstance(query, LowAggregate):
        raise BenchError(f"tuples go up, not groups: {text}")
    clock = LevelClock()
    task = LowTask(read.low, {0: owned(query, [read.splits])[0]}, LevelMeter(clock))
    groups = 0
    with clock.on("table"):
        for ready in task.run(read.splits, read.clocks):
            groups += len(ready.block.rows) if isinstance(ready, Groups) else 0
    tuples = task.counters.tuples
    return GsqlCost(clock.spent["table"] / tuples, clock.spent["merge"] / tuples, groups)
