"""The interface of a link: one source that is polled again and again, and its state.

`file_link` and `generator_link` are links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from terascope.connectors.live.entry import Found


class Link(Protocol):
    """One source that is looked at again and again."""

    stalled: str | None
    """Why it cannot be read, or not to its end."""
    exhausted: bool
    """Nothing more can come."""
    holds_back: bool
    """Something is there that cannot be read yet: the link is not known to be quiet."""
    grown_ns: int | None

    @property
    def frontier_ns(self) -> int | None:
        """The least time of data that was not found yet; None when it is unknown."""
        ...

    @property
    def files(self) -> int:
        """The number of known files."""
        ...

    def look(self, reading: int | None, ahead: int) -> Iterator[Found | str]:
        """The data until `reading`; a path alone is a file that is gone for good. `ahead` entries
        are pending already.
        """
        ...

    def marks(self) -> dict[str, int]:
        """Facts that a restart needs besides the journal of the link."""
        ...

    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on after a restart."""
        ...

    def release(self) -> None:
        """Entries are committed: delete the files that only they needed."""
        ...


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
