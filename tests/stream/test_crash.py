"""The points where a process may be told to die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from terascope.streaming.state.crash import POINTS, VARIABLE, crash_here, reached

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
from terascope.streaming.state.crash import crash_here
for time in range(3):
    for point in ("stored", "state"):
        print(point, time, flush=True)
        crash_here(point)
"""


def run(wish: str | None) -> tuple[int, list[str]]:
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
    environment["PYTHONPATH"] = str(ROOT)
    if wish is not None:
        environment[VARIABLE] = wish
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_process_dies_the_nth_time() -> None:
    code, said = run("state:2")
    assert code == -signal.SIGKILL
    assert said == ["stored 0", "state 0", "stored 1", "state 1"]


def test_without_a_number_it_is_the_first_time() -> None:
    assert run("state") == (-signal.SIGKILL, ["stored 0", "state 0"])


@pytest.mark.parametrize("wish", [None, "", "state:4", "elsewhere:1"])
def test_nobody_dies_unasked(wish: str | None) -> None:
    code, said = run(wish)
    assert code == 0
    assert len(said) == 6


def test_a_point_that_nobody_asked_for_is_not_even_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for point in POINTS:
        crash_here(point)
    assert not reached
