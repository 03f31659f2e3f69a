"""Plain Spark SQL: one job for each query, in one session, adaptive execution on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.dialects import translate
from bench.experiment import Figures
from bench.workload import Pair, Queries, Workload


@dataclass(frozen=True)
class SparkSql:
    pair: Pair
    name: str = "spark_sql"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Queries:
        from bench.peers import AS_SPARK_STARTS
        from terascope.spark.session import open_session

        # Our settings suit plain Spark on few cores better than its own: a shuffle of twice as many
        # partitions as cores instead of 200, and a larger heap.
        spark = open_session(f"local[{cores}]", "plain Spark SQL", AS_SPARK_STARTS)

        def answer(workload: Workload, output: Path) -> Figures:
            spark.read.parquet(str(workload.parquet)).createOrReplaceTempView(workload.table)
            for query, sql in workload.sql.items():
                rows = spark.sql(translate(sql, "spark"))
                rows.write.mode("overwrite").parquet(str(output / query))
            return {}

        return Queries(self.pair, answer, spark.stop)
