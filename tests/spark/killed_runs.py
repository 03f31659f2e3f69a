"""A query set run several times on a cluster, in some of them with workers that are killed.

In: a capture, a query file, a folder. Out: in the folder the results of each run, and for each who
was killed a file RUN.NAME (tests.spark.mortal_tasks). A process of its own, which starts and stops
the cluster:

    python -m tests.spark.killed_runs CAPTURE QUERIES FOLDER
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from terascope.config import load_config
from terascope.execute import relation_task, reports
from terascope.execute.low_level import EngineName
from terascope.session import QuerySet, Session
from terascope.spark.session import open_session
from tests.conftest import QUICK_START
from tests.settings import SOAK

ARMED: Final = "TERASCOPE_TEST_ARMED"


STREAMED: Final = "streamed"


@dataclass(frozen=True)
class Run:
    """Whether results are folders of parts, and who is killed. Without victims a run is none of
    Spark: the local engine says what all others must give.
    """

    parts: bool
    killed: tuple[str, ...] = ()
    in_one_task: bool = False
    """Whether one task computes the relation, or Spark."""


ONE_FILE: Final[Mapping[str, Run]] = {
    "killed": Run(parts=False, killed=("reading", "merging")),
}
RUNS: Final[Mapping[str, Run]] = {
    "calm": Run(parts=False),
    "killed_parts": Run(parts=True, killed=("reading", "merging", "writing", "executor")),
    "killed_relations": Run(parts=True, killed=("finishing",), in_one_task=True),
    **(ONE_FILE if SOAK else {}),
}


def main(capture: str, queries: str, folder: Path) -> None:
    armed = folder / "armed"
    armed.mkdir()
    os.environ[ARMED] = str(armed)  # the driver has workers, too
    settings: dict[str, Any] = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": QUICK_START,
        f"spark.executorEnv.{ARMED}": str(armed),
        "spark.python.daemon.module": "tests.spark.mortal_daemon",
    }
    spark = open_session("local-cluster[1,2,1024]", "terascope-killed", settings)
    try:
        with (
            patch.object(reports, "DRIVER_BYTES", -1),
            patch.object(
                reports, "SMALL_PAYLOAD_BYTES", -1
            ),  # or the driver merges so little by itself
            Session(spark, config=load_config(split_bytes=1 << 18, kernels="numpy")) as session,
        ):
            session.source(f"link=pcap:{capture}")
            for name, run in RUNS.items():
                for victim in run.killed:
                    (armed / victim).touch()
                engine: EngineName = "spark" if run.killed else "local"
                most = relation_task.SMALL_BYTES if run.in_one_task else -1
                with patch.object(relation_task, "SMALL_BYTES", most):
                    session.load(queries).write(folder / name, "parquet", run.parts, engine=engine)
                for victim in run.killed:
                    (armed / f"{victim}.killed").rename(folder / f"{name}.{victim}")
            (armed / "executor").touch()
            stream(session.load(queries), folder)
            (armed / "executor.killed").rename(folder / f"{STREAMED}.executor")
    finally:
        spark.stop()


def stream(queries: QuerySet, folder: Path) -> None:
    """The same as a stream, in several micro-batches."""
    settings: dict[str, Any] = {
        "speed": "max",
        "until_idle": True,
        "trigger": 0.0,
        "batch_bytes": 200_000,
        "tasks": 2,
        "port": None,
    }
    with queries.stream(folder / "state", folder / STREAMED, **settings) as running:
        assert running.wait(300), "the stream did not end"
        assert running.batch > 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
