from __future__ import annotations

from pathlib import Path

import pytest

from terascope.diagnostic import SourceError
from terascope.plan.rel import Join, Lookup, Merge
from terascope.reference.interpreter import lookup
from terascope.types import Type, parse_ip
from tests.oracle.agreement import rows_of
from tests.oracle.build import col, fields, ints, records, scan

SCHEMA = fields(ip=Type.IP, tag=Type.STRING, level=Type.INT)


def watch_list(folder: Path, text: str) -> Lookup:
    path = folder / "watch.csv"
    path.write_text(text, encoding="utf-8")
    return Lookup("watch", str(path), SCHEMA, ("ip",))


def test_merge_is_a_union_by_position() -> None:
    rel = Merge((ints("a", names="t x"), ints("b", names="u y")), "t")
    tables = {"a": records("t x", (1, 2), (1, 2)), "b": records("u y", (1, 2), (0, None))}
    assert rel.names == ("t", "x")
    assert rows_of(rel, tables) == [(0, None), (1, 2), (1, 2), (1, 2)]


def test_a_watch_list_by_the_names_of_its_header(tmp_path: Path) -> None:
    rel = watch_list(tmp_path, "level,ip,tag\n3,10.0.0.1,scanner\n,::1,\nx,nonsense,'q'\n")
    assert rows_of(rel, {}) == [
        (parse_ip("10.0.0.1"), "scanner", 3),
        (parse_ip("::1"), None, None),
        (None, "'q'", None),
    ]


def test_a_watch_list_by_position(tmp_path: Path) -> None:
    rel = watch_list(tmp_path, "10.0.0.1, scanner ,3\n10.0.0.2,worm,4\n")
    assert rows_of(rel, {}) == [
        (parse_ip("10.0.0.1"), "scanner", 3),
        (parse_ip("10.0.0.2"), "worm", 4),
    ]


def test_a_watch_list_joined(tmp_path: Path) -> None:
    source = scan("t", src=Type.IP, ts=Type.INT)
    watch = watch_list(tmp_path, "ip,tag,level\n10.0.0.1,scanner,3\n")
    rel = Join(source, watch, "semi", ((col("src", Type.IP), col("ip", Type.IP)),))
    tables = {"t": records("ts src", (1, parse_ip("10.0.0.1")), (2, parse_ip("10.0.0.2")))}
    assert [row[1] for row in rows_of(rel, tables)] == [1]


def test_a_watch_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot read the watch list"):
        lookup(Lookup("watch", str(tmp_path / "none.csv"), SCHEMA))


def test_a_watch_list_with_a_short_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a line with 1 columns, at least 3 are needed"):
        lookup(watch_list(tmp_path, "ip,tag,level\n10.0.0.1\n"))
