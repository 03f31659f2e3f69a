"""Results that nobody asked to have: they are kept until whoever reads them has acknowledged them,
and a while longer for those who look on.

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
    """Removes what is old of one query."""

    def __init__(self, folder: Path, kept: int = KEPT_BATCHES) -> None:
        self._folder = folder
        self._kept = kept
        self._reader = ManifestReader(folder)
        self._waiting: list[DeliveredBatch] = []

    def remove(self, acknowledged: int, newest: int) -> int:
        """Remove the files of batches that are acknowledged, and older than the newest by more than
        is kept. Returns how many files those are.

        Raises:
            StreamError: the manifest is not of its form, or the note cannot be written.
        """
        until = min(acknowledged, newest - self._kept)
        self._waiting += [
            entry for entry in self._reader.new() if isinstance(entry, DeliveredBatch)
        ]
        old = [batch for batch in self._waiting if batch.number <= until]
        if not old:
            return 0
        last = max(batch.number for batch in old)
        if last > removed_until(self._folder):
            write_whole(self._folder / REMOVED, json.dumps({"until": last}) + "\n")
        files = [self._folder / file.name for batch in old for file in batch.files]
        for path in files:
            if is_part(path):
                path.unlink(missing_ok=True)
        self._waiting = [batch for batch in self._waiting if batch.number > until]
        return len(files)


def removed_until(folder: Path) -> int:
    """The last batch whose files may be gone; -1: none."""
    try:
        return int(json.loads((folder / REMOVED).read_bytes())["until"])
    except FileNotFoundError:
        return -1
