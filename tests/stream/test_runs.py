"""Runs are found while they live, and no longer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.diagnostic import StreamError
from terascope.streaming.state.runs import (
    Declared,
    Run,
    announced,
    birth,
    find_run,
    read_run,
    registry,
    run_at,
    running,
    write_whole,
)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def dead() -> int:
    """The number of a process that was there."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def a_run(tmp_path: Path, name: str = "flows.gsql", pid: int | None = None) -> Run:
    return Run(
        pid=os.getpid() if pid is None else pid,
        port=9000,
        set_name=name,
        checkpoint=str(tmp_path / name),
        parameters={"threshold": Declared("UINT", "100")},
    )


def test_an_announced_run_is_found_with_and_without_its_checkpoint(tmp_path: Path) -> None:
    with announced(a_run(tmp_path)) as run:
        assert find_run() == run
        assert find_run(Path(run.checkpoint)) == run
        told = json.loads((tmp_path / "flows.gsql" / "terascope" / "run.json").read_text())
        assert (told["pid"], told["port"]) == (os.getpid(), 9000)
        assert told["parameters"] == {"threshold": {"type": "UINT", "value": "100"}}
    with pytest.raises(StreamError, match=r"no set is running; start one .* --checkpoint DIR"):
        find_run()
    assert run_at(Path(run.checkpoint)) == run


def test_of_several_one_must_be_named(tmp_path: Path) -> None:
    with announced(a_run(tmp_path, "a.gsql")) as a, announced(a_run(tmp_path, "b.gsql")) as b:
        with pytest.raises(StreamError, match="2 sets are running") as told:
            find_run()
        assert f"--checkpoint {a.checkpoint}   a.gsql" in str(told.value)
        assert f"--checkpoint {b.checkpoint}   b.gsql" in str(told.value)
        assert find_run(Path(b.checkpoint)) == b


def test_a_dead_run_is_cleaned_up_but_its_results_are_found(tmp_path: Path, dead: int) -> None:
    run = a_run(tmp_path, pid=dead)
    write_whole(registry() / "left.json", run.to_json())
    write_whole(registry() / "torn.json", run.to_json()[:20])
    write_whole(Path(run.checkpoint) / "terascope" / "run.json", run.to_json())
    assert running() == ()
    assert list(registry().iterdir()) == []
    with pytest.raises(StreamError, match=f"process {dead} .* is gone; start it again"):
        find_run(Path(run.checkpoint))
    assert find_run(Path(run.checkpoint), over=True) == run


def test_another_process_of_the_same_number_is_not_the_run(tmp_path: Path) -> None:
    if not birth(os.getpid()):
        pytest.skip("this system does not tell when a process began")
    with announced(a_run(tmp_path)) as run:
        assert run.born == birth(os.getpid())
        assert run.is_alive
        assert not replace(run, born="1").is_alive


def test_a_zombie_is_not_running() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # its end: the process has closed everything
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if birth(os.getpid()):
        assert birth(process.pid) is None
    process.wait()
    process.stdout.close()
    assert birth(process.pid) is None


def test_two_processes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    other = a_run(tmp_path, pid=os.getppid())
    write_whole(Path(other.checkpoint) / "terascope" / "run.json", other.to_json())
    with (
        pytest.raises(StreamError, match=f"process {os.getppid()} is running on checkpoint"),
        announced(a_run(tmp_path)),
    ):
        pytest.fail("it must not begin")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"no checkpoint of a run: no terascope/run\.json in it"):
        find_run(tmp_path)
    write_whole(tmp_path / "terascope" / "run.json", "{}")
    with pytest.raises(StreamError, match="it tells of no run"):
        find_run(tmp_path)


def test_the_folder_of_a_stream(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    with pytest.raises(StreamError, match="no stream 'talkers'; it has: none"):
        run.stream_folder("talkers")
    named = replace(run, streams={"talkers": str(tmp_path / "elsewhere")})
    assert named.stream_folder("talkers") == tmp_path / "elsewhere"
    with pytest.raises(StreamError, match="no stream 'a/b'; it has: talkers"):
        named.stream_folder("a/b")


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    write_whole(tmp_path / "deep" / "a.json", "first")
    write_whole(tmp_path / "deep" / "a.json", "second")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["a.json"]
    assert (tmp_path / "deep" / "a.json").read_text() == "second"
    with pytest.raises(StreamError, match="cannot write"):
        write_whole(tmp_path / "deep" / "a.json" / "b.json", "third")
    assert read_run(tmp_path / "missing.json") is None
