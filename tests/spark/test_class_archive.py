"""The archive of Spark's classes is used when it is ours, and made by one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from terascope.spark import class_archive
from terascope.spark.class_archive import archive_options, archive_path, claim, claim_of, take


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(class_archive.SWITCH, raising=False)
    program = tmp_path / "java"
    program.write_text("a Java", encoding="utf-8")
    return program


def made(java: Path) -> Path:
    path = archive_path(java)
    assert path is not None
    path.write_bytes(b"classes")
    path.chmod(0o600)
    return path


def test_an_archive_is_used_when_there_is_one(java: Path) -> None:
    assert archive_options(java) == ""
    path = made(java)
    assert archive_options(java).endswith(f"-XX:SharedArchiveFile={path}")
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_can_write_is_not_used(java: Path, mode: int) -> None:
    made(java).chmod(mode)
    assert archive_options(java) == ""


def test_a_folder_that_others_can_write_is_not_used(java: Path) -> None:
    made(java).parent.chmod(0o777)
    assert archive_options(java) == ""


def test_a_link_to_something_else_is_not_followed(java: Path, tmp_path: Path) -> None:
    path = made(java)
    path.unlink()
    path.symlink_to(tmp_path / "java")
    (tmp_path / "java").chmod(0o666)
    assert not class_archive.is_file_of_ours(path)


def test_another_java_has_another_archive(java: Path) -> None:
    before = archive_path(java)
    java.write_text("a newer Java", encoding="utf-8")
    assert archive_path(java) != before
    assert archive_path(java.parent / "absent") is None


def test_it_can_be_switched_off(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(java)
    monkeypatch.setenv(class_archive.SWITCH, "off")
    assert archive_options(java) == ""


def test_one_makes_it_and_a_claim_of_the_dead_ends(java: Path) -> None:
    path = archive_path(java)
    assert path is not None
    assert claim(path)
    assert not claim(path)
    os.utime(claim_of(path), (0, 0))
    assert claim(path)


def test_what_was_made_takes_its_place_or_is_not_tried_again_at_once(java: Path) -> None:
    path = archive_path(java)
    assert path is not None
    new = path.with_suffix(".jsa.1")
    assert claim(path)
    assert not take(new, path)
    assert not claim(path)
    new.write_bytes(b"classes")
    assert take(new, path)
    assert path.read_bytes() == b"classes"
    assert not claim_of(path).exists()
