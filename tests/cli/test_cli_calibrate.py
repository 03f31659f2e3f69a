"""`terascope calibrate`, and what `explain` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import call

QUERY = "QUERY q: SELECT time, len FROM TCP WHERE destPort = 80 AND len * 3 > 9;"


@pytest.mark.slow
def test_costs_are_measured_kept_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "terascope" / "costs.json"
    done = call("calibrate", "--quiet", "--output", kept)
    assert done.code == 0
    assert done.out.rstrip().endswith(f"costs kept in {kept}")
    document = json.loads(kept.read_text())
    assert document["costs"]["="] < 100
    assert "str_match_start on payload" in document["costs"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    document["costs"]["*"] = 5000
    kept.write_text(json.dumps(document))
    (tmp_path / "q.gsql").write_text(QUERY)
    shown = call("explain", tmp_path / "q.gsql", "--stage", "split")
    assert "len * 3 > 9 stays here: costs 500" in shown.out


def test_the_configuration_overrules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "q.gsql").write_text(QUERY)
    settings = tmp_path / "terascope.toml"
    settings.write_text('low_budget_ns = 10\n[costs]\n"*" = 50\n')
    shown = call("explain", tmp_path / "q.gsql", "--stage", "split", "--config", settings)
    assert "len * 3 > 9 stays here: costs 52 ns, over the budget of 10 ns" in shown.out
    settings.write_text('host = "plain_decoder"\n')
    shown = call("explain", tmp_path / "q.gsql", "--stage", "split", "--config", settings)
    assert "destPort = 80 stays here: host plain_decoder evaluates no predicates" in shown.out
    settings.write_text('host = "card"\n')
    wrong = call("explain", tmp_path / "q.gsql", "--stage", "split", "--config", settings)
    assert wrong.code == 1
    assert "setting 'host'" in wrong.err
