"""Bytes of a file in chunks, plain or gzip, and the cuts between its splits.

In: a path and a byte range. Out: chunks of at most `CHUNK` bytes; positions at which lines begin.
A gzip file is recognised by its first bytes, not by its name, and is always read as a whole.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from terascope.connectors.base import ReadReport, UnusableFile
from terascope.connectors.malformed import FileFault
from terascope.diagnostic import SourceError

CHUNK: Final = 4 * 1024 * 1024
_LINE_SEARCH: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The open file; what the operating system refuses becomes one clear line."""
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - its errors are translated, the reader's are not
    except OSError as error:
        raise _unreadable(path, error) from error
    with file:
        yield file


def size_of(path: str | Path) -> int:
    """Bytes of a file."""
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | Path, error: OSError) -> SourceError:
    return UnusableFile(f"cannot read '{path}': {(error.strerror or str(error)).lower()}")


def is_gzip(path: str | Path) -> bool:
    with opened(path) as file:
        return file.read(2) == _GZIP_MAGIC


def read_chunks(
    path: str | Path, start: int, end: int, report: ReadReport, size: int = CHUNK
) -> Iterator[bytes]:
    """A range of a plain file; of a gzip file everything unpacked from byte `start` on."""
    if is_gzip(path):
        for chunk in _unpacked_chunks(path, report, size):
            if kept := chunk[start:]:
                yield kept
            start = max(start - len(chunk), 0)
        return
    with opened(path) as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(size, end - start))):
            start += len(chunk)
            report.bytes_read += len(chunk)
            yield chunk


def _unpacked_chunks(path: str | Path, report: ReadReport, size: int) -> Iterator[bytes]:
    with opened(path) as file, gzip.GzipFile(fileobj=file) as unpacked:
        before = report.bytes_read
        more = True
        while more:
            # Small pieces: a read that fails gives nothing of what it had unpacked so far.
            pieces = bytearray()
            try:
                while len(pieces) < size and (piece := unpacked.read1(size)):
                    pieces += piece
                more = len(pieces) >= size
            except (EOFError, gzip.BadGzipFile, zlib.error):
                report.blame(str(path), FileFault.DAMAGED_GZIP)
                more = False
            report.bytes_read = before + file.tell()
            if pieces:
                yield bytes(pieces)


def head(path: str | Path, size: int) -> bytes:
    """The first bytes of a file, unpacked; at most `size`."""
    chunks = read_chunks(path, 0, size, ReadReport(), size)
    return next(chunks, b"")[:size]


def byte_order_mark(start_of_file: bytes) -> int:
    """How many bytes of a UTF-8 byte order mark a file begins with."""
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
                part = file.read(_LINE_SEARCH)
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
