from __future__ import annotations

import gzip
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import FILE_SHIFT, POSITION, Column
from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Source, SourceError
from terascope.pipeline import Bindings, compile_set
from terascope.splitting import tables
from terascope.types import Type
from tests.agreement import local_answers
from tests.partitioning.split_reading import (
    SHARED,
    assert_split,
    partitions_in,
    rows_and_report,
    rows_of,
    split_into,
)
from tests.properties.partitioned_tables import as_partitions

WITHOUT_IP = """
PROTOCOL LOG (time UINT increasing clock(s), user STRING, size INT);
QUERY by_user: SELECT tb, user, COUNT(*) AS n, SUM(size) AS total FROM LOG
GROUP BY time/10 AS tb, user;
QUERY sizes: SELECT tb, COUNT(size) AS n, MAX(size) AS most FROM LOG GROUP BY time/10 AS tb;
QUERY plain: SELECT tb, COUNT(*) AS n FROM LOG GROUP BY time/10 AS tb;
"""
FIRST_AND_LAST = """
QUERY ends: SELECT tb, FIRST(user) AS f, LAST(user) AS l FROM LOG GROUP BY time/10 AS tb;
QUERY most: SELECT tb, user, size FROM LOG WHERE time % 10 = 0 GROUP BY time/10 AS tb, user, size
ORDER BY user LIMIT 3;
"""
NET = """
QUERY net: SELECT tb, ip & 0xFFFFFF00 AS subnet, COUNT(*) AS n FROM LOG
GROUP BY time/10 AS tb, ip & 0xFFFFFF00;
"""
QUERIES = WITHOUT_IP.replace("size INT", "ip IP, size INT") + NET
COUNTED = """
PROTOCOL LOG (time UINT increasing clock(s));
QUERY plain: SELECT tb, COUNT(*) AS n FROM LOG GROUP BY time/10 AS tb;
"""


def answers(
    interfaces: list[Interface], text: str = QUERIES
) -> dict[str, list[tuple[object, ...]]]:
    bound = {one.name: one for one in interfaces}
    made = compile_set(Source(text, "log.gsql"), Bindings(bound))
    found = local_answers(made.plan, bound, 2)
    return {name: sorted(map(tuple, answer.rows), key=repr) for name, answer in found.items()}


def random_log(dice: random.Random, rows: int, broken: bool) -> str:
    """Lines of a log. Rows that are broken come late: the first ones say what the types are."""
    lines = ["time,user,ip,size,share,note"]
    for k in range(rows):
        size = str(dice.randrange(1000))
        share = f"{dice.random():.3f}"
        ip = f"10.0.{dice.randrange(3)}.{dice.randrange(9)}"
        if dice.random() < 0.1:
            ip = f"2001:db8::{dice.randrange(9)}"
        if broken and k >= FIRST_BROKEN:
            size = dice.choice([size, size, size, "many", ""])
            share = dice.choice([share, share, "half"])
            ip = dice.choice([ip, ip, ip, "nobody"])
        line = f'{k // 99},u{dice.randrange(7)},{ip},{size},{share},"a ""note"", {k}"'
        if broken and k >= FIRST_BROKEN and dice.random() < 0.05:
            line += ",more"
        lines.append(line)
    return "\n".join(lines) + "\n"


FIRST_BROKEN = 10_100
"""The rows before are those from which types are sampled."""
COLUMN_SETS = ("time user", "time ip", "size", "share note", "time user ip size share note")


def assert_same_rows(folder: Path, source: Interface, count: int) -> None:
    """Whatever columns a query reads, it gets the same rows, and counts the same as malformed."""
    parts = partitions_in(folder, source.kind, source.name)
    assert len(parts) == count
    types = {column.name: column for column in source.columns}
    for part in parts:
        assert {c.name: c.type for c in part.columns} == {n: c.type for n, c in types.items()}
    for names in COLUMN_SETS:
        columns = [types[name] for name in names.split()]
        rows, report = rows_and_report(source, columns)
        found = [rows_and_report(part, columns) for part in parts]
        united = [tuple(row.values()) for some, _ in found for row in some]
        assert sorted(united, key=repr) == sorted((tuple(r.values()) for r in rows), key=repr)
        wanted = {w: n for w, n in report.malformed.items() if w.startswith("column")}
        counted = dict(sum((one.malformed for _, one in found), report.malformed.__class__()))
        assert counted == wanted


@pytest.mark.parametrize("by", ["user", "ip & 0xFFFFFF00", "size", "share > 0.5, user", None])
@pytest.mark.parametrize("broken", [False, True])
def test_rows_of_csv(tmp_path: Path, by: str | None, broken: bool) -> None:
    dice = random.Random(f"{by} {broken}")
    (tmp_path / "log.csv").write_text(random_log(dice, 12_000, broken))
    source, splitter = split_into(tmp_path / "p", f"csv:{tmp_path / 'log.csv'}", by, 3)
    assert_same_rows(tmp_path / "p", source, 3)
    if not broken:
        assert_split(tmp_path / "p", source, by, 3)
    assert bool(splitter.left_out) == broken
    assert bool(splitter.unread) == (broken and by not in ("user", None))


def test_order_is_kept_with_malformed_values(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(random_log(random.Random(1), 12_000, True))
    split_into(tmp_path / "p", f"csv:{tmp_path / 'log.csv'}", "user", 2)
    for part in partitions_in(tmp_path / "p", "parquet", "log"):
        notes = [row["note"] for row in rows_of(part, [Column("note", Type.STRING)])]
        numbers = [int(note.rpartition(" ")[2]) for note in notes]
        assert numbers == sorted(numbers)
        assert len(numbers) > 100


@pytest.mark.parametrize("by", ["user", "ip", None])
def test_queries_give_the_same_answers(tmp_path: Path, by: str | None) -> None:
    (tmp_path / "log.csv").write_text(random_log(random.Random(2), 11_000, True))
    source, _ = split_into(tmp_path / "p", f"csv:{tmp_path / 'log.csv'}", by, 3)
    assert answers(partitions_in(tmp_path / "p", "parquet", "log")) == answers([source])


@pytest.mark.parametrize("by", ["user", "size % 7", None])
def test_tuples_of_the_same_time_keep_their_order(tmp_path: Path, by: str | None) -> None:
    """99 rows have the same time; which is the first is known in whatever partition they are."""
    (tmp_path / "log.csv").write_text(random_log(random.Random(4), 11_000, True))
    source, _ = split_into(tmp_path / "p", f"csv:{tmp_path / 'log.csv'}", by, 3)
    text = WITHOUT_IP + FIRST_AND_LAST
    found = answers(partitions_in(tmp_path / "p", "parquet", "log"), text)
    assert found == answers([source], text)


def test_a_column_that_somebody_called_position_stays(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2, 3], POSITION: ["x", "y", "z"]})
    pq.write_table(table, tmp_path / "a.parquet")
    split_into(tmp_path / "p", f"e=parquet:{tmp_path / 'a.parquet'}", "k", 2)
    paths = sorted((tmp_path / "p").glob("p*/*.parquet"))
    held = [row for path in paths for row in pq.read_table(path).to_pylist()]
    assert sorted(map(repr, held)) == sorted(map(repr, table.to_pylist()))


def test_a_malformed_value_of_the_set_costs_no_row_of_queries_that_do_not_declare_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "log.csv").write_text(random_log(random.Random(3), 11_000, True))
    source, splitter = split_into(tmp_path / "p", f"csv:{tmp_path / 'log.csv'}", "ip", 3)
    assert splitter.unread > 100
    found = answers(partitions_in(tmp_path / "p", "parquet", "log"), WITHOUT_IP)
    assert found == answers([source], WITHOUT_IP)


def test_malformed_values_in_several_partitions_are_no_contradiction(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.csv" for number in range(2)]
    for number, path in enumerate(paths):
        rows = f"1,10.0.0.{number}\n" * FIRST_BROKEN
        path.write_text(f"time,ip\n{rows}2,nobody\n3,\n")
    parts = as_partitions(Interface("log", "csv", ""), paths, "ip", declared=True)
    expected = {"plain": [(0, 2 * FIRST_BROKEN + 4)]}
    assert answers(list(parts.values()), COUNTED) == expected
    with paths[1].open("a") as file:
        file.write("4,10.0.0.0\n")
    with pytest.raises(SourceError, match=r"have the same values, ip = 10\.0\.0\.0"):
        answers(list(parts.values()), COUNTED)


def test_options_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("7;x;-\n8;y;z\n")
    options = {"delimiter": ";", "header": "false", "names": "a,b,c", "null": "-"}
    source, _ = split_into(tmp_path / "p", f"log=csv:{tmp_path / 'log.csv'}", "a", 2, options)
    assert_split(tmp_path / "p", source, "a", 2)


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        f'{{"time": {k}, "user": "u{k % 5}", "deep": {{"x": 1}}, "size": {k * 1.5}}}'
        if k % 7
        else f'{{"time": {k}, "other": [1, 2]}}'
        for k in range(500)
    ]
    (tmp_path / "log.json.gz").write_bytes(gzip.compress("\n".join([*lines, "no json"]).encode()))
    source, splitter = split_into(tmp_path / "p", f"json:{tmp_path / 'log.json.gz'}", "user", 3)
    assert_split(tmp_path / "p", source, "user", 3)
    assert splitter.left_out == {"not a JSON object": 1}


def test_parquet_keeps_all_columns(tmp_path: Path) -> None:
    rows = 1000
    table = pa.table(
        {
            "k": pa.array([k % 9 if k % 11 else None for k in range(rows)], pa.uint32()),
            "s": pa.array([f"t{k % 5}" for k in range(rows)]).dictionary_encode(),
            "d": pa.array([{"x": k} for k in range(rows)]),
            "l": pa.array([[k] * (k % 3) for k in range(rows)]),
            "t": pa.array([datetime.fromtimestamp(k, UTC) for k in range(rows)]),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table.slice(0, 600), tmp_path / "in/a.parquet", row_group_size=100)
    pq.write_table(table.slice(600).drop_columns(["l"]), tmp_path / "in/b.parquet")
    source, _ = split_into(tmp_path / "p", f"e=parquet:{tmp_path / 'in'}", "k, s", 4)
    parts = partitions_in(tmp_path / "p", "parquet", "e")
    plain = [column for column in source.columns if column.name != "l"]
    found = [rows_of(part, plain) for part in parts]
    united = [repr(row) for rows in found for row in rows]
    assert sorted(united) == sorted(map(repr, rows_of(source, plain)))
    held = [
        row
        for path in sorted((tmp_path / "p").glob("p*/*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]
    places = [row.pop(POSITION) for row in held]
    assert sorted(places) == [*range(600), *(k + (1 << FILE_SHIFT) for k in range(400))]
    wanted = [
        row
        for path in ("a", "b")
        for row in pq.read_table(tmp_path / f"in/{path}.parquet").to_pylist()
    ]
    assert sorted(map(repr, held)) == sorted(map(repr, wanted))


def test_a_partition_without_rows_has_the_columns(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b\n1,x\n")
    source, _ = split_into(tmp_path / "p", f"log=csv:{tmp_path / 'log.csv'}", "a", 3)
    assert_split(tmp_path / "p", source, "a", 3)
    for part in partitions_in(tmp_path / "p", "csv", "log"):
        assert [(c.name, c.type) for c in part.columns] == [("a", Type.INT), ("b", Type.STRING)]


def test_many_rows_in_several_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_BUFFERED", 1 << 16)
    (tmp_path / "log.csv").write_text(random_log(random.Random(3), 11_000, False))
    source, _ = split_into(tmp_path / "p", f"log=csv:{tmp_path / 'log.csv'}", "user, ip", 40)
    assert_split(tmp_path / "p", source, "user, ip", 40)


@pytest.mark.skipif(not SHARED.exists(), reason="no data at shared/data")
def test_real_events(tmp_path: Path) -> None:
    path = SHARED / "events/wikiticker-2015-09-12-sampled.json.gz"
    source, _ = split_into(tmp_path / "p", f"json:{path}", "channel, cityName", 5)
    assert_split(tmp_path / "p", parse_interface(f"json:{path}"), "channel, cityName", 5)
    assert source.columns
