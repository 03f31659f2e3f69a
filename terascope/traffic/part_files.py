"""Files that are complete or not there: written under another name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths to write to instead of `files`, which they replace when the block ends well."""
    parts = [path.with_name(f".{path.name}.{os.getpid()}.part") for path in files]
    try:
        yield parts
        for part, path in zip(parts, files, strict=True):
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
