"""Lines of a text file: where they begin, and where a file can be cut between two of them."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from terascope.connectors.base import ReadReport
from terascope.connectors.file_bytes import opened, read_chunks, size_of

LINE_SEARCH: Final = 64 * 1024
"""Bytes in which the end of a line is looked for at once."""


def byte_order_mark(start_of_file: bytes) -> int:
    """The number of bytes of a UTF-8 byte order mark at the beginning of a file."""
    return 3 if start_of_file.startswith(codecs.BOM_UTF8) else 0


def line_cuts(path: str | Path, first: int, size: int, target_bytes: int) -> list[int]:
    """Positions about `target_bytes` apart, beyond `first`, at which a line begins."""
    cuts: list[int] = []
    with opened(path) as file:
        position = first + target_bytes
        while position < size:
            # The line feed just before the position makes the position itself a cut.
            file.seek(position - 1)
            found = position - 1
            while found < size:
                part = file.read(LINE_SEARCH)
                line_feed = part.find(b"\n")
                if line_feed >= 0 or not part:
                    found += line_feed + 1 if part else size
                    break
                found += len(part)
            if found >= size:
                break
            cuts.append(found)
            position = found + target_bytes
    return cuts


def contains(path: str | Path, byte: int) -> bool:
    """Whether a byte occurs in a file."""
    return any(byte in chunk for chunk in read_chunks(path, 0, size_of(path), ReadReport()))
