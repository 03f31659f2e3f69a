"""The file that a path meant when its splits were made, and whether it is still there, unchanged.

A batch reads files that must not change: a `Version` (device, inode, time, size, digest of both
ends) travels as an option of every split, and reading fails when the file was overwritten, cut
short or replaced, also while it was read. Appended bytes do no harm: the splits end before them. A
copy of the file on another machine is the same file.

A stream follows files that are replaced, rotated and cut back: an *identity* (device, inode, digest
of the first bytes) finds a log under the name it was given by a rotation. A log that is copied and
truncated keeps its inode, but not its first bytes.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from terascope.diagnostic import SourceError

VERSION_OPTION: Final = "#version"
"""The option of a split of a batch that holds the version of its file."""
ENDS_BYTES: Final = 1024
FILE_OPTION: Final = "#file"
"""The option of a split of a stream that holds the identity of its file."""
HEAD_BYTES: Final = 1024


@dataclass(frozen=True)
class Version:
    """A file at one time."""

    machine: str
    device: int
    inode: int
    mtime_ns: int
    size: int
    ends: str
    """A digest of the first bytes, and of the last ones."""

    def __str__(self) -> str:
        return ":".join(map(str, astuple(self)))

    @staticmethod
    def parse(text: str) -> Version:
        machine, device, inode, mtime_ns, size, ends = text.split(":")
        return Version(machine, int(device), int(inode), int(mtime_ns), int(size), ends)

    def is_same(self, now: Version) -> bool:
        """Whether a file that has become `now` still holds the same bytes."""
        if now.size < self.size or now.ends != self.ends:
            return False
        if self.machine != now.machine:
            return True
        if (self.device, self.inode) != (now.device, now.inode):
            return False
        # What is written anew, and not appended to, has another time and no more bytes.
        return now.size > self.size or now.mtime_ns == self.mtime_ns


def version_of(path: Path, size: int | None = None) -> Version:
    """The file that is at a path now. `size`: how long it was when its ends were looked at."""
    with path.open("rb", buffering=0) as file:
        held = os.fstat(file.fileno())
        whole = held.st_size if size is None else size
        head = file.read(min(ENDS_BYTES, whole))
        file.seek(max(whole - ENDS_BYTES, 0))
        tail = file.read(min(ENDS_BYTES, whole))
    ends = hashlib.blake2b(head + tail, digest_size=8).hexdigest()
    return Version(machine(), held.st_dev, held.st_ino, held.st_mtime_ns, held.st_size, ends)


def machine() -> str:
    """The identity of this machine, as far as it is known."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def check_unchanged(
    path: Path, planned: str | None, before: Version | None = None
) -> Version | None:
    """The file as it is now; None: no version of it was planned, or it is gone or cannot be read,
    which its reader sees, too.

    Raises:
        SourceError: it is not what it was when the batch was planned, or `before` it was read.
    """
    if planned is None:
        return None
    known = Version.parse(planned)
    try:
        now = version_of(path, known.size)
    except OSError:
        return None
    if not known.is_same(now) or (before is not None and not before.is_same(now)):
        raise SourceError(
            f"'{path}' was overwritten, replaced or cut short while it was read; run again when"
            " nobody writes to it, or read a copy"
        )
    return now


def identity_of(path: Path, most: int = HEAD_BYTES) -> str:
    """The identity of the file that is at a path now, by its first `most` bytes."""
    with path.open("rb") as file:
        held = os.fstat(file.fileno())
        head = file.read(most)
    digest = hashlib.blake2b(head, digest_size=8).hexdigest()
    return f"{held.st_dev}:{held.st_ino}:{len(head)}:{digest}"


def likeness(path: Path, identity: str) -> tuple[bool, bool]:
    """Whether a path is the file of an identity, and whether it begins as that file did; appended
    bytes do not matter.
    """
    try:
        now = identity_of(path, int(identity.split(":")[2]))
    except OSError:
        return False, False
    return now == identity, now.split(":")[2:] == identity.split(":")[2:]


def found_again(path: Path, identity: str) -> Path | None:
    """The present path of a file in its folder; None when it is not there any more. A copy that was
    put back at its path, or a device that was mounted again, counts as the file.
    """
    same, alike = likeness(path, identity)
    if same:
        return path
    number = int(identity.split(":")[1])
    try:
        with os.scandir(path.parent) as entries:
            numbered = [Path(e.path) for e in entries if e.inode() == number and e.is_file()]
    except OSError:
        return None
    renamed = next((one for one in numbered if likeness(one, identity)[0]), None)
    return renamed if renamed is not None or not alike else path
