"""A result that grows: a folder of immutable files, and a manifest that says which of them count.

In: for each micro-batch the parts that tasks wrote. Out: `manifest.jsonl`, lines of JSON that are
only ever appended: a header with the columns, again when they change, and a line for each batch
that has rows. A batch is in the result when its line is there: once, however often the batch was
run. A line without its newline was not written to its end, and is not there yet.

    {"version": 1, "query": "flows", "format": "csv", "fields": [{"name": "tb", "type": "UINT"}]}
    {"batch": 7, "rows": 812, "files": [{"name": "part-....csv", "rows": 812}], "until": 5}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from terascope.diagnostic import OutputError, StreamError, as_mistake, reason_of
from terascope.execute.results.parts import Part
from terascope.files import PRIVATE, is_part, make_folder, open_file
from terascope.plan.rel import Field
from terascope.streaming.state.runs import MANIFEST
from terascope.types import Type

RowFormat: TypeAlias = Literal["parquet", "csv", "ndjson"]
VERSION: Final = 1


@dataclass(frozen=True)
class Header:
    """The columns and the format of the batches that follow."""

    query: str
    format: RowFormat
    fields: tuple[Field, ...]

    def to_json(self) -> dict[str, Any]:
        fields = [{"name": f.name, "type": f.type.value} for f in self.fields]
        return {"version": VERSION, "query": self.query, "format": self.format, "fields": fields}


@dataclass(frozen=True)
class BatchFile:
    name: str
    rows: int


@dataclass(frozen=True)
class DeliveredBatch:
    """The rows of one micro-batch."""

    number: int
    rows: int
    files: tuple[BatchFile, ...]


Entry: TypeAlias = Header | DeliveredBatch


class ManifestReader:
    """Reads the entries that are new since the last call."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self.begun_anew = 0
        """The number of times that the manifest was replaced."""
        self._offset = 0
        self._file: tuple[int, int] | None = None

    def new(self) -> Iterator[Entry]:
        """The entries that are complete and were not returned yet. A replaced manifest is read from
        its beginning.

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
            raise StreamError(f"cannot read '{self.path}': {reason_of(problem)}") from problem
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
    files = tuple(BatchFile(f["name"], int(f["rows"])) for f in told["files"])
    return DeliveredBatch(int(told["batch"]), int(told["rows"]), files)


class GrowingResult:
    """The result folder of one query.

    Raises:
        OutputError: it cannot be written, or holds something else.
    """

    def __init__(
        self,
        folder: Path,
        query: str,
        format: str,
        fields: Sequence[Field],
        mode: int = PRIVATE,
    ) -> None:
        self.folder = folder
        self.query = query
        self._mode = mode
        self._header = Header(query, cast(RowFormat, format), tuple(fields))
        self.rows = 0
        self.last_batch = -1
        self._path = folder / MANIFEST
        with self._writing():
            make_folder(folder, mode)
            self._open()

    def _writing(self) -> AbstractContextManager[None]:
        return as_mistake(OutputError, f"cannot write '{self.folder}'")

    def _open(self) -> None:
        known: Header | None = None
        if self._path.exists():
            drop_torn_line(self._path)
        elif any(self.folder.iterdir()):
            raise OutputError(
                f"'{self.folder}' has files but no {MANIFEST}: it is no result of a stream; choose"
                " another --output"
            )
        for entry in ManifestReader(self.folder).new():
            if isinstance(entry, Header):
                known = entry
            else:
                self._note(entry.number, entry.rows)
        if known != self._header:
            self._append(self._header.to_json())

    def _append(self, line: Mapping[str, Any]) -> None:
        """Append a line, which is complete and on disk when this returns."""
        with open_file(self._path, "ab", self._mode) as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _note(self, batch: int, rows: int) -> None:
        self.rows += rows
        self.last_batch = max(self.last_batch, batch)

    def has(self, batch: int) -> bool:
        """Whether a batch is in the result, or is known to have no rows for it."""
        return batch <= self.last_batch

    def deliver(self, batch: int, parts: Sequence[Part], until: Any = None) -> int:
        """Add the parts of a batch to the result, unless the batch is in it already. `until`: the
        value up to which the query is released. Returns the number of added rows.
        """
        full = [] if self.has(batch) else [part for part in parts if part.rows]
        for part in parts:
            if part not in full:
                part.path.unlink(missing_ok=True)
        if not full:
            return 0
        rows = sum(part.rows for part in full)
        files = [{"name": part.path.name, "rows": part.rows} for part in full]
        line = {"batch": batch, "rows": rows, "files": files, "until": until}
        with self._writing():
            self._append(line)
        self._note(batch, rows)
        return rows

    def sweep(self) -> None:
        """Remove the parts of failed attempts, which no batch contains."""
        with self._writing():
            batches = (e for e in ManifestReader(self.folder).new() if not isinstance(e, Header))
            known = {file.name for batch in batches for file in batch.files}
            for path in self.folder.iterdir():
                if path.name not in known and is_part(path):
                    path.unlink(missing_ok=True)


def drop_torn_line(path: Path) -> None:
    """Remove an incomplete last line, which a killed process left."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        with path.open("r+b") as file:
            file.truncate(end)
