"""The pcapng format: the walk from block to block, and finding blocks again after damage.

In: bytes of a file and the tables of the section's interfaces. Out: rows of `Records`.

Enhanced, simple and obsolete packet blocks are read here; a block that describes a section or an
interface is handed to `section`; all others are stepped over. Every block carries its length at
both ends, which must agree: where they do not, the walk goes on at the next offset from which
`CHAIN` blocks of known types follow one another. Simple packet blocks have no time; they take that
of the packet before them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.connectors.packets import records
from terascope.connectors.packets.words import Bytes, Ints, load8, load16, load32
from terascope.machine_code import compiled

SECTION_BLOCK: Final = 0x0A0D0D0A
INTERFACE_BLOCK: Final = 1
OBSOLETE_BLOCK: Final = 2
SIMPLE_BLOCK: Final = 3
ENHANCED_BLOCK: Final = 6
BYTE_ORDER: Final = 0x1A2B3C4D
SMALLEST_BLOCK: Final = 12
LONGEST_BLOCK: Final = 1 << 27
LONGEST_FOUND: Final = 1 << 20
"""Longest block that a search after damage believes in."""
CHAIN: Final = 3
BLOCK: Final = -1
LAST_SECOND: Final = 9_223_372_035
"""Seconds whose nanoseconds still fit a signed 64-bit integer."""
POWERS: Final = np.array([10**k for k in range(20)], np.uint64)
"""Powers of ten."""


@compiled
def nanoseconds(high: int, low: int, resolution: int, shift: int) -> int:
    """A 64-bit count of ticks as nanoseconds since 1970, rounded down; -1 when out of range.

    `resolution` is the option's byte: a negative power of ten, or of two when its top bit is set.
    """
    plain = (high << 32) | low  # negative when it is more than 63 bits
    if shift == 0 and plain >= 0:  # nearly every file: no division
        if resolution == 6 and plain < (LAST_SECOND + 1) * 1_000_000:
            return plain * 1000
        if resolution == 9 and plain < (LAST_SECOND + 1) * 1_000_000_000:
            return plain
    ticks = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    power = resolution & 0x7F
    if resolution & 0x80:
        seconds = np.int64(0)
        if power < 64:
            seconds = np.int64(ticks >> np.uint64(power))
            ticks = ticks & ((np.uint64(1) << np.uint64(power)) - np.uint64(1))
        upper = np.int64(ticks >> np.uint64(32))
        lower = np.int64(ticks & np.uint64(0xFFFFFFFF))
        # fraction * 10^9 / 2^power in two halves of 32 bits, so that nothing overflows
        part = upper * 1_000_000_000 + ((lower * 1_000_000_000) >> 32)
        if power >= 32:
            part = part >> (power - 32) if power < 96 else np.int64(0)
        else:
            part = (lower * 1_000_000_000) >> power
    else:
        if power > 28:
            ticks = np.uint64(0)
        elif power > 9:
            ticks //= POWERS[power - 9]
        elif ticks // POWERS[power] > np.uint64(LAST_SECOND):
            return -1
        else:
            ticks *= POWERS[9 - power]
        seconds = np.int64(ticks // POWERS[9])
        part = np.int64(ticks % POWERS[9])
    if seconds < 0 or seconds > LAST_SECOND or abs(shift) > LAST_SECOND:
        return -1
    seconds += shift
    if seconds < 0 or seconds > LAST_SECOND:
        return -1
    return int(seconds * 1_000_000_000 + part)


@compiled
def order_of(buffer: Bytes, at: int) -> int:
    """The byte order a section header declares: 1 big, 0 little, -1 neither."""
    if load32(buffer, at + 8, True) == BYTE_ORDER:
        return 1
    if load32(buffer, at + 8, False) == BYTE_ORDER:
        return 0
    return -1


@compiled
def judge_block(buffer: Bytes, at: int, final: bool, big: bool, longest: int) -> int:
    """The kind of data at `at`: BLOCK, END, MORE, DAMAGED or TRUNCATED."""
    size = len(buffer)
    if at + SMALLEST_BLOCK > size:
        if not final:
            return records.MORE
        return records.END if at == size else records.TRUNCATED
    kind = load32(buffer, at, big)
    if kind == SECTION_BLOCK:
        order = order_of(buffer, at)
        if order < 0:
            return records.DAMAGED
        big = order == 1
    total = load32(buffer, at + 4, big)
    if total < SMALLEST_BLOCK or total % 4 != 0 or total > longest:
        return records.DAMAGED
    if kind == ENHANCED_BLOCK and at + 24 <= size:
        stated = 32 + load32(buffer, at + 20, big)
        # Options are short: a block much longer than its packet has a broken length, not a broken
        # end.
        if total > stated + 65_536 + 3:
            return records.DAMAGED
    if at + total > size:
        return records.TRUNCATED if final else records.MORE
    if load32(buffer, at + total - 4, big) != total:
        return records.DAMAGED
    return BLOCK


@compiled
def find_blocks(buffer: Bytes, start: int, final: bool, big: bool) -> tuple[int, int]:
    """The first offset from which blocks follow one another: (BLOCK, it), (DAMAGED, end), or (MORE,
    how far).
    """
    size = len(buffer)
    for candidate in range(start, size):
        if candidate + SMALLEST_BLOCK > size:
            return (records.DAMAGED, size) if final else (records.MORE, candidate)
        at = candidate
        order = big
        blocks = 0
        verdict = BLOCK
        while blocks < CHAIN and verdict == BLOCK:
            if at == size and final and blocks > 0:
                break
            verdict = judge_block(buffer, at, final, order, LONGEST_FOUND)
            if verdict != BLOCK:
                break
            kind = load32(buffer, at, order)
            if kind == SECTION_BLOCK:
                order = order_of(buffer, at) == 1
            elif kind == 0 or (kind > 12 and kind != 0xBAD and kind != 0x40000BAD):
                verdict = records.DAMAGED
                break
            at += load32(buffer, at + 4, order)
            blocks += 1
        if verdict == records.TRUNCATED and blocks >= CHAIN - 1:
            verdict = BLOCK
        if verdict == BLOCK or verdict == records.MORE:
            return verdict, candidate
    return (records.DAMAGED, size) if final else (records.MORE, size)


@compiled
def walk_pcapng(
    buffer: Bytes,
    at: int,
    base: int,
    final: bool,
    stop: int,
    big: bool,
    interfaces: Ints,
    latest: int,
    numbers: Ints,
    marks: Bytes,
    filled: int,
    most: int,
) -> tuple[int, int, int, int, int, int]:
    """Add packets from `at` on until there are `most`; (why it stopped, where, rows filled, latest
    time, blocks that lie about a packet, packets whose time is out of range). `interfaces` has a
    line for each interface of the section: link type, snap length, resolution and shift of times.
    """
    offset, data, link = numbers[records.OFFSET], numbers[records.DATA], numbers[records.LINK]
    caplen, wirelen = numbers[records.CAPLEN], numbers[records.WIRELEN]
    timestamp, reason = numbers[records.TIMESTAMP], marks[records.REASON]
    lies = 0
    untimed = 0
    while True:
        if base + at >= stop:
            return records.STOPPED, at, filled, latest, lies, untimed
        if filled == most:
            return records.FULL, at, filled, latest, lies, untimed
        verdict = judge_block(buffer, at, final, big, LONGEST_BLOCK)
        if verdict != BLOCK:
            return verdict, at, filled, latest, lies, untimed
        kind = load32(buffer, at, big)
        if kind == SECTION_BLOCK or kind == INTERFACE_BLOCK:
            return records.DESCRIBES, at, filled, latest, lies, untimed
        total = load32(buffer, at + 4, big)
        if kind != ENHANCED_BLOCK and kind != SIMPLE_BLOCK and kind != OBSOLETE_BLOCK:
            at += total
            continue
        head = 16 if kind == SIMPLE_BLOCK else 32
        if total < head:
            lies += 1
            at += total
            continue
        number = 0
        if kind == SIMPLE_BLOCK:
            wire = load32(buffer, at + 8, big)
            captured = min(wire, total - 16)
            if len(interfaces) > 0 and interfaces[0, 1] > 0:
                captured = min(captured, interfaces[0, 1])
            first = at + 12
        else:
            captured = load32(buffer, at + 20, big)
            wire = load32(buffer, at + 24, big)
            first = at + 28
            if kind == ENHANCED_BLOCK:
                number = load32(buffer, at + 8, big)
            elif big:
                number = load16(buffer, at + 8)
            else:
                number = load8(buffer, at + 8) | (load8(buffer, at + 9) << 8)
        if captured > total - head:
            lies += 1
            at += total
            continue
        why = records.FINE
        resolution = 6
        shift = 0
        if number < len(interfaces):
            link[filled] = interfaces[number, 0]
            resolution = int(interfaces[number, 2])
            shift = int(interfaces[number, 3])
        else:
            link[filled] = -1
            why = records.NO_INTERFACE
        if kind != SIMPLE_BLOCK:
            high = load32(buffer, at + 12, big)
            low = load32(buffer, at + 16, big)
            moment = nanoseconds(high, low, resolution, shift)
            if moment < 0:
                untimed += 1
                at += total
                continue
            latest = moment
        offset[filled] = base + at
        data[filled] = first
        caplen[filled] = captured
        wirelen[filled] = wire
        timestamp[filled] = latest
        reason[filled] = why
        filled += 1
        at += total
