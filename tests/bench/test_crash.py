"""The experiment that kills streams: what it compares, and what it takes away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from bench.crash import EveryRowOnce
from bench.crash.database import Database
from bench.crash.killing import Story, lose_commit
from bench.crash.queries import NAMES
from bench.crash.rows import differences, load_rows, save_rows
from bench.experiment import Outcome

pytestmark = pytest.mark.bench


def rows_of(**queries: list[str]) -> dict[str, Counter[str]]:
    return {name: Counter(queries.get(name, ())) for name in NAMES}


def test_rows_are_counted() -> None:
    wanted = rows_of(syns=["a", "a", "b"], senders=["c"])
    assert differences(wanted, rows_of(syns=["b", "a", "a"], senders=["c"])) == []
    [twice] = differences(wanted, rows_of(syns=["a", "a", "a", "b"], senders=["c"]))
    assert (twice.query, twice.lost, twice.too_many, twice.example) == ("syns", 0, 1, "a")
    [lost] = differences(wanted, rows_of(syns=["a", "a", "b"]))
    assert (lost.query, lost.lost, lost.too_many, lost.example) == ("senders", 1, 0, "c")


def test_rows_are_kept(tmp_path: Path) -> None:
    rows = rows_of(syns=["a", "a", "b"])
    save_rows(rows, tmp_path / "rows.json")
    assert load_rows(tmp_path / "rows.json") == rows


def test_the_newest_commit_is_lost(tmp_path: Path) -> None:
    assert lose_commit(tmp_path) is None
    commits = tmp_path / "commits"
    commits.mkdir()
    for name in ("9", ".9.crc", "10", ".10.crc", ".11.abc.tmp"):
        (commits / name).touch()
    assert lose_commit(tmp_path) == "10"
    assert {path.name for path in commits.iterdir()} == {"9", ".9.crc", ".11.abc.tmp"}


def test_a_database_knows_what_it_has(tmp_path: Path) -> None:
    Database(tmp_path / "rows.db")("syns", 3, pa.table({"n": [1, 1]}))
    again = Database(tmp_path / "rows.db")
    assert again.last("syns") == 3
    assert again.last("senders") is None
    assert again.rows() == rows_of(syns=['{"n": 1}', '{"n": 1}'])


def test_one_wrong_run_is_enough() -> None:
    check = EveryRowOnce()
    good = Story(1, "jvm", "csv", ["jvm after 3 lines"])
    check.stories = {"jvm": [good], "all": [good, Story(2, "all", "csv", wrong=["syns: 1 lost"])]}
    outcomes = [Outcome("jvm"), Outcome("all"), Outcome("worker")]
    check.judge(outcomes)
    assert [outcome.checked for outcome in outcomes] == [True, False, False]
    assert "syns: 1 lost" in outcomes[1].remark
    assert str(check.conclude(outcomes)[0]).startswith("2 of 3 runs, 2 times killed")
