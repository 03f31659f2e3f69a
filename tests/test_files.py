"""Names of queries stay inside the output folder; files are private unless results are shared."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from terascope.diagnostic import OutputError, QueryError, Source
from terascope.execute.results.parts import PartWriter, drop_other_parts
from terascope.files import (
    PRIVATE,
    escaped,
    is_ours,
    is_part,
    make_folder,
    name_problem,
    open_file,
    output_mode,
)
from terascope.output import staged
from terascope.pipeline import compile_set
from terascope.plan.rel import Field
from terascope.streaming.state.manifest import GrowingResult
from terascope.types import Type

FIELDS = (Field("a", Type.INT),)
BAD = ["", ".", "..", ".hidden", "...", "x.manifest", "x.manifest.json", "x#shown", "n" * 201]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def written_part(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with PartWriter(folder, "csv", FIELDS) as part:
        return part.close()[0]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_could_leave_its_folder_is_refused_at_check(name: str) -> None:
    assert name_problem(name)
    with pytest.raises(QueryError) as refused:
        compile_set(Source(f"DEFINE {{ query_name '{name}'; }} SELECT time FROM TCP"))
    assert refused.value.codes == ("bad-name",)
    assert len(str(refused.value)) < 1000


def test_a_long_name_counts_as_it_is_written() -> None:
    assert name_problem("n" * 200) is None
    assert name_problem("\N{GREEK SMALL LETTER ALPHA}" * 33) is None
    assert name_problem("\N{GREEK SMALL LETTER ALPHA}" * 34)


@pytest.mark.parametrize("name", [".", "..", "../x", "/etc/passwd", ".x", "a/../..", "a\0b", "~"])
def test_the_file_of_any_name_is_inside_its_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / "out" / escaped(name)
    assert path.resolve().parent == (tmp_path / "out").resolve()
    assert path.name not in (".", "..")


def test_only_parts_are_removed(tmp_path: Path) -> None:
    kept, dropped = written_part(tmp_path), written_part(tmp_path)
    mine = tmp_path / "part-of-mine.csv"
    mine.write_text("precious", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    drop_other_parts(tmp_path, [kept])
    assert kept.exists()
    assert not dropped.exists()
    assert mine.exists()
    assert (tmp_path / "folder").exists()


def test_a_stream_sweeps_only_parts(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    result = GrowingResult(folder, "q", "csv", FIELDS)
    orphan = written_part(folder)
    mine = folder / "notes.txt"
    mine.write_text("precious", encoding="utf-8")
    result.sweep()
    assert not orphan.exists()
    assert mine.exists()


def test_a_folder_of_the_user_does_not_give_way_to_parts(tmp_path: Path) -> None:
    mine = tmp_path / "q" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("precious", encoding="utf-8")
    with pytest.raises(OutputError, match=r"'notes\.txt', which is no part of a result"):
        write_q(tmp_path)
    assert mine.read_text(encoding="utf-8") == "precious"
    mine.unlink()
    before = written_part(tmp_path / "q")
    write_q(tmp_path)
    assert not before.exists()
    assert [is_part(path) for path in (tmp_path / "q").iterdir()] == [True]


def write_q(directory: Path) -> None:
    with staged(directory) as folder:
        written_part(folder / "q")


def test_a_folder_or_a_link_in_the_place_of_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "q.csv").mkdir()
    with pytest.raises(OutputError, match="a folder is in its place"), staged(tmp_path) as folder:
        (folder / "q.csv").touch()
    (tmp_path / "q.csv").rmdir()
    (tmp_path / "q.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="a link is in its place"), staged(tmp_path) as folder:
        (folder / "q.csv").touch()
    assert (tmp_path / "q.csv").is_symlink()


# ---- modes ---------------------------------------------------------------------------------------


@pytest.fixture
def usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize(
    ("shared", "file", "folder"), [(False, 0o600, 0o700), (True, 0o644, 0o755)]
)
def test_results_are_private_unless_they_are_shared(
    shared: bool, file: int, folder: int, tmp_path: Path
) -> None:
    chosen = output_mode(shared)
    with staged(tmp_path / "out", chosen) as staging:
        written_part(staging / "q")
        (staging / "q.manifest.json").touch()
    assert mode(tmp_path / "out") == folder
    assert mode(tmp_path / "out" / "q") == folder
    assert {mode(path) for path in (tmp_path / "out" / "q").iterdir()} == {file}
    assert mode(tmp_path / "out" / "q.manifest.json") == file
    GrowingResult(tmp_path / "stream" / "q", "q", "csv", FIELDS, chosen)
    assert mode(tmp_path / "stream" / "q") == folder
    assert mode(tmp_path / "stream" / "q" / "manifest.jsonl") == file


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_private_file_is_private_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        make_folder(tmp_path / "a" / "b")
        with open_file(tmp_path / "a" / "b" / "c", "xb") as file:
            file.write(b"x")
        make_folder(tmp_path / "open", 0o644)
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == 0o700
    assert mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path / "a" / "b" / "c") == PRIVATE
    assert mode(tmp_path / "open") == 0o755


def test_a_folder_that_others_may_write_to_is_not_ours(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir(0o700)
    assert is_ours(folder)
    folder.chmod(0o770)
    assert not is_ours(folder)
    folder.chmod(0o702)
    assert not is_ours(folder)
    assert not is_ours(tmp_path / "absent")
