"""The examples of docs/language.md: DuckDB gives the rows it prints, too. What Spark gives to every
construct is in tests/golden.
"""

from __future__ import annotations

import pytest

from terascope.plan.rel import Running, walk
from tests.agreement import agreed_answers
from tests.docs.answers import SOURCES, bindings, compiled, interface
from tests.docs.blocks import EXAMPLES, Block, blocks, page
from tests.docs.outcome import kind_of
from tests.reference.connector_sources import ConnectorSources

RUN = [b for b in blocks(page("language.md")) if kind_of(b) == "run"]
ALL = {name: interface(name) for name in SOURCES}


@pytest.fixture(autouse=True)
def _in_the_folder_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)


@pytest.mark.parametrize("block", RUN, ids=lambda b: b.place)
def test_duckdb_gives_the_same_rows(block: Block) -> None:
    plan = compiled(block.text, bindings(block)).plan
    running = [s.name for s in plan if any(isinstance(r, Running) for r in walk(s.rel))]
    agreed_answers(plan, ConnectorSources(ALL), running)
