"""Files and folders that Terascope makes: their names and their modes.

In: the name of a query, or a path. Out: a file name that stays inside its folder whatever the query
is called; folders and files that only their owner may enter and read. A result may be opened to
others (`outputs = "shared"`); state, slices, journals and control files never are.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, cast
from urllib.parse import quote

SAFE: Final = " @+=,()[]{}"
"""Characters of a query's name that its file has, too; others are written as %XX."""

LONGEST_NAME: Final = 200
"""Bytes of an escaped name: a file system takes 255, and endings are added."""

RESERVED_ENDINGS: Final = (".manifest", ".manifest.json", "#shown")
"""Endings of names that Terascope gives to files and streams of its own."""

PART: Final = re.compile(r"part-[0-9a-f]{32}\.(?:parquet|csv|ndjson)")

PRIVATE: Final = 0o600
"""The mode of a file that only its owner reads."""


# ---- names ---------------------------------------------------------------------------------------


def escaped(query: str) -> str:
    """The name of a query as the name of a file or folder: never hidden, never a way out."""
    name = quote(query, safe=SAFE)
    return "%2E" + name[1:] if name.startswith(".") else name


def name_problem(query: str) -> str | None:
    """Why no query may be called so; None when the name is fine."""
    if not query:
        return "it is empty"
    if query in (".", ".."):
        return "it is the name of a folder"
    if query.startswith("."):
        return "it begins with a dot, as hidden files do"
    for ending in RESERVED_ENDINGS:
        if query.endswith(ending):
            return f"names that end in '{ending}' are reserved"
    if len(escaped(query)) > LONGEST_NAME:
        return f"as the name of a file it has more than {LONGEST_NAME} bytes"
    return None


def is_part(path: Path) -> bool:
    """Whether a file has a name that only parts of results have; no other file is ever removed."""
    return PART.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()


# ---- who may read them ---------------------------------------------------------------------------


def output_mode(shared: bool) -> int:
    """The mode of result files: private, or as the umask of this process allows."""
    return 0o666 & ~current_umask() if shared else PRIVATE


def current_umask() -> int:
    """The umask of this process. Linux shows it; elsewhere it can only be read by setting it."""
    with suppress(OSError, IndexError, ValueError):
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(lines.partition("Umask:")[2].split()[0], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def folder_mode(file_mode: int) -> int:
    """The mode of a folder with files of this mode: readers of the files may enter it."""
    return file_mode | (file_mode & 0o444) >> 2


def make_folder(folder: Path, file_mode: int = PRIVATE) -> None:
    """Make a folder and the parents it lacks; folders that exist keep their mode.

    Raises:
        OSError: it cannot be made.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent, file_mode)
    try:
        folder.mkdir(folder_mode(file_mode))
    except FileExistsError:
        if not folder.is_dir():
            raise
        return  # another task made it first
    folder.chmod(folder_mode(file_mode))  # the umask of this process may have taken bits away


def open_file(path: Path, how: str, file_mode: int = PRIVATE, buffering: int = -1) -> BinaryIO:
    """Open a binary file for writing; one that is made has this mode.

    Raises:
        OSError: it cannot be opened.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, file_mode)

    # The caller closes it.
    file = cast(BinaryIO, open(path, how, buffering, opener=opener))  # noqa: SIM115
    if how.startswith("x"):
        os.fchmod(file.fileno(), file_mode)
    return file


def set_modes(folder: Path, file_mode: int) -> None:
    """Give everything below a folder that was just written the mode of results."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(folder_mode(file_mode) if path.is_dir() else file_mode)


def is_ours(folder: Path) -> bool:
    """Whether a folder belongs to this user and no other user may write to it."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


CACHE_VARIABLE: Final = "TERASCOPE_KERNEL_FOLDER"
"""Names the folder of caches, if it is not to be that of the user."""


def private_cache(name: str) -> Path | None:
    """A cache folder of that name; None when no folder can be written that is this user's alone.

    Code is loaded from caches: whoever may write to the folder, or put another one in its place,
    could run code as this user.
    """
    given = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME")
    candidates = [Path(given)] if given else []
    candidates.append(Path(home) / "terascope" if home else Path.home() / ".cache" / "terascope")
    candidates.append(Path(tempfile.gettempdir()) / f"terascope-kernels-{os.getuid()}")
    for folder in candidates:
        own = folder / name
        try:
            make_folder(own)
            if is_ours(folder) and is_ours(own) and os.access(own, os.W_OK):
                return own
        except OSError:
            continue
    return None


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to disk: they outlive a power failure then."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
