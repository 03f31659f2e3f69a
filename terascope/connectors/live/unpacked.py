"""Gzip files unpacked for a paced replay: a packed file can only be read as a whole, which has no
pace.

In: a gzip file. Out: a copy in the spool folder, with the same positions of tuples; None when the
stream is damaged, so that its reader reports it.
"""

from __future__ import annotations

import os
from pathlib import Path

from terascope.connectors.base import ReadReport
from terascope.connectors.file_bytes import NO_END, is_gzip, read_chunks
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
    report = ReadReport()
    with open_file(partial, "wb") as target:
        target.writelines(read_chunks(path, 0, NO_END, report))
        target.flush()
        os.fsync(target.fileno())
    if report.malformed:
        partial.unlink()
        return None
    return partial.replace(copy)
