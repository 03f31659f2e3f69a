"""A stream in somebody else's Spark, whose JVM is killed while it runs, in a process of its own.

In: a capture and a folder for results. Out: on stdout how the run ended, as JSON.

    python -m tests.spark.killed_jvm CAPTURE FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkContext

from terascope.config import load_config
from terascope.diagnostic import SparkLost
from terascope.session import Session
from terascope.spark.session import open_session
from tests.conftest import QUICK_START
from tests.settings import Changes

if TYPE_CHECKING:
    from terascope.streaming.heartbeat import BatchReport

QUERIES = """
QUERY senders: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM link.TCP GROUP BY time/5 AS tb, srcIP;
"""
BATCH_BYTES = 60_000
KILLED_AFTER = 1


def kill(report: BatchReport) -> None:
    if report.batch == KILLED_AFTER:
        gateway = SparkContext._gateway
        assert gateway is not None
        os.kill(gateway.proc.pid, signal.SIGKILL)


def main(capture: Path, folder: Path) -> None:
    settings: Changes = {
        "speed": "max", "until_idle": True, "trigger": 0.0, "batch_bytes": BATCH_BYTES, "tasks": 2,
        "port": None,
    }  # fmt: skip
    config = load_config(kernels="numpy", split_bytes=BATCH_BYTES // 3)
    given = open_session("local[2]", settings={"spark.driver.extraJavaOptions": QUICK_START})
    told: dict[str, object] = {}
    with Session(given, config=config) as session:
        session.source(f"link=pcap:{capture}")
        queries = session.query(QUERIES)
        with queries.stream(folder / "state", folder / "out", **settings, watch=kill) as run:
            try:
                run.wait(300)
            except SparkLost as lost:
                told["lost"] = str(lost)
            told["restarts"] = run.status().run.restarts
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
