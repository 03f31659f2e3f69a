"""What starting costs is measured: six contenders, each with its time and its processor time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.experiment import Outcome, Settings
from bench.start import EXPERIMENT, Commanding, SomeRows, compared

pytestmark = pytest.mark.bench


def test_the_processor_time_of_all_processes_is_counted(tmp_path: Path) -> None:
    spin = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.2: pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}]); print('row')"
    figures = Commanding(("-c", code)).run(tmp_path)
    assert figures["rows"] == 1
    assert 0.2 < figures["cpu"] < 10


def test_best_runs_are_compared() -> None:
    runs = {"plain Spark": [8.0, 4.0], "cold": [10.0, 6.0]}
    outcomes = [
        Outcome(name, figures=[{"clock": s, "cpu": 2 * s, "rows": 3} for s in seconds])
        for name, seconds in runs.items()
    ]
    lines = [str(line) for line in compared(outcomes)]
    assert lines[-1] == "cold by plain Spark: 1.50 by the clock, 1.50 by processor time"
    SomeRows().judge(outcomes)
    assert all(outcome.checked for outcome in outcomes)


@pytest.mark.spark
def test_it_runs_on_little(tmp_path: Path) -> None:
    prepared = EXPERIMENT.prepare(Settings(scale=0.01, data=tmp_path, quick=True), lambda _: None)
    assert [c.name for c in prepared.contenders] == [
        "plain Spark",
        "cold",
        "warm",
        "after a pause",
        "local cold",
        "local warm",
    ]
    for contender in prepared.contenders[3:]:
        running = contender.start(1)
        try:
            figures = running.run(tmp_path)
        finally:
            running.close()
        assert figures["rows"] > 0
        assert figures["cpu"] > 0
