"""The plans of figures 4-1 and 4-3 of the dissertation, as streams; `--bless` rewrites them."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.explain import explain
from terascope.pipeline import Bindings, compile_set
from tests.settings import config_with

HERE = Path(__file__).parent / "streams"
PAPERS = Path(__file__).parents[2] / "examples" / "papers"
FIGURES = {
    "figure-4-1": "p3-4.8.1-merged-flows.gsql",
    "figure-4-3": "p3-4.8.2-flow-join.gsql",
}


@pytest.mark.parametrize("figure", FIGURES)
def test_plan_of_figure(figure: str, request: pytest.FixtureRequest) -> None:
    """Live sources need not be there yet."""
    text = (PAPERS / FIGURES[figure]).read_text(encoding="utf-8")
    links = ("main0", "main1", "control")
    bindings = Bindings(
        {name: parse_interface(f"{name}=pcap:captures/{name}") for name in links},
        {"main0_and_control": ("main0", "control")},
    )
    shown = explain(compile_set(Source(text, figure), bindings), "stream")
    golden = HERE / f"{figure}.txt"
    if request.config.getoption("--bless"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_aggregations_that_could_be_a_tree_say_so() -> None:
    keys = ("srcIP", "destIP", "protocol")
    text = "".join(
        f"QUERY q{i}: SELECT tb, {key}, COUNT(*) AS n FROM main0.PKT GROUP BY time/60 AS tb, {key};"
        for i, key in enumerate(keys)
    )
    protocol = (PAPERS / FIGURES["figure-4-1"]).read_text(encoding="utf-8").partition("QUERY")[0]
    interfaces = {"main0": parse_interface("main0=pcap:captures/main0")}
    shown = explain(compile_set(Source(protocol + text, "set"), Bindings(interfaces)), "stream")
    assert shown.count("note: tree: of 3 aggregations, to save time, as the traffic is") == 3
    assert "note: table" not in shown
    never = config_with(share_trees="never")
    flat = compile_set(Source(protocol + text, "set"), Bindings(interfaces, config=never))
    assert "note: tree" not in explain(flat, "stream")


def test_aggregations_that_could_have_one_table_say_so() -> None:
    text = "".join(
        f"QUERY q{i}: SELECT tb, srcIP, COUNT(*) AS n FROM main0.PKT WHERE protocol = {i}"
        " GROUP BY time/60 AS tb, srcIP;"
        for i in (6, 17)
    )
    protocol = (PAPERS / FIGURES["figure-4-1"]).read_text(encoding="utf-8").partition("QUERY")[0]
    interfaces = {"main0": parse_interface("main0=pcap:captures/main0")}
    shown = explain(compile_set(Source(protocol + text, "set"), Bindings(interfaces)), "stream")
    assert shown.count("note: table: with 1 more by its keys, as the traffic is") == 2
    assert "note: tree" not in shown, "two are too few"
    never = config_with(share_tables="never")
    apart = compile_set(Source(protocol + text, "set"), Bindings(interfaces, config=never))
    assert "note: table" not in explain(apart, "stream")
