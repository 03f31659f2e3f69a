"""Subscribing to a named stream of a set, running or over.

In: the folder of the stream. Out: one Arrow table per micro-batch, as soon as it is complete:

    for table in terascope.subscribe("talkers"):
        alarm(table.to_pylist())

A subscriber reads files only: however slow it is, it does not hold the run up. A batch that is
written again after a failure comes once. Results without an output folder are kept until the
callback has acknowledged them, and a hundred batches longer for subscribers: then their files are
removed, and the manifest stays as it is. `removed.json` says up to which batch files may be gone;
it is in place before the first of them goes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from terascope.diagnostic import StreamError
from terascope.files import is_part
from terascope.operate.control_requests import rows_folder
from terascope.streaming.state.manifest import DeliveredBatch, Header, ManifestReader
from terascope.streaming.state.row_files import read_rows
from terascope.streaming.state.runs import find_run, write_whole

POLL_SECONDS: Final = 0.2

REMOVED: Final = "removed.json"
KEPT_BATCHES: Final = 100


def subscribe(
    name: str,
    checkpoint: str | Path | None = None,
    *,
    follow: bool = True,
    from_start: bool = False,
    since_batch: int | None = None,
) -> Subscription:
    """A subscription to a stream of the running set or, with its checkpoint, of any set.

    `from_start`: earlier batches come first; `since_batch`: only batches after that one; otherwise
    only new batches. With `follow` it waits for more until the run is over.

    Raises:
        StreamError: there is no such run or stream.
    """
    run = find_run(None if checkpoint is None else Path(checkpoint), over=True)
    return Subscription(
        rows_folder(run, name),
        follow=follow,
        from_start=from_start,
        since_batch=since_batch,
        is_over=lambda: not run.is_alive,
    )


class Subscription:
    """An iterator over the batches of a stream; each is an Arrow table in readable form."""

    def __init__(
        self,
        folder: Path,
        *,
        follow: bool = True,
        from_start: bool = False,
        since_batch: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
        wait: Callable[[], None] = lambda: time.sleep(POLL_SECONDS),
    ) -> None:
        """`is_over`: no batch will be written any more. `wait`: between two reads of the manifest.
        New batches are counted from here, not from the first read.

        Raises:
            StreamError: the manifest is not of its form.
        """
        self.folder = folder
        self.header: Header | None = None
        """The columns of the batches; None until the manifest has a header."""
        self._follow = follow
        self._is_over = is_over
        self._wait = wait
        self._reader = ManifestReader(folder)
        self._begun_anew = 0
        self._last = -1 if since_batch is None else since_batch
        if not from_start and since_batch is None:
            for entry in self._reader.new():
                self._note(entry)

    def _note(self, entry: Header | DeliveredBatch) -> bool:
        """Whether an entry is a batch that was not there before."""
        if self._reader.begun_anew != self._begun_anew:
            self._begun_anew, self._last = self._reader.begun_anew, -1
        if isinstance(entry, Header):
            self.header = entry
            return False
        is_new = entry.number > self._last
        self._last = max(self._last, entry.number)
        return is_new

    def batches(self) -> Iterator[tuple[DeliveredBatch, pa.Table]]:
        """Batches with their rows, which may be none: then the stream has only moved on.

        Raises:
            StreamError: results are gone, or not what the manifest says.
        """
        while True:
            # Checked before reading: every batch up to the end of the run is then read for certain.
            is_last = not self._follow or self._is_over()
            for entry in self._reader.new():
                if self._note(entry) and isinstance(entry, DeliveredBatch):
                    table = self._table(entry)
                    if table is not None:
                        yield entry, table
            if is_last:
                return
            self._wait()

    def _table(self, batch: DeliveredBatch) -> pa.Table | None:
        """The rows of a batch; None when the run has removed them after acknowledgement."""
        header = self.header
        if header is None:
            raise StreamError(f"'{self._reader.path}' has batches before its header")
        try:
            return self._read(batch, header)
        except StreamError:
            if batch.number <= removed_until(self.folder):
                return None
            raise

    def _read(self, batch: DeliveredBatch, header: Header) -> pa.Table:
        tables = [
            read_rows(self.folder / file.name, header.format, header.fields)
            for file in batch.files
            if file.rows
        ]
        if not tables:
            from terascope.kernels.encode.text import readable_fields

            return readable_fields(header.fields).empty_table()
        table = pa.concat_tables(tables)
        if table.num_rows != batch.rows:
            raise StreamError(
                f"batch {batch.number} of {header.query} has {table.num_rows} rows,"
                f" and its manifest says {batch.rows}"
            )
        return table

    def __iter__(self) -> Iterator[pa.Table]:
        for _, table in self.batches():
            yield table

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows one by one, as dictionaries."""
        for _, table in self.batches():
            yield from table.to_pylist()


def start_of_last(folder: Path, rows: int) -> tuple[int, int]:
    """The start of the last `rows` rows of a stream: the batch before them, and how many rows of
    the following batches come before them.

    Raises:
        StreamError: the manifest is not of its form.
    """
    counts: dict[int, int] = {}
    gone = removed_until(folder)
    for entry in ManifestReader(folder).new():
        if isinstance(entry, DeliveredBatch) and entry.number > gone:
            counts.setdefault(entry.number, entry.rows)
    found = 0
    for number in sorted(counts, reverse=True):
        if found >= rows:
            return number, found - rows
        found += counts[number]
    return -1, max(0, found - rows)


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
