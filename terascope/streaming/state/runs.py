"""Finding a run.

In: a run that begins. Out: `CHECKPOINT/terascope/run.json`, which stays when the run is over, and
an entry in the user's state folder, which is removed. With them the commands find the one set that
is running, or ask for the checkpoint. In the same folder the reader of the run saves the last state
of the interfaces (`links.json`), and whether anything can still come (`idle`). Files are put in
place by rename, so that no reader finds half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from terascope.connectors.live import LinkState
from terascope.diagnostic import StreamError, as_mistake, reason_of
from terascope.files import PRIVATE, make_folder, open_file

FOLDER = "terascope"
RUN_FILE = "run.json"
LINKS = "links.json"
IDLE = "idle"
MANIFEST = "manifest.jsonl"


@dataclass(frozen=True)
class Declared:
    """A parameter of the set: the name of its type, and its value when the run began."""

    type: str
    value: str | None


@dataclass(frozen=True)
class Run:
    """A run, as its file describes it. Paths are absolute."""

    pid: int
    port: int
    """The port of its server on 127.0.0.1."""
    set_name: str
    checkpoint: str
    output: str | None = None
    started: float = 0.0
    born: str | None = None
    """The start of the process, as later processes may have its number; None: unknown."""
    streams: Mapping[str, str] = field(default_factory=dict)
    """The folder of each named stream that is written."""
    internal: Mapping[str, str] = field(default_factory=dict)
    """The folder of each named stream that is written only on request."""
    parameters: Mapping[str, Declared] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether its process exists."""
        born = birth(self.pid)
        return born is not None and self.born in (None, "", born)

    def stream_folder(self, name: str) -> Path:
        """The folder with the rows of a named stream.

        Raises:
            StreamError: it has no such stream.
        """
        if name not in self.streams:
            known = ", ".join(sorted([*self.streams, *self.internal])) or "none"
            raise StreamError(f"{self.set_name} has no stream '{name}'; it has: {known}")
        return Path(self.streams[name])

    def to_json(self) -> str:
        return adapter().dump_json(self, indent=2).decode() + "\n"


@cache
def adapter() -> TypeAdapter[Run]:
    return TypeAdapter(Run)


# ---- processes -----------------------------------------------------------------------------------


def birth(pid: int) -> str | None:
    """The start of a process, in the system's own words: None when there is no such process, ""
    where the system does not say.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it is there, and somebody else's
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    # The name of a program may have spaces and brackets; the text after the last one is plain.
    facts = told.rpartition(")")[2].split()
    return None if facts[0] == "Z" else facts[19]


# ---- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run under its checkpoint."""

    path: Path

    @staticmethod
    def of(checkpoint: Path) -> RunFolder:
        return RunFolder(checkpoint.absolute() / FOLDER)

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def slices(self) -> Path:
        return self.path / "slices"

    @property
    def results(self) -> Path:
        """The folder of results when no other one was given."""
        return self.path / "results"

    @property
    def control(self) -> Path:
        return self.path / "control"

    def note_links(self, states: Sequence[LinkState]) -> None:
        """Save the reader's view of the interfaces."""
        put(self.path / LINKS, [asdict(state) for state in states])

    def links(self) -> list[LinkState]:
        """The reader's last view of the interfaces; empty before its first look."""
        try:
            found = json.loads((self.path / LINKS).read_bytes())
        except (OSError, ValueError):
            return []
        return [LinkState(**state) for state in found]

    def note_idle(self, idle: bool) -> None:
        """Save whether the sources have ended, and nothing is left to read."""
        if idle:
            (self.path / IDLE).touch(PRIVATE)
        else:
            (self.path / IDLE).unlink(missing_ok=True)

    @property
    def is_idle(self) -> bool:
        return (self.path / IDLE).exists()


def registry() -> Path:
    """The folder of the user's state where runs are entered."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "terascope" / "runs"


def entry_of(checkpoint: str) -> Path:
    return registry() / f"{hashlib.sha256(checkpoint.encode()).hexdigest()[:16]}.json"


def open_control(folder: Path) -> None:
    """A folder for control requests that only the user of the run, and root, can write to.

    Raises:
        StreamError: it is another user's, or cannot be made.
    """
    with as_mistake(StreamError, f"cannot use '{folder}' for control requests"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(folder):
            folder.chmod(0o700)
    if not is_private(folder):
        raise StreamError(
            f"'{folder}' is not a folder of this user alone, so that others could change the run;"
            " choose another --checkpoint"
        )


def is_private(folder: Path) -> bool:
    """Whether nobody but this user, and root, can write to a folder."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_ours = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
    return is_ours and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def write_whole(path: Path, text: str) -> None:
    """Write a file that is complete when it appears.

    Raises:
        StreamError: it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_folder(path.parent)
        with open_file(beside, "wb") as file:
            file.write(text.encode())
        beside.replace(path)
    except OSError as problem:
        with suppress(OSError):
            beside.unlink(missing_ok=True)  # a full disk needs the room
        raise StreamError(f"cannot write '{path}': {reason_of(problem)}") from problem


def put(path: Path, told: Any) -> None:
    """Write a file of JSON, completely or not at all."""
    write_whole(path, json.dumps(told))


@contextmanager
def announced(run: Run) -> Iterator[Run]:
    """While this context is open, commands find the run; its file stays for readers of results.

    Raises:
        StreamError: another process is running on the checkpoint, or a file cannot be written.
    """
    if run.born is None:
        run = replace(run, born=birth(run.pid))
    try:
        before = run_at(Path(run.checkpoint))
    except StreamError:
        before = None  # a file that tells nothing gives way
    if before is not None and before.is_alive and before.pid != run.pid:
        raise StreamError(
            f"process {before.pid} is running on checkpoint '{run.checkpoint}';"
            " stop it, or take another --checkpoint"
        )
    text = run.to_json()
    entry = entry_of(run.checkpoint)
    folder = RunFolder.of(Path(run.checkpoint))
    open_control(folder.control)
    write_whole(folder.path / RUN_FILE, text)
    write_whole(entry, text)
    try:
        yield run
    finally:
        entry.unlink(missing_ok=True)


def read_run(path: Path) -> Run | None:
    """The run that a file describes; None when there is no such file.

    Raises:
        StreamError: it is not of this form.
    """
    try:
        return adapter().validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValidationError, OSError) as problem:
        raise StreamError(f"cannot read '{path}': it tells of no run") from problem


def run_at(checkpoint: Path) -> Run | None:
    """The run, over or not, of a checkpoint folder."""
    return read_run(RunFolder.of(checkpoint).path / RUN_FILE)


# ---- finding -------------------------------------------------------------------------------------


def running() -> tuple[Run, ...]:
    """All runs of this user that are alive, the oldest first; entries of dead ones are removed."""
    found = []
    for path in sorted(registry().glob("*.json")):
        try:
            run = read_run(path)
        except StreamError:
            run = None
        if run is not None and run.is_alive:
            found.append(run)
        else:
            path.unlink(missing_ok=True)
    return tuple(sorted(found, key=lambda run: (run.started, run.checkpoint)))


def find_run(checkpoint: Path | None = None, over: bool = False) -> Run:
    """The run of a checkpoint or, without one, the only running one. `over`: a run that is over is
    accepted, when the checkpoint is given.

    Raises:
        StreamError: there is none, or there are several.
    """
    if checkpoint is None:
        return only_one(running())
    run = run_at(checkpoint)
    if run is None:
        raise StreamError(f"'{checkpoint}' is no checkpoint of a run: no {FOLDER}/{RUN_FILE} in it")
    if not over and not run.is_alive:
        raise StreamError(
            f"{run.set_name} is not running: process {run.pid} of '{checkpoint}' is gone;"
            " start it again with the same --checkpoint and it goes on where it was"
        )
    return run


def only_one(runs: tuple[Run, ...]) -> Run:
    match runs:
        case ():
            raise StreamError(
                "no set is running; start one with terascope run --stream,"
                " or say where its checkpoint is with --checkpoint DIR"
            )
        case (run,):
            return run
        case _:
            listed = "".join(f"\n  --checkpoint {r.checkpoint}   {r.set_name}" for r in runs)
            raise StreamError(f"{len(runs)} sets are running; say which one:{listed}")
