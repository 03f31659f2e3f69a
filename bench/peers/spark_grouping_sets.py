"""Spark with all group-bys in one job: GROUP BY ... GROUPING SETS, split by grouping at the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.dialects import translate
from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class SparkGroupingSets:
    """For sets whose queries differ in nothing but their two keys."""

    pair: Pair
    epoch: int
    groupings: tuple[tuple[str, str], ...]
    name: str = "spark_grouping_sets"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Queries:
        from bench.peers import AS_SPARK_STARTS
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]", "plain Spark, grouping sets", AS_SPARK_STARTS)

        def answer(workload: Workload, output: Path) -> Figures:
            spark.read.parquet(str(workload.parquet)).createOrReplaceTempView(workload.table)
            rows = spark.sql(self.sql(workload.table))
            rows.write.mode("overwrite").partitionBy("query").parquet(str(output))
            for a, b in self.groupings:
                folder = output / f"query={self.grouping_id(a, b)}"
                if folder.is_dir():
                    folder.rename(output / f"{a}_{b}")
            return {}

        return Queries(self.pair, answer, spark.stop)

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(key for grouping in self.groupings for key in grouping))

    def sql(self, table: str) -> str:
        keys = ", ".join(f"`{key}`" for key in self.keys)
        sets = ", ".join(f"(tb, `{a}`, `{b}`)" for a, b in self.groupings)
        # The bits of the keys that are missing tell which query a row belongs to.
        return translate(
            f"SELECT tb, {keys}, COUNT(*) AS n, BIGINT(SUM(bytes)) AS total,"
            f" grouping_id(tb, {keys}) AS query"
            f" FROM (SELECT *, DIV(time, {self.epoch}) AS tb FROM {table})"
            f" GROUP BY GROUPING SETS ({sets})",
            "spark",
        )

    def grouping_id(self, *present: str) -> int:
        """What Spark's grouping_id is for a grouping: a bit for each key that is missing."""
        bits = "".join("0" if key in ("tb", *present) else "1" for key in ("tb", *self.keys))
        return int(bits, 2)
