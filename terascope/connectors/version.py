"""Whether a file is still what it was when a batch was planned: its splits are cut from that.

In: a path. Out: a version, which travels as an option of its splits, and an error for a file that
was overwritten, cut short or replaced meanwhile, also while it is being read. What is appended does
no harm: the splits end before it. A copy of the file on another machine is the same file.
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

    def told(self) -> str:
        return ":".join(map(str, astuple(self)))

    @staticmethod
    def of(told: str) -> Version:
        machine, device, inode, mtime_ns, size, ends = told.split(":")
        return Version(machine, int(device), int(inode), int(mtime_ns), int(size), ends)

    def is_same(self, now: Version) -> bool:
        """Whether a file that has become `now` still holds what it held."""
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
    """Which machine this is, as far as it is known."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def check_unchanged(path: Path, planned: str, before: Version | None = None) -> Version | None:
    """The file as it is now; None: it is gone, or cannot be read, which its reader sees, too.

    Raises:
        SourceError: it is not what it was when the batch was planned, or `before` it was read.
    """
    known = Version.of(planned)
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
