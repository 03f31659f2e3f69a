"""Files that a query names are found beside it, wherever it is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.diagnostic import QueryError, Source
from terascope.pipeline import Bindings, compile_set, files_allowed
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


def bound(tmp_path: Path, name: str, folders: tuple[Path, ...] | None) -> str:
    (tmp_path / "inside").mkdir(exist_ok=True)
    (tmp_path / "inside" / "prefixes.csv").write_text("10.0.0.0/8,7\n")
    (tmp_path / "outside.csv").write_text("10.0.0.0/8,7\n")
    query = f"SELECT time, getlpmid(srcIP, {name}) AS net FROM TCP"
    source = Source(query, str(tmp_path / "inside" / "q.gsql"))
    return show_plan(compile_set(source, Bindings(query_files=folders)).plan)


def test_files_outside_the_allowed_folders_are_refused(tmp_path: Path) -> None:
    inside = (tmp_path / "inside",)
    assert "prefixes.csv" in bound(tmp_path, "'prefixes.csv'", inside)
    (tmp_path / "inside" / "link.csv").symlink_to(tmp_path / "outside.csv")
    for name in ("'../outside.csv'", f"'{tmp_path}/outside.csv'", "'link.csv'", "interface"):
        assert name == "interface" or "csv" in bound(tmp_path, name, None)
        with pytest.raises(QueryError) as refused:
            bound(tmp_path, name, inside)
        assert refused.value.codes == ("forbidden-file",)


def test_a_watch_list_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("10.0.0.1,bad\n")
    text = """
    DEFINE { query_name 'wl'; filename 'w.csv'; } WATCHLIST FIELDS { IP ip (key); string tag; };
    SELECT p.time, w.tag WATCHLIST_JOIN FROM TCP p, wl w WHERE p.srcIP = w.ip
    """
    source = Source(text, str(tmp_path / "q.gsql"))
    compile_set(source, Bindings(query_files=(tmp_path,)))
    with pytest.raises(QueryError) as refused:
        compile_set(source, Bindings(query_files=()))
    assert refused.value.codes == ("forbidden-file",)


def test_the_query_of_another_user_reads_no_files_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(QUERY, str(tmp_path / "q.gsql"))
    (tmp_path / "q.gsql").write_text(QUERY)
    assert files_allowed(source, None) is None
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "q.gsql").stat().st_uid + 1)
    if (tmp_path / "q.gsql").stat().st_uid:  # what root has written is as good as one's own
        assert files_allowed(source, None) == ()
    assert files_allowed(source, [tmp_path]) == (tmp_path,)
    if (tmp_path / "q.gsql").stat().st_uid == 0:
        os.chown(tmp_path / "q.gsql", 12345, -1)
        assert files_allowed(source, None) == ()
