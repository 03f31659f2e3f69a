"""Who may change a running set: its own user, and root."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from terascope.diagnostic import StreamError
from terascope.operate.control_requests import pending_requests
from terascope.streaming.state.runs import RunFolder, open_control

NOBODY = 65534


def asked(folder: Path) -> Path:
    path = RunFolder(folder).control / "parameters-1.json"
    path.write_text(json.dumps({"name": "threshold", "value": "3"}))
    return path


def test_the_folder_is_private_whatever_the_umask_and_whatever_it_was(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_control(RunFolder(tmp_path).control)
    finally:
        os.umask(before)
    assert RunFolder(tmp_path).control.stat().st_mode & 0o777 == 0o700
    RunFolder(tmp_path).control.chmod(0o777)
    open_control(RunFolder(tmp_path).control)
    assert RunFolder(tmp_path).control.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_obeyed(mode: int, tmp_path: Path) -> None:
    open_control(RunFolder(tmp_path).control)
    asked(tmp_path)
    assert [request.name for request in pending_requests(RunFolder(tmp_path))] == ["threshold"]
    RunFolder(tmp_path).control.chmod(mode)
    assert list(pending_requests(RunFolder(tmp_path))) == []


def test_a_link_in_its_place_is_neither_used_nor_obeyed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(mode=0o700)
    RunFolder(tmp_path).control.symlink_to(tmp_path / "other")
    asked(tmp_path)
    assert list(pending_requests(RunFolder(tmp_path))) == []
    with pytest.raises(StreamError, match="others could change the run"):
        open_control(RunFolder(tmp_path).control)


def test_a_request_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    open_control(RunFolder(tmp_path).control)
    request = asked(tmp_path)
    request.rename(tmp_path / "elsewhere.json")
    request.symlink_to(tmp_path / "elsewhere.json")
    assert list(pending_requests(RunFolder(tmp_path))) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_requests_and_folders_of_other_users_are_not_obeyed(tmp_path: Path) -> None:
    open_control(RunFolder(tmp_path).control)
    os.chown(asked(tmp_path), NOBODY, NOBODY)
    assert list(pending_requests(RunFolder(tmp_path))) == []
    os.chown(asked(tmp_path), 0, 0)
    assert len(list(pending_requests(RunFolder(tmp_path)))) == 1
    os.chown(RunFolder(tmp_path).control, NOBODY, NOBODY)
    assert list(pending_requests(RunFolder(tmp_path))) == []
    with pytest.raises(StreamError, match="not a folder of this user alone"):
        open_control(RunFolder(tmp_path).control)
