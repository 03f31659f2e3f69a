"""The demo names the attacked host and the time from its tables, and nobody when nobody is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from terascope.connectors.registry import Interface
from terascope.demo import Attack, demo_queries, find_attack, make_traffic, run_demo
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.traffic.profile import Profile
from terascope.types import Type, format_ip
from tests.reference.connector_sources import ConnectorSources
from tests.settings import SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TRACE_START = int(Profile().start_time)
QUIET = ("flash_crowd", "quiet", "port_scan", "amplification")
"""Scenarios in which no host is flooded."""


def verdict(trace: Path) -> Attack | None:
    """What the demo's queries say of a trace, computed by the reference."""
    interfaces = {"link": Interface("link", "pcap", str(trace))}
    source = Source(demo_queries().read_text(encoding="utf-8"), str(demo_queries()))
    compiled = compile_set(source, Bindings(interfaces, parameters={"min_syns": "40"}))
    rows = evaluate(compiled.optimized, ConnectorSources(interfaces))["attacked_hosts"]

    def shown(value: Any, type: Type) -> Any:
        return format_ip(value) if type is Type.IP else value

    return find_attack(
        {f.name: shown(v, f.type) for f, v in zip(rows.fields, row, strict=True)}
        for row in rows.tuples
    )


@pytest.mark.parametrize(
    ("seed", "victim", "start"),
    [(11, None, None), (12, "10.0.3.4", 70.0), (13, "2001:db8::77", 5.0)][: 3 if SOAK else 1],
)
def test_another_seed_victim_and_start_are_named(
    seed: int, victim: str | None, start: float | None, tmp_path: Path
) -> None:
    made = make_traffic(
        tmp_path, seed=seed, scenario="syn_flood", victim=victim, start=start, rate=300
    )
    truth = made.scenarios[0]
    found = verdict(made.files[0])
    assert found is not None
    assert found.host == truth.victim
    assert victim in (None, found.host)
    assert abs(found.began - truth.start) <= 1
    assert abs(found.ended - truth.end) <= 1


@pytest.mark.parametrize("scenario", QUIET if SOAK else QUIET[:1])
def test_nobody_is_named_without_a_flood(scenario: str, tmp_path: Path) -> None:
    made = make_traffic(tmp_path, seed=5, scenario=scenario, rate=300)
    assert verdict(made.files[0]) is None


def test_a_host_in_two_windows_is_one_attack() -> None:
    row = {"destIP": "10.0.0.1", "began": 100, "ended": 109, "syns": 500, "answered": 1}
    later = {**row, "began": 110, "ended": 119}
    other = {**row, "destIP": "10.0.0.2", "syns": 700}
    assert find_attack([row, later, other]) == Attack("10.0.0.1", 100, 120, 1000, 2)
    assert find_attack([]) is None


@pytest.mark.spark
def test_the_whole_demo(tmp_path: Path, spark: SparkSession) -> None:
    text = io.StringIO()
    console = Console(file=text, width=120)
    found = run_demo(
        seed=3,
        victim="10.0.5.6",
        start=30.0,
        keep=tmp_path / "kept",
        console=console,
        spark=spark,
    )
    assert found is not None
    assert found.host == "10.0.5.6"
    assert abs(found.began - (TRACE_START + 30)) <= 1
    assert found.host in text.getvalue()
    assert "under a SYN flood from" in " ".join(text.getvalue().split())
    assert (tmp_path / "kept" / "link.pcap").exists()
    assert (tmp_path / "kept" / "results" / "attacked_hosts.csv").exists()
