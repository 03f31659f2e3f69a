"""Spark's classes as an archive that the JVM maps instead of loading them one by one.

In: the Java and the Spark of this installation. Out: options for the JVM. Starting Spark loads
fifteen thousand classes from 280 jars; from an archive that takes less than half of the time. It
is made once, by `terascope.training`: when Terascope is installed, or in the background after the
first run. Java itself checks that an archive fits its version and its jars, and does without one
that does not.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pyspark

from terascope.files import is_ours, private_cache

SWITCH: Final = "TERASCOPE_CLASS_ARCHIVE"
"""An environment variable; `off`: no archive is used or made."""
TRAINING: Final = "terascope.training"
UNUSED_DAYS: Final = 60
PATIENCE_SECONDS: Final = 900
"""The time after which an unfinished archive is abandoned."""
QUIET: Final = "-Xlog:disable"
"""The option that keeps Java from printing that an archive does not fit."""


def archive_options(java: Path) -> str:
    """The JVM options for the archive; empty when there is no trusted one."""
    path = archive_path(java)
    if path is None or not is_file_of_ours(path):
        return ""
    return f"{QUIET} -XX:SharedArchiveFile={path}"


def archive_path(java: Path) -> Path | None:
    """The path of the archive of this Java and this Spark; None: there is no place for it."""
    folder = private_cache("classes")
    # Options of the JVM are cut at spaces.
    if os.environ.get(SWITCH) == "off" or folder is None or set(str(folder)) & set(" ,;'\"\\"):
        return None
    try:
        known = java.resolve(strict=True)
        seen = known.stat()
    except OSError:
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    what = f"{pyspark.__version__} {jars} {known} {seen.st_size} {seen.st_mtime_ns}"
    return folder / f"spark-{hashlib.sha256(what.encode()).hexdigest()[:16]}.jsa"


def is_file_of_ours(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and is_ours(path)


def java_program(home: Path | None) -> Path | None:
    """The Java that Spark's scripts will start."""
    chosen = str(home) if home is not None else os.environ.get("JAVA_HOME")
    found = f"{chosen}/bin/java" if chosen else shutil.which("java")
    return None if found is None else Path(found)


# ---- making it -----------------------------------------------------------------------------------


def make_later(java: Path) -> None:
    """Make the archive in a background process when this process ends, unless it exists or is being
    made.
    """
    path = archive_path(java)
    if path is not None and not path.exists() and not is_being_made(path):
        atexit.register(start_making)


def start_making() -> None:
    subprocess.Popen(
        [sys.executable, "-m", TRAINING],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip


def is_being_made(path: Path) -> bool:
    """Whether another process makes the archive, or tried a while ago."""
    try:
        begun = claim_of(path).stat().st_mtime
    except OSError:
        return False
    return time.time() - begun < PATIENCE_SECONDS


def claim(path: Path) -> bool:
    """Claim the making of the archive; False when another process has."""
    if is_being_made(path):
        return False
    claim_of(path).unlink(missing_ok=True)
    try:
        claim_of(path).touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True


def claim_of(path: Path) -> Path:
    return path.with_suffix(".making")


def take(new: Path, path: Path) -> bool:
    """Put a finished archive in place, and remove archives that were unused for long. The claim
    stays if there is none, so that a failure is not repeated at every run.
    """
    if not new.exists() or not new.stat().st_size:
        return False
    new.replace(path)
    claim_of(path).unlink(missing_ok=True)
    for other in path.parent.glob("spark-*.jsa*"):
        if other != path and time.time() - other.stat().st_atime > UNUSED_DAYS * 86400:
            other.unlink(missing_ok=True)
    return True
