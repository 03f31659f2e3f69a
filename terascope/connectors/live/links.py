"""Links: all interfaces of a run as live sources.

In: interfaces, their clocks, and a folder to keep the journal in. Out: offsets that only move on,
and for any two of them the splits between, always the same.

`poll` looks at the sources and writes what it finds to the journal; `latest` says how much of the
journal the next micro-batch takes; `splits` reads the journal only. A source that cannot be read
stalls alone. `check_named_files` refuses, before a stream starts, named files that can never become
usable for their source. Faults that the next bytes may repair are waited for: a file that is empty,
whose header is not complete, or whose gzip stream has no end yet. A run that ends when everything
is read waits until then. Files of folders are counted and named when they are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Final

from terascope.connectors.base import Edge, FileFault, Split, find_files
from terascope.connectors.live.file_link import FileLink
from terascope.connectors.live.journal import Found, Journal
from terascope.connectors.live.link import NEVER, UNKNOWN, Link, LinkState, Offset
from terascope.connectors.live.progress import LinkProgress, admit, in_order_of_time
from terascope.connectors.live.settings import PACKET_CLOCK, LinkClock, LiveSettings, Speed
from terascope.connectors.registry import GENERATE, Interface, unusable
from terascope.diagnostic import SourceError

NEVER_MENDED: Final = frozenset({FileFault.NOT_A_CAPTURE})
"""Faults of a file that stay, whatever is written to its end."""


def check_read_files(interfaces: Iterable[Interface]) -> None:
    """Look at sources that were read to their end and gave nothing.

    Raises:
        SourceError: a batch could not have read one of them either.
    """
    for interface in interfaces:
        if interface.kind != GENERATE:
            fresh = replace(interface)  # what was there at the start may have changed
            check_named_files([fresh], replayed=True)
            find_files(fresh.location, fresh.connector.suffixes)


def check_named_files(interfaces: Iterable[Interface], replayed: bool) -> None:
    """Look at the files that are named one by one.

    Raises:
        SourceError: one of them cannot be used.
    """
    for interface in interfaces:
        if not interface.names_file:
            continue
        fault = interface.fault(interface.files[0])
        if fault is not None and (replayed or fault in NEVER_MENDED):
            raise unusable(interface.files[0].absolute(), fault)


STARTED = "started"
COMMITTED = "committed"


class SourceClock:
    """The clock of a run: the wall clock of live sources, or the time of a replayed trace. A replay
    that was stopped resumes at the time it had reached, whatever the wall clock says. In an unpaced
    replay admitted entries set the time.
    """

    def __init__(self, speed: Speed | None, now: Callable[[], int]) -> None:
        self._speed = speed
        self._now = now
        self._latest = 0
        """The latest reading of a live run: readings never go back, as the wall clock may."""
        self._pair: tuple[int, int] | None = None
        """In a paced replay, a time of the trace and the time of the wall clock then."""

    def reading(self) -> int | None:
        """Nanoseconds; None when the clock does not run yet, or is driven by the data."""
        if self._speed is None:
            self._latest = max(self._latest, self._now())
            return self._latest
        if self._pair is None:
            return None
        trace_ns, wall_ns = self._pair
        return trace_ns + self._speed.trace_ns(max(self._now() - wall_ns, 0))

    def start(self, trace_ns: int) -> None:
        """The trace begins, or has been known to be as far as this."""
        self._latest = max(self._latest, trace_ns)
        if self._speed is not None and self._speed.is_paced:
            here = self.reading()
            if here is None or here < trace_ns:
                self._pair = (trace_ns, self._now())


class Links:
    def __init__(
        self,
        interfaces: Sequence[Interface],
        clocks: Mapping[str, LinkClock | None],
        edge: Edge | None,
        settings: LiveSettings,
        folder: Path,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._now = now
        self._lock = RLock()
        self._clock = SourceClock(settings.speed, now)
        self._journal = Journal(folder)
        self._links: dict[str, Link] = {}
        for one in interfaces:
            if one.name in self._links:
                raise SourceError(f"two interfaces are called '{one.name}'")
            clock = PACKET_CLOCK if one.is_packets else clocks.get(one.name)
            self._links[one.name] = self._link(one, clock, edge, folder)
        self._progress = LinkProgress(settings, self._links)
        self._reading: int | None = None
        marks = self._journal.marks
        for link in self._links.values():
            link.restore(marks)
            link.follow_journal()
        if STARTED in marks:
            self._clock.start(max(marks[STARTED], marks.get(COMMITTED, 0)))

    def _link(
        self, interface: Interface, clock: LinkClock | None, edge: Edge | None, folder: Path
    ) -> Link:
        kind: type[Link] = FileLink
        if interface.kind == GENERATE:
            # Its imports compile; nobody else should wait for that.
            from terascope.connectors.live.generator_link import GeneratorLink

            kind = GeneratorLink
        elif not interface.hosts_low_level:
            raise SourceError(
                f"{interface.described} is {interface.noun}, which cannot be followed"
            )
        journal = self._journal.link(interface.name)
        return kind(
            interface=interface,
            clock=clock,
            settings=self._settings,
            edge=edge,
            journal=journal,
            spool=folder.absolute() / "spool" / interface.name,
            now=self._now,
            admitted=journal.base,
        )

    def initial(self) -> Offset:
        return Offset.initial(self._links)

    def poll(self) -> None:
        """Look for new data and write it to the journal; on disk when this returns."""
        with self._lock:
            # When traffic starts must be known before any of it is.
            self._journal.append({}, self._new_marks())
            reading = self._clock.reading()
            found = {name: self._look(link, reading) for name, link in self._links.items()}
            # That a replay has found everything is written after all that it found.
            self._journal.append(found, self._new_marks())
            for link in self._links.values():
                link.follow_journal()
            self._start_clock()
            self._reading = self._clock.reading() if reading is None else reading

    def _new_marks(self) -> dict[str, int]:
        marks = {k: v for link in self._links.values() for k, v in link.marks().items()}
        return {k: v for k, v in marks.items() if self._journal.marks.get(k) != v}

    def _look(self, link: Link, reading: int | None) -> list[Found | str]:
        found: list[Found | str] = []
        try:
            for one in link.look(reading):
                found.append(one)  # noqa: PERF402 - what came before a failure is kept
        except Exception as reason:  # one bad source must not stop the others
            link.stalled = f"{type(reason).__name__}: {reason}"
            link.holds_back = True
        if reading is not None and not link.holds_back:
            link.looked_ns = reading
        return found

    def _start_clock(self) -> None:
        """A replay begins with its first tuple."""
        if self._settings.speed is None or STARTED in self._journal.marks:
            return
        starts = [int(t) for link in self._links.values() for t in link.timeline.oldest[:1]]
        first = min((start for start in starts if UNKNOWN < start < NEVER), default=None)
        if first is not None:
            self._journal.append({}, {STARTED: first})
            self._clock.start(first)

    def latest(self, start: Offset) -> Offset:
        """The offset of the next micro-batch from `start` on, by the findings of the last poll."""
        with self._lock:
            self._clock.start(start.now_ns)  # watermarks never fall
            for name, link in self._links.items():
                link.admitted = max(start.link(name).count, link.journal.base)
            speed = self._settings.speed
            by_data = speed is not None and not speed.is_paced
            reading = None if by_data else max(self._reading or 0, start.now_ns)
            until = reading if self._settings.piece_ns is not None else None
            taken = admit(self._links, self._settings.most_bytes, until)
            return self._progress.offset(start, taken, reading, self._now())

    def splits(self, start: Offset, end: Offset) -> list[Split]:
        """The splits admitted between two offsets, in order of time as far as that is known."""
        with self._lock:
            entries = [
                (link, link.journal.between(start.link(name).count, end.link(name).count))
                for name, link in self._links.items()
            ]
            return [entry.split for entry in in_order_of_time(entries)]

    def commit(self, end: Offset) -> None:
        """Entries before this offset will not be read again."""
        with self._lock:
            counts = {name: end.link(name).count for name in self._links}
            latest = max(end.now_ns, self._journal.marks.get(COMMITTED, 0))
            self._journal.commit(counts, {COMMITTED: latest})
            for link in self._links.values():
                link.follow_journal()
                link.release()

    def states(self) -> list[LinkState]:
        """The state of each link: its pending entries beyond the last offset."""
        with self._lock:
            return [link.state() for link in self._links.values()]
