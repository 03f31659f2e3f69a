"""The contents of the journal: entries, which are splits to be read, and the position in each file.

In and out: JSON values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from terascope.connectors.base import Options, Split
from terascope.connectors.live.settings import LinkClock


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

    def to_json(self) -> list[Any]:
        """A list, in the order of the fields."""
        s = self.split
        return [
            s.kind, s.path, s.ordinal, s.start, s.end, s.options, s.bounds, self.size, self.empty
        ]  # fmt: skip


def entry_from_json(link: str, held: list[Any]) -> Entry:
    """Back from JSON; a link has all its splits under its own name."""
    kind, path, ordinal, start, end, options, bounds, size, empty = held
    split = Split(
        kind, link, path, ordinal, start, end,
        tuple((name, value) for name, value in options),
        tuple((name, low, high) for name, low, high in bounds),
    )  # fmt: skip
    return Entry(split, size, empty)


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

    def to_json(self) -> list[Any]:
        """A list, in the order of the fields."""
        return [
            self.path, self.ordinal, self.position, self.carried, self.closed, self.identity
        ]  # fmt: skip


def file_from_json(held: list[Any]) -> FileState:
    """Back from JSON."""
    path, ordinal, position, carried, closed, *identity = held
    options = tuple((n, v) for n, v in carried)
    return FileState(path, ordinal, position, options, closed, *identity)


@dataclass(frozen=True)
class Found:
    """The result of one look at one file: written to the journal as a whole, or not at all."""

    file: FileState
    entries: tuple[Entry, ...] = ()
