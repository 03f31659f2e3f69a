"""Named files that a stream refuses before it starts, and those that it waits for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from terascope.connectors.base import FileFault
from terascope.connectors.live.links import check_named_files, check_read_files
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import SourceError
from tests.connectors.live_reading import Run, live, read
from tests.connectors.packet_bytes import ethernet, ipv4, pcap, section, tcp

PACKETS = pcap([ethernet(ipv4(tcp(payload=b"x")))] * 3)
GARBAGE = b"this is no capture at all, but a text of some length"
WAITED_FOR = {
    "empty": b"",
    "cut-header": PACKETS[:11],
    "cut-pcapng": section()[:6],
    "cut-gzip": gzip.compress(PACKETS)[:15],
}
REFUSED = {
    "text": GARBAGE,
    "few-bytes": b"hi\n",
    "packed-text": gzip.compress(GARBAGE),
    "pcapng-garbage": section()[:8] + GARBAGE,
}


def check(path: Path, replayed: bool) -> None:
    check_named_files([parse_interface(f"pcap:{path}")], replayed)


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("replayed", [False, True])
def test_what_no_later_byte_can_mend_is_refused(
    tmp_path: Path, content: bytes, replayed: bool
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.pcap' cannot be used: not a capture file"):
        check(path, replayed)
    check(tmp_path, replayed)  # in a folder it is counted when it is read


@pytest.mark.parametrize("content", WAITED_FOR.values(), ids=WAITED_FOR)
def test_a_followed_file_may_still_become_a_capture_and_a_replayed_one_may_not(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    check(path, replayed=False)
    with pytest.raises(SourceError, match=r"a\.pcap' cannot be used: "):
        check(path, replayed=True)


@pytest.mark.parametrize("replayed", [False, True])
def test_captures_and_files_that_are_not_there_yet_are_nothing_to_tell(
    tmp_path: Path, replayed: bool
) -> None:
    (tmp_path / "a.pcap").write_bytes(PACKETS)
    check(tmp_path / "a.pcap", replayed)
    check(tmp_path / "later.pcap", replayed)


@pytest.mark.parametrize("content", WAITED_FOR.values(), ids=WAITED_FOR)
def test_a_run_that_ends_when_all_is_read_refuses_what_a_batch_refuses(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "a.pcap"
    interface = parse_interface(f"pcap:{path}")
    with pytest.raises(SourceError, match="no such file"):
        check_read_files([interface])
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.pcap' cannot be used: "):
        check_read_files([interface])
    path.write_bytes(PACKETS)
    check_read_files([interface])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="holds no file"):
        check_read_files([parse_interface(f"pcap:{empty}")])


class Locked:
    """Files that cannot be opened, as without permission: tests may run as root."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: set[Path] = set()
        really_open = Path.open

        def refusing(path: Path, *args: object, **kwargs: object) -> object:
            if path in self.paths:
                raise PermissionError(13, "Permission denied", str(path))
            return really_open(path, *args, **kwargs)  # type: ignore[call-overload]

        monkeypatch.setattr(Path, "open", refusing)


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize("kind", ["pcap", "csv", "json", "parquet"])
def test_a_named_file_without_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, replayed: bool
) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(PACKETS)
    Locked(monkeypatch).paths.add(path)
    with pytest.raises(SourceError, match=r"(?i)cannot read '.*': permission denied"):
        check_named_files([parse_interface(f"{kind}:{path}")], replayed)


CONTENT = {
    "pcap": PACKETS,
    "csv": b"timestamp,a\n1,1\n2,1\n3,1\n",
    "json": b'{"timestamp": 1}\n{"timestamp": 2}\n{"timestamp": 3}\n',
}


@pytest.mark.parametrize("kind", CONTENT)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_of_a_followed_folder_without_permission_is_counted_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, restarted: bool
) -> None:
    locked = Locked(monkeypatch)
    folder = tmp_path / "in"
    folder.mkdir()
    good, bad, later = (folder / f"{name}.{kind}" for name in "abc")
    good.write_bytes(CONTENT[kind])
    bad.write_bytes(CONTENT[kind])
    locked.paths.add(bad)
    run = Run([f"e={kind}:{folder}"], tmp_path / "journal")
    rows, report = read(run.step())
    assert (len(rows), report.malformed) == (3, {}), "maybe it only has no permissions yet"
    run.wall.pass_seconds(5)
    later.write_bytes(CONTENT[kind])
    rows, _ = read(run.step())
    assert len(rows) == 3
    for _ in range(3):
        run.wall.pass_seconds(6)
        run.step()
    if restarted:
        run.reopen()
        run.step()
        run.wall.pass_seconds(11)
        run.step()
    rows, report = read(run.all_splits)
    assert len(rows) == 6
    assert report.files == {str(bad): FileFault.UNREADABLE.value}
    assert report.malformed == {FileFault.UNREADABLE.value: 1}
    assert run.links.states()[0].stalled is None
    locked.paths.clear()
    rows, _ = read(run.step())
    assert len(rows) == 3, "it is read once it can be"
    assert run.step() == []


def test_a_run_that_ends_counts_a_file_without_permission_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Locked(monkeypatch)
    bad = tmp_path / "in" / "b.pcap"
    bad.parent.mkdir()
    bad.write_bytes(PACKETS)
    bad.with_name("a.pcap").write_bytes(PACKETS)
    locked.paths.add(bad)
    run = Run([f"e=pcap:{bad.parent}"], tmp_path / "journal", live(until_idle=True))
    run.step_until_ended(1.0, 9)
    rows, report = read(run.all_splits)
    assert len(rows) == 3
    assert report.files == {str(bad): FileFault.UNREADABLE.value}
