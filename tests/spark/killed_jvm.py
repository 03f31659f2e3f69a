"""A stream whose JVM is killed while it runs, in a process of its own.

In: a capture, a folder for results, and whether Spark is started by somebody else. Out: on stdout
what the run said and how it ended, as JSON.

    python -m tests.spark.killed_jvm CAPTURE FOLDER ours|given
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
from tests.settings import Changes

if TYPE_CHECKING:
    from terascope.streaming.heartbeat import BatchReport

QUERIES = """
QUERY senders: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM link.TCP GROUP BY time/5 AS tb, srcIP;
QUERY windows: SELECT destIP, COUNT(*) AS packets, wend
  FROM link.TCP [RANGE '9 sec' SLIDE '4 sec'] GROUP BY destIP;
"""
NAMES = ("senders", "windows")
BATCH_BYTES = 60_000
KILLED_AFTER = 2
"""Of four batches or more."""


def main(capture: Path, folder: Path, owner: str) -> None:
    said: list[str] = []
    killed: list[int] = []
    settings: Changes = {
        "speed": "max",
        "until_idle": True,
        "trigger": 0.0,
        "batch_bytes": BATCH_BYTES,
        "tasks": 2,
        "port": None,
    }
    config = load_config(kernels="numpy", split_bytes=BATCH_BYTES // 3, master="local[2]")

    def kill(report: BatchReport) -> None:
        if report.batch == KILLED_AFTER and not killed:
            killed.append(report.batch)
            gateway = SparkContext._gateway
            assert gateway is not None
            os.kill(gateway.proc.pid, signal.SIGKILL)

    told: dict[str, object] = {}
    with Session(open_session("local[2]") if owner == "given" else None, config=config) as session:
        session.source(f"link=pcap:{capture}")
        queries = session.query(QUERIES)
        state, out = folder / "state", folder / "out"
        with queries.stream(state, out, **settings, watch=kill, say=said.append) as running:
            try:
                told["over"] = running.wait(300)
            except SparkLost as lost:
                told["lost"] = str(lost)
            status = running.status()
            told["batch"] = running.batch
    told |= {
        "killed": killed,
        "said": said,
        "restarts": status.run.restarts,
        "tuples": sum(one.tuples for one in status.sources),
        "late": sum(one.late for one in status.sources),
        "malformed": sum(one.malformed for one in status.sources),
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
