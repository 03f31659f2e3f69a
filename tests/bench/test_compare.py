from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.compare import (
    Answer,
    EachItsOwn,
    Fingerprint,
    Fingerprints,
    SameRows,
    difference,
    fingerprints,
    reference_key,
)
from bench.experiment import BenchError, Outcome
from tests.bench.tiny import Tiny, write_numbers

pytestmark = pytest.mark.bench

ANSWER = Answer("q", {"tb": "int", "host": "address", "name": "text", "mean": "float"})
ROWS: dict[str, pa.Array] = {
    "tb": pa.array([1, 1, 2, 2], pa.int64()),
    "host": pa.array([167772161, 3323068427, 0, None], pa.uint32()),
    "name": pa.array(["a", None, "c", "c"]),
    "mean": pa.array([0.5, 1.5, None, 2.0]),
}


def found(folder: Path) -> Fingerprint:
    return fingerprints((ANSWER,), folder)["q"]


def write(folder: Path, table: pa.Table, name: str = "q.parquet") -> Fingerprint:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return found(folder)


def test_order_widths_files_and_the_form_of_addresses_do_not_matter(tmp_path: Path) -> None:
    table = pa.table(ROWS)
    expected = write(tmp_path / "plain", table)
    assert expected.rows == 4
    assert write(tmp_path / "turned", table.take([3, 1, 0, 2])) == expected
    narrow = table.set_column(0, "tb", table["tb"].cast(pa.uint8()))
    assert write(tmp_path / "narrow", narrow.select(["mean", "name", "tb", "host"])) == expected
    text = pa.array(["10.0.0.1", "198.18.0.11", "0.0.0.0", None])
    assert write(tmp_path / "text", table.set_column(1, "host", text)) == expected
    write(tmp_path / "parts", table.slice(0, 3), "q/part-0.parquet")
    assert write(tmp_path / "parts", table.slice(3), "q/part-1.parquet") == expected
    wider = table.append_column("extra", pa.array([1, 2, 3, 4]))
    assert write(tmp_path / "wider", wider) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"tb": pa.array([1, 1, 2, 3], pa.int64())},
        {"host": pa.array([167772161, 3323068427, None, 0], pa.uint32())},
        {"name": pa.array(["a", "", "c", "c"])},
        {"mean": pa.array([0.5, 1.5, None, 2.0000000000000004])},
    ],
)
def test_every_value_matters(tmp_path: Path, changed: dict[str, pa.Array]) -> None:
    expected = write(tmp_path / "one", pa.table(ROWS))
    other = write(tmp_path / "other", pa.table({**ROWS, **changed}))
    assert other.rows == expected.rows
    assert other != expected


def test_how_often_a_row_comes_matters(tmp_path: Path) -> None:
    table = pa.table(ROWS)
    twice = write(tmp_path / "a", pa.concat_tables([table, table.slice(0, 1), table.slice(0, 1)]))
    other = write(tmp_path / "b", pa.concat_tables([table, table.slice(1, 1), table.slice(1, 1)]))
    assert twice.rows == other.rows == 6
    assert twice.xor == other.xor, "the pairs cancel out"
    assert twice != other


def test_no_rows_and_no_result(tmp_path: Path) -> None:
    (tmp_path / "empty" / "q").mkdir(parents=True)
    nothing = found(tmp_path / "empty")
    assert nothing.rows == 0
    assert write(tmp_path / "file", pa.table(ROWS).slice(0, 0)) == nothing
    with pytest.raises(BenchError, match="no result of q was written"):
        found(tmp_path)
    with pytest.raises(BenchError, match="the result of q has no column mean"):
        write(tmp_path / "lacking", pa.table(ROWS).drop_columns(["mean"]))
    words = pa.array(["not", "an", "address", "x"])
    with pytest.raises(BenchError, match="cannot read the result of q"):
        write(tmp_path / "words", pa.table({**ROWS, "host": words}))


def test_differences_in_words() -> None:
    one: Fingerprints = {"q": Fingerprint(3, "7", "1"), "r": Fingerprint(1, "2", "2")}
    assert difference(one, dict(one)) is None
    fewer = {"q": Fingerprint(2, "7", "1"), "r": Fingerprint(1, "2", "3")}
    assert difference(one, fewer) == "q has 2 rows, not 3, and 1 more queries"
    assert difference(one, {**one, "r": Fingerprint(1, "2", "3")}) == "r has other values"


NUMBERS = (Answer("numbers", {"n": "int"}),)


def check(tmp_path: Path) -> SameRows:
    reference = Tiny("reference", tmp_path / "diary.txt", parquet=True)
    return SameRows(NUMBERS, reference, tmp_path / "kept.json", tmp_path / "work", cores=1)


def outcome(same: SameRows | EachItsOwn, folder: Path, name: str, *rows: int) -> Outcome:
    measured = Outcome(name, [1.0], [{}])
    (folder / name).mkdir()
    write_numbers(folder / name, rows, parquet=True)
    same.look(measured, folder / name)
    return measured


def test_everybody_is_compared_with_the_reference(tmp_path: Path) -> None:
    same = check(tmp_path)
    right = outcome(same, tmp_path, "right", 3, 2, 1)
    wrong = outcome(same, tmp_path, "wrong", 1, 2, 4)
    reference = outcome(same, tmp_path, "reference", 1, 2, 3)
    failed = Outcome("failed")
    same.judge([right, wrong, reference, failed])
    assert [o.checked for o in (right, wrong, reference, failed)] == [True, False, True, False]
    assert wrong.remark == "differs from reference: numbers has other values"
    assert right.rows == 3
    assert right.remark == ""
    assert same.kept.exists(), "for runs without the reference"
    assert not (tmp_path / "diary.txt").exists(), "it took part, and is not run again"


def test_a_reference_nobody_agrees_with_is_not_checked(tmp_path: Path) -> None:
    same = check(tmp_path)
    reference = outcome(same, tmp_path, "reference", 1, 2, 3)
    wrong = outcome(same, tmp_path, "wrong", 1)
    same.judge([reference, wrong])
    assert not reference.checked
    assert not wrong.checked
    assert "nobody" in reference.remark


def test_a_reference_that_takes_no_part_is_run_once(tmp_path: Path) -> None:
    for turn in (1, 2):
        same = check(tmp_path)
        (tmp_path / str(turn)).mkdir()
        right = outcome(same, tmp_path / str(turn), "right", 1, 2, 3)
        same.judge([right])
        assert right.checked
    diary = (tmp_path / "diary.txt").read_text(encoding="utf-8")
    assert diary.count("reference run") == 1


def test_contenders_with_sets_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = check(tmp_path / "one"), check(tmp_path / "two")
    each = EachItsOwn({"a": one, "b": two, "reference": two})
    first = outcome(each, tmp_path, "a", 1, 2, 3)
    second = outcome(each, tmp_path, "b", 5)
    reference = outcome(each, tmp_path, "reference", 5)
    each.judge([first, second, reference])
    assert first.checked
    assert second.checked
    assert reference.checked


def test_kept_answers_depend_on_the_queries() -> None:
    assert reference_key("a", "b") != reference_key("a", "c")
    assert reference_key("ab") != reference_key("a", "b")
    assert reference_key("a") == reference_key("a")
