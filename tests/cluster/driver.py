"""The driver of a cluster: runs a query set over partitions as often as it is told to.

In: the master, a folder with partitions, a query file, a folder for results, the bytes of a
micro-batch; on stdin a line `batch NAME`, `sent NAME` (a batch whose partitions send tuples, not
partial groups) or `stream NAME` for each run. Out: the results in folders
of these names; on stdout `ready`, and for each run a line `running NAME`, `micro-batch N` after
each of a stream, and `done JSON` with the places of tasks.

    python -m tests.cluster.driver MASTER PARTITIONS QUERIES FOLDER BYTES
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from terascope.config import load_config
from terascope.session import QuerySet, Session
from terascope.spark.session import SparkSession, open_session
from tests.conftest import QUICK_START

if TYPE_CHECKING:
    from terascope.streaming.heartbeat import BatchReport

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.sql.shuffle.partitions": "4",
}


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Driver:
    def __init__(
        self, spark: SparkSession, queries: QuerySet, sending: QuerySet, folder: Path,
        batch_bytes: int,
    ) -> None:  # fmt: skip
        """`sending`: the same queries, for which partitions send tuples."""
        self._spark, self._batch_bytes = spark, batch_bytes
        self._queries, self._sending, self._folder = queries, sending, folder
        self._seen: set[int] = set()

    def run(self, kind: str, name: str) -> dict[str, Any]:
        if kind == "stream":
            return self.stream(name)
        queries = self._sending if kind == "sent" else self._queries
        queries.write(self._folder / name, "parquet", engine="spark")
        return {"sending": "send trace " in queries.explain("job")}

    def stream(self, name: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "speed": "max", "until_idle": True, "trigger": 0.0, "tasks": 4, "port": None,
            "batch_bytes": self._batch_bytes,
        }  # fmt: skip

        def watch(report: BatchReport) -> None:
            tell("micro-batch", report.batch)

        state, output = self._folder / f"{name}.state", self._folder / name
        with self._queries.stream(state, output, watch=watch, **settings) as running:
            assert running.wait(500), "the stream did not end"
            return {"batches": running.batch}

    def tasks(self, partitions: int) -> dict[str, Any]:
        """The tasks since the last run: how many were where Spark should run them (NODE_LOCAL) and
        elsewhere (ANY); and for the stages with a task for each partition, the hosts of each.
        """
        store = self._spark.sparkContext._jsc.sc().statusStore()
        places: Counter[str] = Counter()
        hosts: dict[int, Counter[str]] = {}
        jobs = store.jobsList(None)
        stages = {jobs.apply(n).stageIds().apply(m) for n in range(jobs.size())
                  for m in range(jobs.apply(n).stageIds().size())}  # fmt: skip
        for stage in sorted(stages - self._seen):
            self._seen.add(stage)
            tasks = store.taskList(stage, 0, 1 << 20)
            some = [tasks.apply(at) for at in range(tasks.size())]
            places.update(task.taskLocality() for task in some)
            if len(some) == partitions and {t.taskLocality() for t in some} <= {
                "NODE_LOCAL",
                "ANY",
            }:
                for task in some:
                    hosts.setdefault(task.index(), Counter())[task.host()] += 1
        shown = {str(number): dict(found) for number, found in sorted(hosts.items())}
        return {"places": dict(places), "hosts": shown}


def main(master: str, partitions: str, queries: str, folder: Path, batch_bytes: int) -> None:
    spark = open_session(master, "terascope-hosts", SETTINGS)
    config = load_config(split_bytes=1 << 18, kernels="numpy", master=master, send_tuples="never")
    sending = config.changed(send_tuples="always")
    try:
        with Session(spark, config=config) as session, Session(spark, config=sending) as other:
            for one in (session, other):
                one.source(f"trace=parquet:{partitions}")
            count = len(session.bindings.interfaces)
            sets = session.load(queries), other.load(queries)
            driver = Driver(spark, *sets, folder, batch_bytes)
            tell("ready")
            for line in sys.stdin:
                kind, name = line.split()
                tell("running", name)
                began = time.monotonic()
                said = driver.run(kind, name)
                said |= {"seconds": time.monotonic() - began}
                tell("done", json.dumps({**said, **driver.tasks(count)}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
