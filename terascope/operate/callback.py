"""Callbacks: a function that is called with the rows of every batch.

In: the folders of the queries, whose manifests list the delivered batches. Out: calls
`f(query, batch, rows)`, batch by batch in order, each after its rows are durable. A batch is
acknowledged when the call returns: its number is written under `callback/` by rename. A batch that
is not acknowledged is called again with the same number and rows. An object with a method `last`
stores the number with the rows in one transaction: then every batch comes once.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import quote

import pyarrow as pa

from terascope.diagnostic import StreamError
from terascope.operate.status import CallStatus
from terascope.operate.subscription import Retention, Subscription, removed_until
from terascope.streaming.state.runs import write_whole


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
