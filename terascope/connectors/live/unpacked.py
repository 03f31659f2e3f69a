"""Gzip files unpacked for a paced replay: a packed file can only be read as a whole, and a whole
file is no pace.

In: a gzip file. Out: a copy in the spool folder, with the same positions of tuples; None when the
stream is damaged, so that reading it tells.
"""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from pathlib import Path

from terascope.connectors.tables.bytes_in import is_gzip
from terascope.files import make_folder, open_file


def unpacked(path: Path, ordinal: int, spool: Path) -> Path | None:
    """The unpacked copy of a file, made when it is not there; None when it is not packed, too."""
    if not is_gzip(path):
        return None
    make_folder(spool)
    copy = spool / f"{ordinal:08}-{path.name.removesuffix('.gz')}"  # .tsv means something
    if copy.exists():
        return copy
    partial = copy.with_name(copy.name + ".part")
    try:
        with gzip.open(path) as source, open_file(partial, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
    except (EOFError, gzip.BadGzipFile, zlib.error):
        partial.unlink(missing_ok=True)
        return None
    return partial.replace(copy)
