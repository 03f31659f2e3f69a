"""Write packets as a nanosecond pcap file.

In: chunks of PACKET records. Out: one file; a name ending in .gz is compressed.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import IO

import numpy as np

from terascope.traffic.frames import file_header, put_records
from terascope.traffic.payloads import PAYLOADS
from terascope.traffic.randomness import Array

_BUFFER = 8 << 20


class PcapWriter:
    """One pcap file being written."""

    def __init__(self, path: Path, snaplen: int, custom: Array, compress: bool) -> None:
        self._raw: IO[bytes] = path.open("wb", buffering=0)
        # No name and no time in the gzip header: the same packets give the same bytes.
        self._file: IO[bytes] | gzip.GzipFile = (
            gzip.GzipFile("", "wb", 1, self._raw, mtime=0) if compress else self._raw
        )
        self._snaplen = snaplen
        self._custom = custom
        self._buffer = np.zeros(_BUFFER, dtype=np.uint8)
        self._file.write(file_header(snaplen))

    def write(self, packets: Array) -> None:
        begin = 0
        while begin < len(packets):
            begin, size = put_records(
                packets, begin, self._buffer, 0, self._snaplen, self._custom, PAYLOADS
            )
            view = self._buffer[:size].data
            while len(view):
                view = view[self._file.write(view) :]

    def close(self) -> None:
        self._file.close()
        self._raw.close()
