"""docs/architecture.md shows what really comes out. `pytest --bless` rewrites its blocks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.explain import Stage, explain
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from terascope.types import Type, format_ip
from tests.agreement import agreed_answers
from tests.reference.connector_sources import ConnectorSources
from tests.settings import config_with

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
TOUR = ROOT / "docs" / "examples" / "tour.gsql"
BLOCK = re.compile(r"^```(?:sql|text) (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    monkeypatch.chdir(tmp_path)
    generate(Profile(rate=200, duration=120, seed=1), Path("trace.pcap"))
    source = Source(TOUR.read_text(encoding="utf-8"), "tour.gsql")
    interfaces = {"eth0": Interface("eth0", "pcap", "trace.pcap")}
    return compile_set(source, Bindings(interfaces, config=config_with()))


def blocks(compiled: Compiled) -> dict[str, str]:
    """What each block of the page should hold."""
    ast = explain(compiled, "ast", "text").split("\n\n")
    stages: tuple[Stage, ...] = ("plan", "optimized", "split", "job")
    shown: dict[str, str] = {stage: explain(compiled, stage, "text") for stage in stages}
    return {
        "tour": compiled.source.text,
        "ast": next(part for part in ast if part.startswith("busiest:")),
        **shown,
        "rows": rows(compiled, "busiest"),
    }


def rows(compiled: Compiled, query: str) -> str:
    sources = ConnectorSources(compiled.bindings.interfaces)
    answer = agreed_answers(compiled.optimized, sources)[query]
    lines = ["  ".join(f.name for f in answer.fields)]
    for row in answer.rows:
        cells = [
            format_ip(v) if f.type is Type.IP else str(v)
            for f, v in zip(answer.fields, row, strict=True)
        ]
        lines.append("  ".join(cells))
    return "\n".join(lines)


def test_the_page_shows_what_comes_out(compiled: Compiled, request: pytest.FixtureRequest) -> None:
    expected = blocks(compiled)
    page = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--bless"):
        page = BLOCK.sub(
            lambda m: m[0][: m.start(2) - m.start()] + expected[m[1]].rstrip() + "\n```", page
        )
        PAGE.write_text(page, encoding="utf-8")
    found = {m[1]: m[2] for m in BLOCK.finditer(page)}
    assert list(found) == ["tour", "ast", "plan", "optimized", "split", "job", "rows"]
    for name, text in found.items():
        assert text.rstrip() == expected[name].rstrip(), name
