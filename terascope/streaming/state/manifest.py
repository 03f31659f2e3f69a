"""The list of a stream's batches: `FOLDER/manifest.jsonl`, which only grows.

In: the file, while somebody writes it. Out: its entries, each once. A last line without its end is
not there yet. A header says what the batches after it look like; a new one comes when the columns
change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from terascope.plan.rel import Field
from terascope.streaming.mistakes import StreamError
from terascope.streaming.state.runs import MANIFEST
from terascope.types import Type

RowFormat: TypeAlias = Literal["parquet", "csv", "ndjson"]
VERSION: Final = 1


@dataclass(frozen=True)
class Header:
    """What the batches that follow look like."""

    query: str
    format: RowFormat
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class BatchFile:
    """A file of a batch."""

    name: str
    rows: int


@dataclass(frozen=True)
class DeliveredBatch:
    """The rows that one micro-batch gave, and between which values of the window key they lie."""

    number: int
    rows: int
    files: tuple[BatchFile, ...]
    low: Any = None
    high: Any = None


Entry: TypeAlias = Header | DeliveredBatch


class ManifestReader:
    """Reads what is new since the last time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self.begun_anew = 0
        """How often the manifest was found to be another one."""
        self._offset = 0
        self._file: tuple[int, int] | None = None

    def new(self) -> Iterator[Entry]:
        """The entries that are complete now and were not given yet. A manifest that was begun anew
        is read from its beginning.

        Raises:
            StreamError: a line is not of this form.
        """
        try:
            with self.path.open("rb") as file:
                known = self.path.stat()
                identity = (known.st_dev, known.st_ino)
                if identity != self._file or known.st_size < self._offset:
                    self.begun_anew += self._file is not None
                    self._file, self._offset = identity, 0
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise StreamError(f"cannot read '{self.path}': {reason}") from problem
        complete = content[: content.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            if line.strip():
                yield self._entry(line)

    def _entry(self, line: bytes) -> Entry:
        try:
            told = json.loads(line)
            return header(told) if "fields" in told else batch(told)
        except (ValueError, KeyError, TypeError) as problem:
            shown = line[:60].decode(errors="replace")
            raise StreamError(f"'{self.path}' has a line that is no entry: {shown}") from problem


def header(told: dict[str, Any]) -> Header:
    """A header, from its JSON."""
    version = told.get("version", VERSION)
    if version != VERSION:
        raise StreamError(
            f"the rows of {told['query']} are of version {version}, and this Terascope reads"
            f" version {VERSION}; read them with the Terascope that wrote them"
        )
    if told["format"] not in get_args(RowFormat):
        raise StreamError(f"the rows of {told['query']} are {told['format']}, which is not read")
    fields = tuple(Field(f["name"], Type(f["type"])) for f in told["fields"])
    return Header(told["query"], cast(RowFormat, told["format"]), fields)


def batch(told: dict[str, Any]) -> DeliveredBatch:
    """A batch, from its JSON."""
    files = tuple(BatchFile(f["name"], int(f["rows"])) for f in told["files"])
    return DeliveredBatch(
        int(told["batch"]), int(told["rows"]), files, told.get("low"), told.get("high")
    )
