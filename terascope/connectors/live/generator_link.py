"""A link of generated traffic: packets that are made on demand.

In: the words of a `generate` source. Out: capture files of about a second each, in a spool folder
beside the journal, and their entries. A file is complete before the journal names it, and is
removed when its entries are committed, so a split that is read again has the same bytes. After a
restart the traffic is made again from its seed, and entries in the journal are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Final

import numpy as np

from terascope.connectors.live.journal import Entry, FileState, Found
from terascope.connectors.live.link import Link
from terascope.connectors.packets.connector import PacketConnector, parts
from terascope.diagnostic import SourceError
from terascope.files import make_folder, sync
from terascope.traffic.conversations import PACKET
from terascope.traffic.profile import Wanted, parse_words
from terascope.traffic.randomness import Array
from terascope.traffic.trace import PcapWriter, TrafficStream, open_stream

CHUNK_NS: Final = 1_000_000_000
MOST_CHUNKS: Final = 60
"""Made at one look at most, so that one that is late does not keep the others waiting."""
CHUNKS_AHEAD: Final = 4
"""The chunks made beyond the admitted ones when nothing paces the traffic."""


@dataclass(kw_only=True)
class GeneratorLink(Link):
    """Traffic of one interface. It never holds back: its frontier says what is still to come."""

    start_ns: int | None = None
    _stream: TrafficStream | None = None
    _seconds: Iterator[Array] = field(default_factory=lambda: iter(()))
    _next: int = -1
    """The number of the second that `_seconds` gives next."""

    def __post_init__(self) -> None:
        self._wanted: Wanted = parse_words(self.interface.location)

    @property
    def lead_ns(self) -> int | None:
        """The lead over the clock: none when live, a second by the wall clock in a paced replay;
        None: no clock paces the traffic.
        """
        speed = self.settings.speed
        if speed is None:
            return 0
        return CHUNK_NS + speed.trace_ns(CHUNK_NS) if speed.is_paced else None

    @property
    def files(self) -> int:
        return self.journal.next_ordinal

    @property
    def frontier_ns(self) -> int | None:
        """Packets that are not in the journal are not older than this."""
        if self.start_ns is None or self.exhausted:
            return None
        return self.start_ns + self._written * CHUNK_NS

    @property
    def _links_written(self) -> int:
        return 1 if self._wanted.link is not None else self._wanted.profile(0.0).links

    @property
    def _written(self) -> int:
        return self.journal.next_ordinal // self._links_written

    def restore(self, marks: Mapping[str, int]) -> None:
        """Go on after a restart, from the same first second."""
        self.start_ns = marks.get(self._mark)
        self.release()

    def marks(self) -> dict[str, int]:
        return {self._mark: self.begin()}

    @property
    def _mark(self) -> str:
        return f"start {self.interface.name}"

    def release(self) -> None:
        needed = {entry.split.path for entry in self.journal.entries}
        for path in tuple(self.journal.files):
            if path not in needed:
                del self.journal.files[path]
                Path(path).unlink(missing_ok=True)

    def begin(self) -> int:
        """The time of its first packet, fixed at the first look."""
        if self.start_ns is None:
            start = self._wanted.profile(self.now() // CHUNK_NS * 1.0).start_time
            self.start_ns = round(start * 1e9) // CHUNK_NS * CHUNK_NS
        return self.start_ns

    def look(self, reading: int | None) -> Iterator[Found | str]:
        """The chunks that are due by the clock."""
        start = self.begin()
        self.stalled = None
        if self.exhausted:
            return
        # What was written in this look is in the journal only after it.
        written, ahead = self._written, self.pending
        try:
            for _ in range(MOST_CHUNKS):
                if not self._is_due(start, written, reading, ahead):
                    return
                chunk = self._second(written)
                if chunk is None:
                    self.exhausted = True
                    return
                yield from self._write(written, chunk)
                self.grown_ns = self.now()
                written += 1
                ahead += 1
        except OSError as reason:
            self.stalled = f"cannot write to '{self.spool}': {reason.strerror or reason}"
        except SourceError as reason:
            self.stalled = str(reason)

    def _is_due(self, start: int, written: int, reading: int | None, ahead: int) -> bool:
        if self.lead_ns is None:
            return ahead < CHUNKS_AHEAD
        if reading is None:  # a replay whose clock starts with the first packet
            return written == 0
        return start + (written + 1) * CHUNK_NS <= reading + self.lead_ns

    def _second(self, number: int) -> Array | None:
        """The packets of a second; None when there are no more seconds."""
        if self._next != number:  # after a restart, or what was made could not be written
            self._stream = open_stream(self._wanted.profile(self.begin() / 1e9))
            self._seconds = islice(seconds(self._stream, self.begin()), number, None)
        self._next = number + 1
        return next(self._seconds, None)

    def _write(self, number: int, packets: Array) -> Iterator[Found]:
        """Write a second as files, one for each requested link."""
        assert self._stream is not None
        chosen = range(self._links_written) if self._wanted.link is None else [self._wanted.link]
        make_folder(self.spool)
        several = self._stream.profile.links > 1
        for place, link in enumerate(chosen):
            ordinal = number * len(chosen) + place
            if ordinal < self.journal.next_ordinal:  # a crash came between the links of a second
                continue
            path = self.spool / f"{ordinal:08}.pcap"
            mine = packets[packets["link"] == link] if several else packets
            writer = PcapWriter(path, self._stream.profile.snaplen, self._stream.custom, False)
            writer.write(mine)
            writer.close()
            sync(path)  # on disk before the journal names it
            entries = tuple(self._entries(path, ordinal))
            yield Found(FileState(str(path), ordinal, closed=True), entries)

    def _entries(self, path: Path, ordinal: int) -> Iterator[Entry]:
        capture = replace(self.interface, kind=PacketConnector.kind)
        for part in parts(path, self.cut_rule):
            split = capture.split(path, ordinal, part)
            yield Entry(split, part.end - part.start, empty=not part.bounds)


def seconds(stream: TrafficStream, end_ns: int) -> Iterator[Array]:
    """The packets of each second from `end_ns` on."""
    rest = np.zeros(0, PACKET)
    for more in chain(stream.chunks(), [None]):  # None: no more follow
        rest = rest if more is None else np.concatenate([rest, more])
        while len(rest) and (more is None or rest["time"][-1] >= end_ns + CHUNK_NS):
            end_ns += CHUNK_NS
            cut = int(np.searchsorted(rest["time"], end_ns))
            yield rest[:cut]
            rest = rest[cut:]
