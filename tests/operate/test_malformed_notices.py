"""Files that a stream cannot use are told once, and once more when it ends."""

from __future__ import annotations

from terascope.analysis.order import Trees
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.live import Offset
from terascope.operate.notices import Notices, malformed_text
from terascope.operate.status import SourceStatus
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.state.state import StreamState

WHY = "not a capture file: neither pcap nor pcapng, plain or gzip"


def source(*files: str) -> SourceStatus:
    return SourceStatus(
        "eth0", "pcap", malformed=len(files), malformed_reasons={WHY: len(files)},
        skipped_bytes=70, unusable_files=dict.fromkeys(files, WHY),
    )  # fmt: skip


def test_a_file_is_told_when_it_is_found_to_be_unusable_and_not_again() -> None:
    notices, report = (
        Notices(),
        BatchReport(
            0, Offset({}), StreamState(), [], {}, Watermarks(Trees({}), lambda scan: {}), 1.0
        ),
    )
    assert notices.ingest(report, {"eth0": source()}) == []
    assert notices.ingest(report, {"eth0": source("/in/a")}) == [
        f"eth0: '/in/a' is malformed: {WHY}"
    ]
    assert notices.ingest(report, {"eth0": source("/in/a")}) == []
    assert notices.ingest(report, {"eth0": source("/in/a", "/in/b")}) == [
        f"eth0: '/in/b' is malformed: {WHY}"
    ]


def test_the_end_names_reasons_and_files() -> None:
    assert malformed_text(source("/in/a")) == (
        f"1 malformed of eth0: 1 {WHY}, 70 bytes skipped, '/in/a': {WHY}"
    )
