"""The text formats: lines, options as the user writes them, and types of undeclared columns.

A file can be cut between two lines. The type of a column follows from a sample of its texts: INT if
all texts are integers, FLOAT if all are numbers, BOOL if all are words for true or false, IP if all
are addresses, else STRING. Empty texts fit any type; a column that has only those is a STRING.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from terascope.connectors.base import ReadReport
from terascope.connectors.file_bytes import opened, read_chunks, size_of
from terascope.connectors.tables import kernels
from terascope.connectors.tables.convert import Texts, from_text
from terascope.connectors.tables.records import MAX_RECORD
from terascope.diagnostic import SourceError
from terascope.types import Type

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


_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_TRUE = frozenset({"true", "yes", "1", "on"})
_FALSE = frozenset({"false", "no", "0", "off"})


@dataclass(frozen=True)
class CsvOptions:
    """The dialect of a CSV file. Characters are byte values; -1 is none."""

    delimiter: int
    quote: int
    comment: int
    header: bool
    names: tuple[str, ...]
    newlines_in_values: bool
    null: str | None
    max_row_bytes: int

    @staticmethod
    def of(options: Mapping[str, str], path: str | Path) -> CsvOptions:
        known = (
            "delimiter", "quote", "comment", "header", "names", "null", "newlines_in_values",
            "max_row_bytes",
        )  # fmt: skip
        check_names("csv", options, known)
        is_tsv = Path(path).name.removesuffix(".gz").endswith(".tsv")
        delimiter = options.get("delimiter", "\t" if is_tsv else ",")
        quote = options.get("quote", '"')
        return CsvOptions(
            delimiter=_character("delimiter", _DELIMITER_NAMES.get(delimiter, delimiter)),
            quote=_character("quote", "" if quote == "none" else quote, optional=True),
            comment=_character("comment", options.get("comment", ""), optional=True),
            header=_boolean("header", options.get("header", "true")),
            names=tuple(n.strip() for n in options.get("names", "").split(",") if n.strip()),
            newlines_in_values=_boolean(
                "newlines_in_values", options.get("newlines_in_values", "true")
            ),
            null=options.get("null"),
            max_row_bytes=row_limit(options),
        )


def row_limit(options: Mapping[str, str]) -> int:
    """The longest row that is read, in bytes."""
    text = options.get("max_row_bytes", str(MAX_RECORD))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 2**30:
        raise SourceError(f"option max_row_bytes is a number from 1 to {2**30}, not '{text}'")
    return int(text)


def check_names(kind: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in options:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise SourceError(f"unknown option '{name}' of a {kind} source; known: {listed}")


def _character(name: str, text: str, optional: bool = False) -> int:
    if optional and not text:
        return -1
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise SourceError(f"option {name} is one ASCII character, not '{text}'")
    return ord(text)


def _boolean(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SourceError(f"option {name} is true or false, not '{text}'")


SAMPLE_BYTES = 1024 * 1024
SAMPLE_ROWS = 10_000


def infer_type(texts: Texts) -> Type:
    """The narrowest type that holds every text of a sample."""
    filled = texts.valid & (np.diff(texts.offsets) > 0)
    if not filled.any():
        return Type.STRING
    states = np.empty(len(texts), np.uint8)
    kernels.parse_integers(texts.data, texts.offsets, np.empty(len(texts), np.int64), states, False)
    if not (states[filled] > kernels.EMPTY).any():
        return Type.INT
    for type in (Type.FLOAT, Type.BOOL):
        if _fits(texts, type):
            return type
    # Bare numbers convert to IP when they are declared so, but are no sign of one.
    has_numbers = pc.any(pc.match_substring_regex(texts.arrow(), r"^\s*[0-9]+\s*$")).as_py()
    return Type.IP if not has_numbers and _fits(texts, Type.IP) else Type.STRING


def _fits(texts: Texts, type: Type) -> bool:
    faults = from_text(texts, type).faults
    return faults is None or not faults.any()
