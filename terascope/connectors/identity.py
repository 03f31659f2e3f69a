"""Which file a path meant: files that are followed are replaced, rotated and cut back meanwhile.

In: a path. Out: an identity, made of the file's number on its device and a digest of its first
bytes, and where the same file is now. A log that is rotated by renaming is found under its new
name; one that is copied and truncated keeps its number, but not its first bytes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

HEAD_BYTES: Final = 1024
FILE_OPTION: Final = "#file"
"""The option of a split that holds the identity of the file it was cut from."""


def identity_of(path: Path, most: int = HEAD_BYTES) -> str:
    """The identity of the file that is at a path now, by its first `most` bytes."""
    with path.open("rb") as file:
        held = os.fstat(file.fileno())
        head = file.read(most)
    digest = hashlib.blake2b(head, digest_size=8).hexdigest()
    return f"{held.st_dev}:{held.st_ino}:{len(head)}:{digest}"


def likeness(path: Path, identity: str) -> tuple[bool, bool]:
    """Whether a path means the file of an identity, and whether one that begins as that file did;
    what was appended does not matter.
    """
    try:
        now = identity_of(path, int(identity.split(":")[2]))
    except OSError:
        return False, False
    return now == identity, now.split(":")[2:] == identity.split(":")[2:]


def found_again(path: Path, identity: str) -> Path | None:
    """Where a file is now, in the folder it was in; None when it is not there any more. A copy that
    was put back at its path, or a device that was mounted again, is taken for the file.
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
