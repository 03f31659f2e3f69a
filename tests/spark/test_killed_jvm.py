"""A JVM that is killed costs a stream a restart, and no row; one that is not ours ends it with a
word on what to do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.operate.subscription import Subscription
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.agreement import delivered
from tests.properties.stream_cases import readable
from tests.reference.connector_sources import ConnectorSources
from tests.spark.killed_jvm import KILLED_AFTER, NAMES, QUERIES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PACKETS = 3000


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("killed") / "link.pcap"
    generate(Profile(packets=PACKETS, duration=60.0, seed=5, hosts=80, snaplen=96), path)
    return path


def run(capture: Path, folder: Path, owner: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_jvm", str(capture), str(folder), owner],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout), done.stderr


def test_the_stream_goes_on_in_another_jvm(capture: Path, tmp_path: Path) -> None:
    told, errors = run(capture, tmp_path, "ours")
    assert told["killed"] == [KILLED_AFTER]
    assert told["over"] is True
    assert told["restarts"] == 1
    assert len(told["said"]) == 1
    assert "Spark's JVM has ended" in told["said"][0]
    assert "Traceback" not in errors, errors[-3000:]
    assert told["batch"] > KILLED_AFTER
    assert (told["tuples"], told["late"], told["malformed"]) == (PACKETS, 0, 0)
    interfaces = {"link": Interface("link", "pcap", str(capture))}
    plan = compile_set(Source(QUERIES, "killed.gsql"), Bindings(interfaces)).optimized
    answers = delivered(plan, evaluate(plan, ConnectorSources(interfaces)))
    for name in NAMES:
        rows = Subscription(tmp_path / "out" / name, follow=False, from_start=True).rows()
        found = Counter(tuple(row.values()) for row in rows)
        assert found == Counter(map(tuple, readable(answers[name]).rows))
        assert found


@pytest.mark.soak
def test_a_jvm_of_somebody_else_is_not_started_again(capture: Path, tmp_path: Path) -> None:
    told, errors = run(capture, tmp_path, "given")
    assert "open another SparkSession" in told["lost"]
    assert told["restarts"] == 0
    assert "Traceback" not in errors, errors[-3000:]
