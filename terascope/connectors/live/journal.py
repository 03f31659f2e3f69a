"""The journal: every split that was ever offered, in an order that never changes.

In: the findings of links: entries, which are splits to be read, and the position in each file. Out:
the same entries for the same counts, after a crash too. It is a file of JSON lines to which lines
are appended; a line is on disk before its entries are offered, so that a line that a crash cut
short was never offered. Committed entries expire: at times the file is rewritten without them and
renamed into place. Counts stay those from the very beginning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Final

from terascope.connectors.base import Options, Split
from terascope.connectors.live.settings import LinkClock
from terascope.diagnostic import OutputError, SourceError
from terascope.files import make_folder, open_file, sync


@dataclass(frozen=True)
class Entry:
    """A split, with the facts that admission needs."""

    split: Split
    size: int
    """Bytes, about."""
    empty: bool = False
    """Holds no tuple with a time: its bounds say nothing, and their absence neither."""

    def times_ns(self, clock: LinkClock | None) -> tuple[int, int] | None:
        """The first and last time in it, if they are known."""
        held = self.split.bound(clock.column) if clock is not None else None
        if clock is None or held is None:
            return None
        return held[0] * clock.tick_ns, held[1] * clock.tick_ns

    @staticmethod
    def from_json(held: list[Any]) -> Entry:
        (*place, options, bounds), size, empty = held
        place += [tuple(map(tuple, options)), tuple(map(tuple, bounds))]
        return Entry(Split(*place), size, empty)


@dataclass(frozen=True)
class FileState:
    """The position of a file in the journal."""

    path: str
    ordinal: int
    position: int = 0
    """The start of the next split."""
    carried: Options = ()
    """The options of the reader of that split."""
    closed: bool = False
    """Nothing more of it will be read."""
    identity: str = ""
    """The identity of the file, whatever its path holds later (`connectors.file_identity`)."""

    @staticmethod
    def from_json(held: list[Any]) -> FileState:
        path, ordinal, position, carried, closed, identity = held
        return FileState(path, ordinal, position, tuple(map(tuple, carried)), closed, identity)


@dataclass(frozen=True)
class Found:
    """The result of one look at one file: written to the journal as a whole, or not at all."""

    file: FileState
    entries: tuple[Entry, ...] = ()
    torn: str | None = None
    """The missing part of the last record of the file, if it is not complete; the journal does not
    hold it."""


FILE_NAME: Final = "journal.jsonl"
MOST_WEIGHT: Final = 64
"""Lines and splits that may be there beyond twice the number that is needed."""


@dataclass
class LinkJournal:
    base: int = 0
    """Entries that have expired."""
    entries: list[Entry] = field(default_factory=list)
    files: dict[str, FileState] = field(default_factory=dict)
    next_ordinal: int = 0

    @property
    def count(self) -> int:
        """Entries since the beginning."""
        return self.base + len(self.entries)

    def between(self, start: int, end: int) -> list[Entry]:
        """Entries start..end, counted from the beginning."""
        if start < end and start < self.base:
            raise SourceError(
                f"entry {start} of the journal is forgotten; the first is {self.base}"
            )
        if end > self.count:
            raise SourceError(f"the journal has {self.count} entries, not {end}; was it deleted?")
        return self.entries[max(start - self.base, 0) : max(end - self.base, 0)]

    def is_pending(self, path: str) -> bool:
        """Whether a split of the file is not committed."""
        return any(entry.split.path == path for entry in self.entries)


class Journal:
    """The journal of all links, in one folder."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._folder = folder
        self._path = folder / FILE_NAME
        self.links: dict[str, LinkJournal] = {}
        self.marks: dict[str, int] = {}
        """Numbers to be remembered, by name."""
        self._weight = 0
        self._load()

    def link(self, name: str) -> LinkJournal:
        """The journal of a link; empty for a new one."""
        return self.links.setdefault(name, LinkJournal())

    def append(
        self, found: Mapping[str, Iterable[Found | str]], marks: Mapping[str, int] | None = None
    ) -> None:
        """Write the findings of each link, in that order: a path alone is a file that is gone.
        Returns when it is on disk.
        """
        lines = [_line(name, one) for name, each in found.items() for one in each]
        if marks:
            lines.append({"bases": {}, "marks": dict(marks)})
        if not lines:
            return
        self._write(lines)
        for line in lines:
            self._take(line)

    def commit(self, counts: Mapping[str, int], marks: Mapping[str, int]) -> None:
        """Forget the entries before these counts."""
        bases = {name: min(count, self.link(name).count) for name, count in counts.items()}
        line = {"bases": bases, "marks": dict(marks)}
        self._take(line)
        if self._weight > 2 * self._needed_weight() + MOST_WEIGHT:
            self._write_again()
        else:
            # Not forced to disk: without it, more than necessary is remembered, nothing less.
            self._write([line], forced=False)

    def _write(self, lines: list[dict[str, Any]], forced: bool = True) -> None:
        with open_file(self._path, "ab") as file:
            end = file.tell()
            try:
                file.write(_encoded(lines))
                file.flush()
                if forced:
                    os.fsync(file.fileno())
            except OSError as problem:
                os.ftruncate(file.fileno(), end)  # half a line must not stand before the next one
                reason = (problem.strerror or str(problem)).lower()
                raise OutputError(f"cannot write '{self._path}': {reason}") from problem

    def _load(self) -> None:
        if not self._path.exists():
            return
        held = self._path.read_bytes()
        whole = held.rfind(b"\n") + 1
        if whole < len(held):
            with self._path.open("r+b") as file:
                file.truncate(whole)
        for line in held[:whole].splitlines():
            self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        self._weight += 1 + len(line.get("entries", ()))
        match line:
            case {"link": name, "file": state, "entries": entries}:
                link, file = self.link(name), FileState.from_json(state)
                link.files[file.path] = file
                link.next_ordinal = max(link.next_ordinal, file.ordinal + 1)
                link.entries += map(Entry.from_json, entries)
            case {"link": name, "gone": path}:
                self.link(name).files.pop(path, None)
            case {"link": name, "base": base, "entries": entries, "next_ordinal": ordinal}:
                self.links[name] = LinkJournal(
                    base, list(map(Entry.from_json, entries)), next_ordinal=ordinal
                )
            case {"bases": bases, "marks": marks}:
                for name, base in bases.items():
                    link = self.link(name)
                    del link.entries[: max(base - link.base, 0)]
                    link.base = max(base, link.base)
                self.marks |= marks
            case _:
                raise SourceError(f"'{self._path}' is not a journal that this version reads")

    def _write_again(self) -> None:
        """Write the present state alone."""
        lines: list[dict[str, Any]] = [{"bases": {}, "marks": self.marks}]
        for name, link in self.links.items():
            lines.append(
                {
                    "link": name,
                    "base": link.base,
                    "entries": [astuple(entry) for entry in link.entries],
                    "next_ordinal": link.next_ordinal,
                }
            )
            lines += [_line(name, Found(file)) for file in link.files.values()]
        fresh = self._path.with_suffix(".new")
        with open_file(fresh, "wb") as file:
            file.write(_encoded(lines))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        sync(self._folder)
        self._weight = self._needed_weight()

    def _needed_weight(self) -> int:
        return sum(1 + len(link.files) + len(link.entries) for link in self.links.values())


def _line(name: str, found: Found | str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"link": name, "gone": found}
    entries = [astuple(entry) for entry in found.entries]
    return {"link": name, "file": astuple(found.file), "entries": entries}


def _encoded(lines: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
