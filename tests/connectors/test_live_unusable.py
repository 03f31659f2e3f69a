"""Named files that a stream refuses before it starts, and those that it waits for."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from terascope.connectors.base import SourceError
from terascope.connectors.live.unusable import check_named_files
from terascope.connectors.registry import parse_interface
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
