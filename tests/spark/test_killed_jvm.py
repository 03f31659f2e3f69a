"""A stream whose JVM is killed, and is not ours, ends with a word on what to do. That a stream goes
on in another JVM of its own is held by tests/cli/test_cli_stream.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_a_jvm_of_somebody_else_is_not_started_again(tmp_path: Path) -> None:
    capture = tmp_path / "link.pcap"
    generate(Profile(packets=1500, duration=30.0, seed=5, hosts=80, snaplen=96), capture)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_jvm", str(capture), str(tmp_path)],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout)
    assert "open another SparkSession" in told["lost"]
    assert told["restarts"] == 0
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
