"""The state of a stream after a micro-batch: enough to resume in another process.

In: made by the driver when a batch is done. Out: one file of JSON per batch, `NNNNNN.json`, put in
place by rename: the batch is done when the file is there. It names the offset at which the batch
ended, so that a batch that Spark runs again is recognised; the watermarks of the sources; the
segments of the slice store that are needed; and the value up to which each query was released. The
state before it is kept, because Spark may run the newest batch again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from terascope.connectors.live import Offset
from terascope.diagnostic import OutputError, StreamError, as_mistake
from terascope.files import make_folder, open_file
from terascope.physical.stream.slice_streams import SliceValue
from terascope.streaming.state.runs import put
from terascope.streaming.state.segments import Segment

KEPT: Final = 3
"""The number of states that stay: the newest, and those that a repeated batch may start from."""
VERSION: Final = 1
"""The version of the form of a state."""


@dataclass
class InterfaceReport:
    """The tuples of one interface: those that a task read, or all so far."""

    tuples: int = 0
    bytes: int = 0
    late: int = 0
    malformed: dict[str, int] = field(default_factory=dict)
    largest: dict[str, SliceValue] = field(default_factory=dict)
    """The largest value of each ordered column, over all tuples, taken by a query or not."""
    smallest: dict[str, SliceValue] = field(default_factory=dict)
    disorder: dict[str, SliceValue] = field(default_factory=dict)
    """The most that a tuple came behind a later one, by column."""
    late_streams: dict[str, int] = field(default_factory=dict)
    """The tuples that came after their slice of a stream was closed, by the key of the stream."""
    late_behind: dict[str, SliceValue] = field(default_factory=dict)
    """The most that a late tuple was behind the end of a closed slice, by column."""
    skipped_bytes: int = 0
    """Bytes of damaged input that were skipped."""
    files: dict[str, str] = field(default_factory=dict)
    """Path -> reason, of the last files that could not be used, or not to their end."""


@dataclass
class Seen(InterfaceReport):
    """All tuples of one interface so far, and its signs of life."""

    quiet_ns: int | None = None
    """All tuples older than this, by the clock, have come."""
    arrived_ns: int = 0
    """No tuple arrives before this any more."""
    late_smallest: dict[str, SliceValue] = field(default_factory=dict)
    """The smallest value of each column in the last batch with late tuples."""
    passed: dict[str, SliceValue] = field(default_factory=dict)
    """The watermarks of partners that went on without this source; clocks have none."""
    left_ns: int | None = None
    """The time to which the clock moved its watermark while other sources went on without it."""
    last_tuple_ns: int | None = None
    """The time of its last tuple, by the clock of the run."""


def keep(
    known: dict[str, Any],
    new: Mapping[str, Any],
    chosen: Callable[[Any, Any], Any],
    start: Any = None,
) -> None:
    """Combine new values with known ones, by name. `start`: the known value where there is none;
    None: the new one.
    """
    for name, value in new.items():
        known[name] = chosen(known.get(name, value if start is None else start), value)


@dataclass
class StreamProgress:
    until: SliceValue | None = None
    """All slices before this one were released; None: none yet."""
    bounds: list[SliceValue | None] = field(default_factory=list)
    """The same for each part of the release of a query that Spark computes."""
    since: SliceValue | None = None
    """The first whole slice; None: whole from the beginning."""
    kept_from: SliceValue | None = None
    """Rows before this value are gone from the store."""
    ended: bool = False
    goes_on: bool = False
    """Whether it replaced other slices that windows contain as well: from `since` on for a later
    query, without a gap for all others."""

    def lows(self, parts: int) -> list[SliceValue | None]:
        """The value at which each part resumes."""
        return [*self.bounds[:parts], *[None] * (parts - len(self.bounds))]


@dataclass
class StreamState:
    """The state of a running set after a batch."""

    batch: int = -1
    version: int = VERSION
    offset: Mapping[str, Any] | None = None
    """The offset at which the batch ended, in Spark's form."""
    destinations: int = 1
    seen: dict[str, Seen] = field(default_factory=dict)
    streams: dict[str, StreamProgress] = field(default_factory=dict)
    """The progress of each low-level stream, by its key."""
    queries: dict[str, StreamProgress] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    closed: dict[str, list[tuple[str, SliceValue, str, bool]]] = field(default_factory=dict)
    """The closed columns of each interface (terascope.streaming.sources)."""
    texts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The description of each query (resume.py); a changed query begins anew."""
    layouts: dict[str, list[str]] = field(default_factory=dict)
    """The columns of segments, by the name of their layout."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    """The columns of each low-level stream, by its key."""
    starts: dict[str, SliceValue] = field(default_factory=dict)
    """The first whole slice of each query that tasks write and that came later."""
    schemas: dict[str, Any] = field(default_factory=dict)
    """The columns that were read of each interface."""
    partitions: dict[str, Any] = field(default_factory=dict)
    """The partitions of each source that has any: stored groups are in the tasks that own them."""
    parameters: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    """Internal streams that are emitted because `tail` follows them."""
    ended: bool = False
    peak_bytes: int = 0
    """The most bytes that one batch put into the store."""

    def partials(self, stream: str) -> list[Segment]:
        """The segments with the partial groups of a stream, by its key."""
        return [s for s in self.segments if s.stream == stream and s.kind == "groups"]

    def to_text(self) -> str:
        return json.dumps(self, default=vars)

    @staticmethod
    def of_text(text: str) -> StreamState:
        """The state of a JSON text.

        Raises:
            OutputError: another version of Terascope wrote it.
        """
        known = json.loads(text)
        if known.get("version") != VERSION:
            raise OutputError(
                "another version of Terascope wrote the state of this checkpoint: begin anew with"
                " another --checkpoint"
            )
        known["seen"] = {name: Seen(**one) for name, one in known["seen"].items()}
        for which in ("streams", "queries"):
            known[which] = {name: StreamProgress(**one) for name, one in known[which].items()}
        known["segments"] = [Segment(*one) for one in known["segments"]]
        return StreamState(**known)

    def copy(self) -> StreamState:
        return StreamState.of_text(self.to_text())


class StateFolder:
    """The states of a run.

    Raises:
        OutputError: a state cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, state: StreamState) -> None:
        make_folder(self.folder)
        path = self._path(state.batch)
        temporary = path.with_suffix(".part")  # whoever comes later writes over it
        with as_mistake(OutputError, f"cannot write the state to '{self.folder}'"):
            with open_file(temporary, "wb") as file:
                file.write(state.to_text().encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)

    def intend(self, batch: int, offset: Mapping[str, Any], until: Mapping[str, Any]) -> None:
        """Save the values up to which a batch releases streams, before its first row is emitted: a
        repeated batch, with other tasks or another memory, must release the same.
        """
        try:
            put(self._intent(batch), {"offset": dict(offset), "until": dict(until)})
        except StreamError as problem:
            raise OutputError(str(problem)) from problem

    def intended(self, batch: int, offset: Mapping[str, Any]) -> dict[str, Any]:
        """The intended values by the key of a stream; empty when the batch did not come so far."""
        try:
            told = json.loads(self._intent(batch).read_bytes())
        except (OSError, ValueError):
            return {}
        return dict(told["until"]) if told["offset"] == offset else {}

    def _intent(self, batch: int) -> Path:
        return self.folder / f"intent-{batch:09d}.json"

    def load(self, batch: int) -> StreamState | None:
        path = self._path(batch)
        if not path.exists():
            return None
        return StreamState.of_text(path.read_text(encoding="utf-8"))

    def batches(self) -> list[int]:
        """The batches with a state, in order."""
        if not self.folder.is_dir():
            return []
        return sorted(
            int(p.stem) for p in self.folder.glob("*.json") if p.stem.lstrip("-").isdigit()
        )

    def newest(self, at_most: int | None = None) -> StreamState | None:
        """The newest state, or the newest that is not after a batch."""
        known = [b for b in self.batches() if at_most is None or b <= at_most]
        return self.load(known[-1]) if known else None

    def at(self, offset: Mapping[str, Any]) -> StreamState | None:
        """The newest state of a batch that ended at an offset."""
        for batch in reversed(self.batches()):
            state = self.load(batch)
            if state is not None and state.offset == offset:
                return state
        return None

    def prune(self) -> list[StreamState]:
        """Remove states that are no longer needed, and return the others, oldest first."""
        batches = self.batches()
        for batch in batches[:-KEPT]:
            self._path(batch).unlink(missing_ok=True)
            self._intent(batch).unlink(missing_ok=True)
        return [s for b in batches[-KEPT:] if (s := self.load(b)) is not None]

    def _path(self, batch: int) -> Path:
        return self.folder / f"{batch:09d}.json"


def remove_unneeded(folder: Path, kept: list[StreamState], since: float) -> None:
    """Remove the files of the store in which no state has a segment, unless they are younger than
    `since`: another attempt may be writing them.
    """
    needed = {segment.file for state in kept for segment in state.segments}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in needed and path.stat().st_mtime < since:
            path.unlink(missing_ok=True)


def packed_offset(offset: Offset) -> dict[str, str]:
    """The offset in plain values, which Spark needs; it compares offsets by their text."""
    return {"at": json.dumps(offset.to_json(), sort_keys=True)}


def unpacked_offset(packed: Mapping[str, str]) -> Offset:
    return Offset.from_json(json.loads(packed["at"]))
