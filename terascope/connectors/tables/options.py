"""Options of the text formats, as the user writes them, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from terascope.connectors.tables.records import MAX_RECORD
from terascope.diagnostic import SourceError

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
