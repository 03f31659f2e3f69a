"""Retention of results without an output folder: files are kept until the callback has acknowledged
them, and a hundred batches longer for subscribers.

In: the folder of a query, and up to which batch its rows were acknowledged. Out: data files of
older batches are removed, the manifest stays as it is. `removed.json` says up to which batch files
may be gone; it is in place before the first of them goes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from terascope.files import is_part
from terascope.streaming.state.manifest import DeliveredBatch, ManifestReader
from terascope.streaming.state.runs import write_whole

REMOVED: Final = "removed.json"
KEPT_BATCHES: Final = 100


class Retention:
    """Removes the old files of one query."""

    def __init__(self, folder: Path, kept: int = KEPT_BATCHES) -> None:
        self._folder = folder
        self._kept = kept
        self._reader = ManifestReader(folder)
        self._pending: list[DeliveredBatch] = []

    def remove(self, acknowledged: int, newest: int) -> int:
        """Remove the files of acknowledged batches that are older than the batches to keep; returns
        their number.

        Raises:
            StreamError: the manifest is not of its form, or the note cannot be written.
        """
        until = min(acknowledged, newest - self._kept)
        self._pending += [
            entry for entry in self._reader.new() if isinstance(entry, DeliveredBatch)
        ]
        old = [batch for batch in self._pending if batch.number <= until]
        if not old:
            return 0
        last = max(batch.number for batch in old)
        if last > removed_until(self._folder):
            write_whole(self._folder / REMOVED, json.dumps({"until": last}) + "\n")
        files = [self._folder / file.name for batch in old for file in batch.files]
        for path in files:
            if is_part(path):
                path.unlink(missing_ok=True)
        self._pending = [batch for batch in self._pending if batch.number > until]
        return len(files)


def removed_until(folder: Path) -> int:
    """The last batch whose files may be gone; -1: none."""
    try:
        return int(json.loads((folder / REMOVED).read_bytes())["until"])
    except FileNotFoundError:
        return -1
