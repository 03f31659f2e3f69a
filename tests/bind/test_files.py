"""Files that a query names are found beside it, wherever it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.diagnostic import QueryError, Source
from terascope.pipeline import compile_set
from terascope.plan.show import show_plan

QUERY = "SELECT time, getlpmid(srcIP, 'prefixes.csv') AS net FROM TCP"


def test_a_file_beside_the_query_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, elsewhere = tmp_path / "queries", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "prefixes.csv").write_text("10.0.0.0/8,7\n")
    monkeypatch.chdir(elsewhere)
    compiled = compile_set(Source(QUERY, str(folder / "q.gsql")))
    assert str(folder / "prefixes.csv") in show_plan(compiled.plan)


def test_else_it_is_found_where_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prefixes.csv").write_text("10.0.0.0/8,7\n")
    monkeypatch.chdir(tmp_path)
    compiled = compile_set(Source(QUERY, "other/q.gsql"))
    assert str(tmp_path / "prefixes.csv") in show_plan(compiled.plan)


def test_a_file_that_is_nowhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError) as caught:
        compile_set(Source(QUERY, "q.gsql"))
    assert caught.value.codes == ("bad-constant",)
