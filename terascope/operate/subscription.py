"""Subscribing to a named stream of a set, running or over; and callbacks.

In: the folder of the stream. Out: one Arrow table per micro-batch, as soon as it is complete:

    for table in terascope.subscribe("talkers"):
        alarm(table.to_pylist())

A subscriber reads files only: however slow it is, it does not hold the run up. A batch that is
written again after a failure comes once.

A callback is called by the run with the rows of every batch, `f(query, batch, rows)`, batch by
batch in order, each after its rows are durable. A batch is acknowledged when the call returns: its
number is written under `callback/` by rename. A batch that is not acknowledged is called again with
the same number and rows. An object with a method `last` stores the number with the rows in one
transaction: then every batch comes once. Results without an output folder are kept until the
callback has acknowledged them, and a hundred batches longer for subscribers: then their files are
removed, and the manifest stays as it is. `removed.json` says up to which batch files may be gone;
it is in place before the first of them goes.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

import pyarrow as pa

from terascope.diagnostic import StreamError
from terascope.files import is_part
from terascope.kernels.encode.text import readable_fields
from terascope.operate.control_requests import rows_folder
from terascope.operate.status import CallStatus
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
        paths = [self.folder / file.name for file in batch.files if file.rows]
        try:
            tables = [read_rows(path, header.format, header.fields) for path in paths]
        except StreamError:
            if batch.number <= removed_until(self.folder):
                return None
            raise
        if not tables:
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


class Callback(Protocol):
    """A function, or an object that can be called, that takes rows."""

    def __call__(self, query: str, batch: int, rows: pa.Table, /) -> None: ...


@runtime_checkable
class Remembers(Protocol):
    """A callback that stores the numbers of batches with their rows."""

    def last(self, query: str, /) -> int | None:
        """The last stored batch of a query; None: none is stored."""
        ...


class CallbackSink:
    """Calls a callback with all batches that are not acknowledged. Not thread-safe."""

    def __init__(
        self,
        callback: Callback,
        folders: Mapping[str, Path],
        notes: Path,
        keep: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`notes`: the folder of acknowledgements. `keep`: all results stay; otherwise old ones are
        removed after their acknowledgement.
        """
        self._clock = clock
        self._call_at_work: tuple[str, int, float] | None = None
        """The query, the batch and the begin of the call that the run waits for."""
        self.seconds = 0.0
        """The time in calls that have returned."""
        self._callback = callback
        self._notes = notes
        self._acknowledged = {query: self._last(query) for query in folders}
        for query, folder in folders.items():
            self._check(query, folder)
        self._streams = {
            query: Subscription(folder, follow=False, since_batch=self._acknowledged[query])
            for query, folder in folders.items()
        }
        self._retention = {} if keep else {q: Retention(folder) for q, folder in folders.items()}

    def _check(self, query: str, folder: Path) -> None:
        """Refuse a callback that lacks batches whose files are removed."""
        gone = removed_until(folder)
        last = self._acknowledged[query]
        if last < gone:
            raise StreamError(
                f"the callback has rows of {query} up to batch {last}, and those up"
                f" to batch {gone} were acknowledged before and are removed; give an output folder,"
                " in which all rows stay, or begin anew with another checkpoint"
            )

    def _note(self, query: str) -> Path:
        return self._notes / f"{quote(query, safe='')}.json"

    def _last(self, query: str) -> int:
        if isinstance(self._callback, Remembers):
            last = self._callback.last(query)
            return -1 if last is None else last
        try:
            return int(json.loads(self._note(query).read_bytes())["batch"])
        except FileNotFoundError:
            return -1

    def deliver(self, newest: int) -> int:
        """Call with every batch that is delivered and not acknowledged; returns how many calls.
        `newest`: the last batch that is done. An exception of the callback is raised.
        """
        calls = 0
        streams = [self._batches(place, query) for place, query in enumerate(self._streams)]
        for number, _, query, rows in heapq.merge(*streams, key=lambda one: one[:2]):
            self._call(query, number, rows)
            self._acknowledge(query, number)
            calls += 1
        for query, retention in self._retention.items():
            retention.remove(self._acknowledged[query], newest)
        return calls

    def _call(self, query: str, batch: int, rows: pa.Table) -> None:
        began = self._clock()
        self._call_at_work = query, batch, began
        try:
            self._callback(query, batch, rows)
        finally:
            self._call_at_work = None
            self.seconds += self._clock() - began

    def at_work(self, now: float) -> CallStatus | None:
        """The call that the run waits for; any thread may ask."""
        call = self._call_at_work
        return None if call is None else CallStatus(call[0], call[1], max(0.0, now - call[2]))

    def _batches(self, place: int, query: str) -> Iterator[tuple[int, int, str, pa.Table]]:
        for batch, rows in self._streams[query].batches():
            yield batch.number, place, query, rows

    def _acknowledge(self, query: str, batch: int) -> None:
        if not isinstance(self._callback, Remembers):
            write_whole(self._note(query), json.dumps({"batch": batch}) + "\n")
        self._acknowledged[query] = batch
