from __future__ import annotations

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from bench.registry import EXPERIMENTS, find_experiment
from tests.cli.calls import call


def test_experiments_are_listed() -> None:
    called = call("bench")
    assert called.code == 0
    assert [line.split()[0] for line in called.out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_have_their_name(name: str) -> None:
    assert find_experiment(name).name == name
    assert find_experiment(name).title


def test_unknown_experiments_and_contenders(tmp_path: Path) -> None:
    called = call("bench", "speed")
    assert called.code == 1
    assert "no experiment 'speed'; there are queries78" in called.err
    called = call(
        "bench", "decode", "--scale", "0.0001", "--data", tmp_path, "--only", "x", "--quiet"
    )
    assert called.code == 1
    assert "no contender 'x'; there are terascope" in called.err


def test_a_whole_experiment(tmp_path: Path) -> None:
    called = call(
        *("bench", "decode", "--scale", "0.0005", "--runs", "2", "--json", "--data", tmp_path),
        *("--output", tmp_path / "out", "--only", "terascope"),
    )
    assert called.code == 0, called.err
    assert "packets/s per core" in called.out
    assert "5,000 packets" in called.out
    [measured] = json.loads(called.out.splitlines()[-1])
    assert measured["contender"] == "terascope"
    assert measured["rows"] == 5000
    assert measured["checked"]
    assert len(measured["seconds"]) == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "decode.csv",
        "decode.json",
        "decode.png",
    ]


def test_without_the_packages_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def absent(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "matplotlib" else real(name, package)

    monkeypatch.setattr(sys.modules["terascope.cli.measure"], "find_spec", absent)
    called = call("bench", "decode")
    assert called.code == 1
    assert "not installed (matplotlib)" in called.err
    assert "pip install 'terascope[bench]'" in called.err
