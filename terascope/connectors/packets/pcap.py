"""The pcap format: its file header, the walk from record to record, and finding records again after
damage.

In: bytes of a file. Out: `PcapHeader`; rows of `Records`.

A record is believed by its own header; what follows it is looked at only when the header is odd
(more captured than was on the wire or than the snap length allows, a fraction of a second beyond
one). A header that cannot be one (longer than any packet, or all zeros) is damage: the walk goes on
at the next offset from which `CHAIN` strictly plausible headers follow one another, or a shorter
chain that ends with the file. All this depends on the bytes from the record on and on the file
header only, never on what was read before; so walking from any record of a walk gives the rest of
that walk.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from terascope.connectors.packets import records
from terascope.connectors.packets.words import Bytes, Ints, load32, load64
from terascope.machine_code import compiled

FILE_HEADER_BYTES: Final = 24
RECORD: Final = -1  # verdict of `judge`: a record, taken as it is
LONGEST_PACKET: Final = 262_144
"""libpcap's limit; a file whose header announces longer ones may have them, up to `LONGEST_SNAP`.
"""
LONGEST_SNAP: Final = 1 << 27
LONGEST_WIRE: Final = 1 << 20
"""More on the wire than any offload makes of it: odd, though not impossible."""
CHAIN: Final = 6
"""Headers in a row that end a search; each is plausible by accident once in about 2^40."""
CUT_CHAIN: Final = 3
"""Whole records that are enough when the file then ends inside of another."""
LONGEST_GAP: Final = 7 * 86_400
"""Seconds between neighbouring records of a chain."""

MAGICS: Final = {
    0xA1B2C3D4: (16, 1_000_000),
    0xA1B23C4D: (16, 1_000_000_000),
    0xA1B2CD34: (24, 1_000_000),
}
"""Magic -> bytes of a record header, parts of a second. The last is Kuznetzov's modified format."""


class PcapHeader(NamedTuple):
    """The facts of the file header about all records; kernels take it as it is."""

    big: bool
    record_bytes: int
    """Bytes of the header of a record."""
    parts: int
    snap: int
    longest: int
    link: int


def parse_header(raw: bytes) -> PcapHeader | None:
    """The header in the first 24 bytes of a file; None when they are not one."""
    for big in (False, True):
        order = ">" if big else "<"
        magic, _, _, _, _, snap, network = struct.unpack(f"{order}IHHiIII", raw[:FILE_HEADER_BYTES])
        if magic in MAGICS:
            record_bytes, parts = MAGICS[magic]
            announced = snap if 0 < snap <= LONGEST_SNAP else LONGEST_PACKET
            longest = max(announced, LONGEST_PACKET)
            return PcapHeader(big, record_bytes, parts, announced, longest, network & 0xFFFF)
    return None


def starts_as_pcap(raw: bytes) -> bool:
    """Whether the first bytes of a file (four, or all of a shorter one) begin a pcap magic."""
    known = (struct.pack(order + "I", magic) for order in "<>" for magic in MAGICS)
    return bool(raw) and any(whole.startswith(raw[:4]) for whole in known)


@compiled
def plausible(buffer: Bytes, at: int, file: PcapHeader) -> bool:
    """Whether a header shows nothing odd at all; eight bytes of time, then two lengths."""
    caplen = load32(buffer, at + 8, file.big)
    wirelen = load32(buffer, at + 12, file.big)
    fraction = load32(buffer, at + 4, file.big)
    fits = fraction < file.parts and caplen <= file.snap
    return fits and caplen <= wirelen and wirelen <= LONGEST_WIRE


@compiled
def possible(buffer: Bytes, at: int, file: PcapHeader) -> bool:
    """Whether a header can be one: not too long, not all zeros as in a file never filled."""
    if load32(buffer, at + 8, file.big) > file.longest:
        return False
    return (load64(buffer, at) | load64(buffer, at + 8)) != 0


@compiled
def starts_chain(buffer: Bytes, at: int, final: bool, file: PcapHeader) -> int:
    """RECORD when a chain of plausible records starts here, DAMAGED when not, MORE when the window
    ends first.

    Four bytes into a header the captured length stands for the fraction and the length on the wire
    for the captured one: of uncut packets, a chain as consistent as the true one. It is told by
    its echoes, fractions that equal lengths.
    """
    size = len(buffer)
    whole = 0
    echoes = 0
    enough = CHAIN
    second = -1
    while whole < CHAIN:
        if at == size and final:
            enough = 1
            break
        if at + file.record_bytes > size:
            if not final:
                return records.MORE
            enough = CUT_CHAIN
            break
        if not plausible(buffer, at, file):
            return records.DAMAGED
        now = load32(buffer, at, file.big)
        caplen = load32(buffer, at + 8, file.big)
        if caplen == 0 or (second >= 0 and abs(now - second) > LONGEST_GAP):
            return records.DAMAGED
        if at + file.record_bytes + caplen > size:
            if not final:
                return records.MORE
            enough = CUT_CHAIN
            break
        echoes += load32(buffer, at + 4, file.big) == caplen
        second = now
        at += file.record_bytes + caplen
        whole += 1
    return RECORD if whole >= enough and 2 * echoes < whole else records.DAMAGED


@compiled
def find_chain(
    buffer: Bytes, start: int, stop: int, final: bool, file: PcapHeader
) -> tuple[int, int]:
    """The first offset in start..stop where a chain starts: (RECORD, it), (DAMAGED, stop), or
    (MORE, how far).
    """
    for at in range(start, stop):
        if at + file.record_bytes > len(buffer):
            if final:
                break
            return records.MORE, at
        verdict = starts_chain(buffer, at, final, file)
        if verdict != records.DAMAGED:
            return verdict, at
    return records.DAMAGED, stop


@compiled
def judge(buffer: Bytes, at: int, final: bool, file: PcapHeader) -> int:
    """The kind of data at `at`: RECORD, END, MORE, DAMAGED or TRUNCATED."""
    size, header = len(buffer), file.record_bytes
    if at + header > size:
        if not final:
            return records.MORE
        return records.END if at == size else records.TRUNCATED
    if not possible(buffer, at, file):
        return records.DAMAGED
    following = at + header + load32(buffer, at + 8, file.big)
    if following > size and not final:
        return records.MORE
    if plausible(buffer, at, file):
        return RECORD if following <= size else records.TRUNCATED
    # An odd header is still a record when what follows it can be records; a wrong length leads
    # astray.
    after = following
    for _ in range(CUT_CHAIN):
        if after == size and final:
            break
        if after + header > size and not final:
            return records.MORE
        if after + header > size or not possible(buffer, after, file):
            after = -1
            break
        after += header + load32(buffer, after + 8, file.big)
    if after >= 0 and following <= size:
        return RECORD
    verdict, _ = find_chain(buffer, at + 1, min(following, size), final, file)
    if verdict == RECORD:
        return records.DAMAGED
    if verdict == records.MORE:
        return records.MORE
    return RECORD if following <= size else records.TRUNCATED


@compiled
def walk_pcap(
    buffer: Bytes,
    at: int,
    base: int,
    final: bool,
    stop: int,
    file: PcapHeader,
    numbers: Ints,
    marks: Bytes,
    most: int,
) -> tuple[int, int, int, int]:
    """Find up to `most` records from `at` on; (why it stopped, where in the window, how many, and
    how many have no time: microseconds or nanoseconds of more than a second).
    """
    big, header, parts = file.big, file.record_bytes, file.parts
    nanoseconds = 1_000_000_000 // parts
    size = len(buffer)
    offset, data, link = numbers[records.OFFSET], numbers[records.DATA], numbers[records.LINK]
    caplen, wirelen = numbers[records.CAPLEN], numbers[records.WIRELEN]
    timestamp, reason = numbers[records.TIMESTAMP], marks[records.REASON]
    filled = 0
    untimed = 0
    while True:
        if base + at >= stop:
            return records.STOPPED, at, filled, untimed
        if filled == most:
            return records.FULL, at, filled, untimed
        second = load32(buffer, at, big)
        fraction = load32(buffer, at + 4, big)
        captured = load32(buffer, at + 8, big)
        wire = load32(buffer, at + 12, big)
        following = at + header + captured
        # What `judge` says of nearly every record, from what is loaded anyway.
        believed = (
            (fraction < parts)
            & (captured > 0)
            & (captured <= file.snap)
            & (captured <= wire)
            & (wire <= LONGEST_WIRE)
            & (following <= size)
        )
        if not believed:
            verdict = judge(buffer, at, final, file)
            if verdict != RECORD:
                return verdict, at, filled, untimed
        if fraction >= parts:  # nothing can be said of when it was captured
            untimed += 1
            at = following
            continue
        offset[filled] = base + at
        data[filled] = at + header
        caplen[filled] = captured
        wirelen[filled] = wire
        timestamp[filled] = second * 1_000_000_000 + fraction * nanoseconds
        link[filled] = file.link
        reason[filled] = records.FINE
        filled += 1
        at = following
