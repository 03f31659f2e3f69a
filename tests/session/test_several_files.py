"""One query set in several files: queries read across files, a mistake names its own file, and a
file that a query names is looked for beside the text that names it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope import QueryError, Session, SourceError
from terascope.diagnostic import Source
from terascope.reference.interpreter import evaluate
from tests.cli.calls import call, small_trace
from tests.reference.connector_sources import ConnectorSources

SCHEMA = "PROTOCOL P (ts UINT increasing clock(s), k UINT, v UINT);"
SUMS = "-- per key\nQUERY sums:\nSELECT tb, k, SUM(v) AS total FROM P GROUP BY ts/10 AS tb, k"
LARGEST = "QUERY largest:\nSELECT tb, MAX(total) AS most FROM sums GROUP BY tb;\n"


def written(folder: Path, **texts: str) -> list[Path]:
    paths = [folder / f"{name}.gsql" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def mistakes(paths: list[Path]) -> QueryError:
    with pytest.raises(QueryError) as caught:
        Session().load(*paths)
    return caught.value


def test_queries_read_across_files_in_any_order(tmp_path: Path) -> None:
    data = tmp_path / "x.csv"
    data.write_text("ts,k,v\n0,1,5\n1,1,6\n2,2,7\n12,1,8\n")
    paths = written(tmp_path, largest=LARGEST, sums=SUMS, schema=SCHEMA)
    session = Session()
    session.source(f"x=csv:{data}")
    compiled = session.load(*paths).compiled
    answers = evaluate(compiled.plan, ConnectorSources(compiled.bindings.interfaces))
    assert sorted(answers["largest"].tuples) == [(0, 11), (1, 8)]
    assert compiled.source.title == "largest.gsql, sums.gsql, schema.gsql"


def test_every_mistake_names_its_file_and_line(tmp_path: Path) -> None:
    first = "QUERY a:\nSELECT nothing FROM TCP"
    second = "\n\nQUERY b:\n  SELECT time,\n  12ab FROM TCP;"
    third = "QUERY c: SELECT f(a FROM TCP"
    fourth = "QUERY d: SELECT time FROM b; QUERY a: SELECT time FROM TCP"
    paths = written(tmp_path, first=first, second=second, third=third, fourth=fourth)
    found = mistakes(paths)
    assert found.codes == ("unknown-column", "bad-literal", "syntax", "duplicate-name")
    lines = [line.strip() for line in str(found).split("\n") if "-->" in line]
    assert lines == [
        f"--> {paths[0]}:2:8",
        f"--> {paths[1]}:5:3",
        f"--> {paths[2]}:1:21",
        f"--> {paths[3]}:1:30",
    ]
    assert "   5 |   12ab FROM TCP;\n     |   ^^^^" in str(found)
    assert "the '(' of line 1, column 18 is still open" in str(found)


def test_nothing_goes_on_in_the_next_file(tmp_path: Path) -> None:
    paths = written(tmp_path, open="DEFINE { query_name 'a';", more="QUERY b: SELECT time FROM TCP")
    found = mistakes(paths)
    assert len(found.diagnostics) == 1
    assert f"{paths[0]}:1:" in str(found)


def test_a_schema_may_be_repeated_but_not_changed(tmp_path: Path) -> None:
    same = written(tmp_path, a=f"{SCHEMA}\n{SUMS}", b=f"{SCHEMA}\n{LARGEST}")
    assert [q.name for q in Session().load(*same).queries] == ["sums", "largest"]
    other = written(tmp_path, a=f"{SCHEMA}\n{SUMS}", b=f"PROTOCOL P (ts UINT);\n{LARGEST}")
    found = mistakes(other)
    assert found.codes == ("duplicate-name",)
    assert f"{other[1]}:1:1" in str(found)


def test_a_watch_list_lies_beside_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "w.csv").write_text("ip\n10.0.0.1\n")
    (lists,) = written(
        tmp_path / "lists",
        lists="DEFINE { query_name 'w'; filename 'w.csv'; } WATCHLIST FIELDS { IP ip (key); }",
    )
    (reader,) = written(tmp_path, reader="SELECT t.time FROM TCP t, w WHERE t.srcIP = w.ip")
    session = Session()
    session.source(f"eth0=pcap:{small_trace(tmp_path / 'trace.pcap')}")
    assert len(session.load(reader, lists).queries) == 1
    (tmp_path / "lists" / "w.csv").rename(tmp_path / "w.csv")
    with pytest.raises(QueryError, match=r"no such file: 'w\.csv'"):
        session.load(reader, lists)


def test_a_missing_file_among_several_is_named(tmp_path: Path) -> None:
    paths = written(tmp_path, schema=SCHEMA)
    with pytest.raises(SourceError, match=r"no such query file: .*absent\.gsql"):
        Session().load(*paths, tmp_path / "absent.gsql")


def test_the_commands_take_several_files(tmp_path: Path) -> None:
    paths = [*map(str, written(tmp_path, largest=LARGEST, sums=SUMS, schema=SCHEMA))]
    called = call("check", *paths)
    assert called.code == 0
    assert called.out.startswith(f"ok: 2 queries in {', '.join(paths)}\n")
    assert "largest:" in call("explain", *paths, "--stage", "plan").out
    paths[0] = str(written(tmp_path, wrong="\nSELECT tb FROM sum")[0])
    called = call("check", *paths)
    assert called.code == 1
    assert f"--> {paths[0]}:2:16" in called.err
    assert call("check", "-", *paths[1:], stdin=LARGEST).code == 0


def test_one_file_is_itself() -> None:
    source = Source("SELECT 1", "one.gsql")
    assert Source.joined([source]) is source
    assert source.at(3) == (source, 3)
