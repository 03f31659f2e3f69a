"""The approximate number of records of a file, without reading it.

In: a file. Out: a number, from its size and the mean length of the records at its beginning. It
takes about a millisecond and compiles nothing, so that planning can decide whether a sample of the
source pays.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from terascope.connectors.base import SHORTEST_TUPLE
from terascope.connectors.file_bytes import GZIP_MAGIC, UNPACKED_GZIP

BEGINNING: Final = 1 << 16
"""Bytes of a file that are looked at."""


def estimated_records(path: Path, size: int, mean_length: Callable[[bytes], float | None]) -> float:
    """The number of records of a file, by the mean length of those at its beginning."""
    try:
        with path.open("rb") as file:
            packed = file.read(BEGINNING)
    except OSError:
        return size / SHORTEST_TUPLE
    start, growth = unpacked(packed)
    return size * growth / (mean_length(start) or SHORTEST_TUPLE)


def unpacked(start: bytes) -> tuple[bytes, float]:
    """The beginning of a file as it is without compression, and how much longer that is."""
    if not start.startswith(GZIP_MAGIC):
        return start, 1.0
    try:
        plain = zlib.decompressobj(UNPACKED_GZIP).decompress(start)
    except zlib.error:
        return b"", 1.0
    return plain, len(plain) / len(start)


def line_length(start: bytes) -> float | None:
    """The mean length of the lines; None when there is no whole one."""
    lines = start.count(b"\n")
    return (start.rfind(b"\n") + 1) / lines if lines else None
