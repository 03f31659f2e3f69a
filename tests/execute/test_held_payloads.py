"""Payloads of several streams, taken one stream after the other."""

from __future__ import annotations

import pytest

from terascope.execute import held_payloads
from terascope.execute.held_payloads import by_stream

PACKED = [(3, b"a"), (1, b"bb"), (3, b"c"), (2, b""), (1, b"dddd"), (2, b"e"), (3, b"f")]


@pytest.mark.parametrize("in_memory", [1 << 20, 3, 0], ids=["in memory", "both", "on disk"])
def test_streams_one_after_the_other(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_payloads, "HELD_BYTES", in_memory)
    taken = [(stream, list(payloads)) for stream, payloads in by_stream(PACKED)]
    assert taken[0] == (3, [b"a", b"c", b"f"])
    assert taken[1:] == [(1, [b"bb", b"dddd"]), (2, [b"", b"e"])]
    assert list(by_stream([])) == []
