"""The interface of a link: one source that is polled again and again, its state, and offsets.

An offset has the admitted entries of every link, and the time of admission. It counts entries of
the journal, so that the same offsets always stand for the same splits. In a checkpoint
it is plain JSON. `file_link` and `generator_link` are links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from terascope.connectors.live.growth import Cuts
from terascope.connectors.live.journal import Found, LinkJournal
from terascope.connectors.registry import Interface

Seen = Mapping[str, tuple[int, int]]
"""Column -> the smallest and largest value admitted so far."""


@dataclass(frozen=True)
class LinkOffset:
    count: int = 0
    """Entries of its journal that are admitted."""
    quiet_ns: int | None = None
    """Every tuple older than this has been admitted; None when that cannot be said yet."""
    seen: Seen = field(default_factory=dict)
    """The bounds of the integer columns that have bounds in all admitted splits."""
    begun: bool = False
    """Whether a split with tuples was admitted: without one, nothing seen says nothing."""
    is_replay: bool | None = None
    """Whether it keeps its own clock, because that is far from the one on the wall; None: its first
    tuples have not come yet. A batch that is run again has the same answer, for it stands here."""
    alive_ns: int | None = None
    """The last time it could be read; of a replay, that it gave something."""
    is_away: bool = False
    """It cannot be read: its watermark stands still."""
    is_left_behind: bool = False
    """It was away or, as a replay, silent for longer than the liveness limit: the wall clock moves
    its watermark, so that the sources that are combined with it go on."""


@dataclass(frozen=True)
class Offset:
    links: Mapping[str, LinkOffset]
    tick: int = 0
    """Heartbeats of the clock; it moves when nothing else does."""
    now_ns: int = 0
    ended: bool = False
    """Nothing more can come."""
    arrived_ns: int = 0
    """The arrival time of the tuples since the offset before: by the wall clock, but never before
    earlier arrivals."""

    @staticmethod
    def initial(names: Iterable[str]) -> Offset:
        return Offset({name: LinkOffset() for name in names})

    def link(self, name: str) -> LinkOffset:
        """The offset of a link; its start when the offset does not contain it."""
        return self.links.get(name, LinkOffset())

    def to_json(self) -> dict[str, Any]:
        links = {name: {**vars(link), "seen": dict(link.seen)} for name, link in self.links.items()}
        return {**vars(self), "links": links}

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Offset:
        links = {}
        for name, link in held["links"].items():
            seen = {column: (low, high) for column, (low, high) in link["seen"].items()}
            links[name] = LinkOffset(**{**link, "seen": seen})
        return Offset(**{**held, "links": links})


@dataclass(kw_only=True)
class Link(ABC):
    """One source that is looked at again and again."""

    interface: Interface
    cuts: Cuts
    journal: LinkJournal
    spool: Path
    """The folder of files that the link writes."""
    now: Callable[[], int]
    stalled: str | None = None
    """Why it cannot be read, or not to its end."""
    exhausted: bool = False
    """Nothing more can come."""
    holds_back: bool = False
    """Something is there that cannot be read yet: the link is not known to be quiet."""
    grown_ns: int | None = None

    @property
    def frontier_ns(self) -> int | None:
        """The least time of data that was not found yet; None when it is unknown."""
        return None

    @property
    def files(self) -> int:
        return len(self.journal.files)

    @abstractmethod
    def look(self, reading: int | None, ahead: int) -> Iterator[Found | str]:
        """The data until `reading`; a path alone is a file that is gone for good. `ahead` entries
        are pending already.
        """

    @abstractmethod
    def marks(self) -> dict[str, int]:
        """Facts that a restart needs besides the journal of the link."""

    @abstractmethod
    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on after a restart."""

    @abstractmethod
    def release(self) -> None:
        """Entries are committed: delete the files that only they needed."""


@dataclass(frozen=True)
class LinkState:
    """The state of a link, for status and metrics."""

    name: str
    backlog_bytes: int
    backlog_splits: int
    files: int
    stalled: str | None
    grown_ns: int | None
    """When it grew last, by the clock on the wall."""
