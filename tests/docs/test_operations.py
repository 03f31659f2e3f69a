"""docs/operations.md: what it shows is what the commands print, and its metrics are there."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from terascope.cli.status_view import StatusView, tell_why
from terascope.operate.metrics import StatusCollector
from tests.docs.blocks import blocks, page
from tests.operate.statuses import STATUS, TALKERS

TEXT = page("operations.md")


def printed(name: str) -> str:
    file = io.StringIO()
    console = Console(file=file, width=100, highlight=False)
    if name == "status":
        console.print(StatusView(STATUS))
    else:
        tell_why(console, STATUS, TALKERS, frozenset())
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())


@pytest.mark.parametrize("name", ["status", "why"])
def test_the_page_shows_what_is_printed(name: str) -> None:
    (block,) = [b for b in blocks(TEXT) if b.words == ("text", name)]
    assert block.text.strip("\n") == printed(name)


def test_named_metrics_are_there() -> None:
    samples = {
        s.name for family in StatusCollector(lambda: STATUS).collect() for s in family.samples
    }
    named = set(re.findall(r"terascope_[a-z_]*[a-z]\b(?!\*)", TEXT))
    assert len(named) >= 4
    assert named <= samples
