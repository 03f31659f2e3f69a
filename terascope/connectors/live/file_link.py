"""A link of files: a file that grows, or a directory or pattern in which files appear.

In: an interface. Out, at every look: what was found of each file, to be written to the journal.
Files found at once are numbered in the order of their paths, those found later go on from there;
so with all files there from the start they are numbered as a batch numbers them.

An incomplete record at the end of a file stays pending until a later file is there and this one has
stopped growing, or until the run ends because it is idle. A file of a folder that cannot be read is
tried again for a while, then counted and named; it is read after all once that is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from terascope.connectors.base import FileFault, UnusableFile, find_files
from terascope.connectors.file_identity import found_again, identity_of
from terascope.connectors.live.followed import Followed, unpacked
from terascope.connectors.live.growth import growth_of
from terascope.connectors.live.journal import FileState, Found
from terascope.connectors.live.link import Link
from terascope.diagnostic import SourceError

SETTLED_NS: Final = 1_000_000_000
"""The time without growth after which a file with a later one beside it is finished."""
PATIENCE_NS: Final = 10_000_000_000
"""The time after its growth in which an incomplete record keeps a link from being quiet."""


@dataclass
class Looked:
    """The state of a file at the last look."""

    size: int
    settled: bool
    final: bool
    since_ns: int
    """The time at which a look first found this size."""
    torn: str | None = None
    is_unreadable: bool = False
    """Whether the file could not be opened: the next look tries again."""


Replaced = Mapping[str, Path | None]
"""Paths that now belong to another file -> the present path of the file; None when it is gone."""


@dataclass(kw_only=True)
class FileLink(Link):
    """Files of one interface, followed or replayed. A paced replay unpacks gzip files to its spool
    folder. A link of files is exhausted when the last look found nothing, and nothing is to be
    expected.
    """

    _looked: dict[str, Looked] = field(default_factory=dict)
    _planned: bool = False
    _device: int | None = None
    """The file system that files were found on."""

    @property
    def replayed(self) -> bool:
        """Whether the existing data is all that will come."""
        return self.settings.speed is not None

    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on after a restart: a replay that was planned has nothing more to find."""
        self._planned = self.exhausted = self.replayed and self._mark in marks

    def marks(self) -> dict[str, int]:
        return {self._mark: 1} if self._planned else {}

    @property
    def _mark(self) -> str:
        return f"planned {self.interface.name}"

    def look(self, reading: int | None) -> Iterator[Found | str]:
        if self._planned:
            return
        self.stalled = None
        found_any = False
        try:
            present = self._present()
            replaced = self._replaced(present)
            yield from self._missing(present, replaced)
            for rest in self._rests(present, replaced):
                found_any = True
                yield rest
            for state in self._numbered(present, replaced):
                found = self._look_at(state, present[state.path])
                if found is not None:
                    found_any |= bool(found.entries)
                    yield found
        except SourceError as reason:
            self.stalled = str(reason)
        except OSError as reason:
            self.stalled = f"cannot read '{self.interface.location}': {reason.strerror or reason}"
        self._planned = self.replayed and self.stalled is None
        settled = all(look.settled and look.final for look in self._looked.values())
        idle = (settled and not found_any) or self.stalled is not None
        self.exhausted = self._planned or (idle and (self.settings.until_idle or self.replayed))
        incomplete = ((path, look.torn) for path, look in self._looked.items())
        torn = next((f"'{path}': {reason}" for path, reason in incomplete if reason), None)
        # A file that grew so recently may complete its last record.
        is_patient = self.grown_ns is not None and self.now() - self.grown_ns < PATIENCE_NS
        is_pending = torn is not None and is_patient
        self.holds_back = self.stalled is not None or is_pending
        if self.stalled is None and torn is not None and not is_pending:
            self.stalled = torn

    def release(self) -> None:
        """Entries are committed: remove copies that are no longer needed."""
        if self.settings.piece_ns is None or not self.spool.exists():
            return
        needed = {entry.split.path for entry in self.journal.entries}
        for copy in self.spool.iterdir():
            if str(copy) not in needed:
                copy.unlink(missing_ok=True)

    def _present(self) -> dict[str, int]:
        """The files of the location and their sizes, in order of path."""
        suffixes = self.interface.connector.suffixes
        try:
            found = find_files(self.interface.location, suffixes)
        except SourceError:
            if self.replayed:
                raise
            self._check_folder()
            found = []  # they may come
        else:
            self._device = device_of(self.interface.location)
        return {str(path): path.stat().st_size for path in (p.absolute() for p in found)}

    def _check_folder(self) -> None:
        """A folder without files is a silent source; one that is not there is none at all.

        Raises:
            SourceError: the folder is not there, or something else is in its place.
        """
        location = self.interface.location
        device = device_of(location)
        if device is None:
            was_there = self.journal.next_ordinal > 0
            raise SourceError(f"'{location}' is {'gone' if was_there else 'not there'}")
        if self._device is not None and device != self._device:
            raise SourceError(
                f"'{location}' is empty, and on another file system than before: is it unmounted?"
            )

    def _replaced(self, present: Mapping[str, int]) -> Replaced:
        """Paths at which another file is than before: rotated, overwritten, or begun anew."""
        found: dict[str, Path | None] = {}
        for path, state in self.journal.files.items():
            if path not in present or not state.identity:
                continue
            now = found_again(Path(path), state.identity)
            if now != Path(path):
                self._looked.pop(path, None)
                found[path] = now
        return found

    def _rests(self, present: Mapping[str, int], replaced: Replaced) -> Iterator[Found]:
        """Data that was written to files before they were renamed, and was not found then."""
        for path, now in replaced.items():
            state = self.journal.files[path]
            if now is None or str(now) in present or state.closed:
                continue
            state = replace(state, path=str(now))
            found = growth_of(Followed(self, state, now.stat().st_size, True, True, True))
            if found.entries:
                yield Found(FileState(path, self._following(replaced, path)), found.entries)

    def _following(self, replaced: Replaced, path: str) -> int:
        """The number of the file that has taken the place of another."""
        return self.journal.next_ordinal + list(replaced).index(path)

    def _missing(self, present: Mapping[str, int], replaced: Replaced) -> Iterator[str]:
        """Files that are gone: the journal drops them if they were read; else the link stalls.

        Raises:
            SourceError: a file is gone or has shrunk that was to be read.
        """
        location = str(Path(self.interface.location).absolute())
        for path, state in tuple(self.journal.files.items()):
            if path in replaced:
                continue
            if path in present:
                if state.position > present[path]:
                    raise SourceError(f"'{path}' is shorter than what was read of it")
                if state.closed and 0 < state.position < present[path]:
                    raise SourceError(f"'{path}' was complete, and has grown since")
            elif path == location or self.journal.is_pending(path):
                raise SourceError(f"'{path}' is gone")
            else:
                self._looked.pop(path, None)
                yield path

    def _numbered(self, present: Mapping[str, int], replaced: Replaced) -> list[FileState]:
        """All files in order of their numbers; new ones have the next. A file that has another name
        now is the same file.
        """
        known = self.journal.files
        states = [s for path, s in known.items() if path in present and path not in replaced]
        states += [
            replace(known[path], path=str(now))
            for path, now in replaced.items()
            if str(now) in present and str(now) not in known
        ]
        taken = {*known, *(state.path for state in states)}
        new = [path for path in present if path not in taken]
        following = self.journal.next_ordinal
        states += [FileState(path, following + k) for k, path in enumerate([*replaced, *new])]
        return sorted(states, key=lambda state: state.ordinal)

    def _look_at(self, state: FileState, size: int) -> Found | None:
        look = self._next_look(state, size)
        before = self._looked.get(state.path)
        if state.closed and size == state.position:
            self._looked[state.path] = look
            return None
        if before is not None and before == replace(look, torn=before.torn):
            return None
        ended = self.replayed or (self.settings.until_idle and look.final)
        file = Followed(self, state, size, look.settled, look.final, ended)
        if self.settings.piece_ns is not None:
            copy = unpacked(file.path, state.ordinal, self.spool)
            if copy is not None:
                return self._look_at_copy(file, copy)
        try:
            identity = identity_of(file.path)
            found = growth_of(replace(file, state=replace(state, identity=identity)))
        except (UnusableFile, OSError) as reason:
            if self.interface.names_file:
                raise
            return self._unreadable(file, look, reason)
        self._looked[state.path] = replace(look, torn=found.torn)
        changed = found.file != self.journal.files.get(state.path)
        return found if found.entries or changed else None

    def _unreadable(self, file: Followed, look: Looked, reason: Exception) -> Found | None:
        """A file of a folder that cannot be read: it may not have its permissions yet. Later it is
        one split, whose reader counts and names it.
        """
        path, state = file.path, file.state
        if not path.exists():
            return None
        before = self._looked.get(state.path)
        since = before.since_ns if before is not None and before.is_unreadable else look.since_ns
        is_counted = state.closed
        is_over = file.ended or self.now() - since >= PATIENCE_NS
        torn = None if is_counted or is_over else unreadable_text(reason)
        self._looked[state.path] = replace(look, since_ns=since, torn=torn, is_unreadable=True)
        if is_counted or not is_over:
            return None
        fault = self.interface.fault(path) or FileFault.UNREADABLE
        return file.unusable(fault, 0)

    def _look_at_copy(self, file: Followed, copy: Path) -> Found:
        """A packed file, by the entries of its unpacked copy."""
        state = replace(file.state, path=str(copy), identity="")
        found = growth_of(replace(file, state=state, size=copy.stat().st_size))
        self._looked[file.state.path] = Looked(file.size, True, True, self.now())
        return Found(replace(file.state, position=file.size, closed=True), found.entries)

    def _next_look(self, state: FileState, size: int) -> Looked:
        """The facts about a file before it is read."""
        before = self._looked.get(state.path)
        if before is None or before.size != size:
            self.grown_ns = self.now()
            return Looked(size, False, self.replayed, self.grown_ns)
        is_followed = self.journal.next_ordinal > state.ordinal + 1
        finished = is_followed and self.now() - before.since_ns >= SETTLED_NS
        return Looked(
            size, True, self.replayed or self.settings.until_idle or finished, before.since_ns
        )


def unreadable_text(reason: Exception) -> str:
    """Why a file cannot be read, in the words of the system where it has any."""
    cause = reason if isinstance(reason, OSError) else reason.__cause__
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(reason)
    return f"it cannot be read: {why[:1].lower()}{why[1:]}"


def device_of(location: str) -> int | None:
    """The file system of a file or folder, or of the folder a pattern begins with; None: there is
    no such place.
    """
    path = Path(location)
    for part in (path, *path.parents):
        if part is not path and not any(c in path.relative_to(part).parts[0] for c in "*?["):
            continue
        try:
            return part.stat().st_dev
        except (FileNotFoundError, NotADirectoryError):
            continue
    return None
