"""Closing of slices, decided after every micro-batch from its heartbeats.

In: the plan of a stream, its state, and the watermarks of its sources. Out: for each low-level
stream the slices whose partials are merged now. When many slices close at once, as when a silent
input comes back, they are released in portions of bounded size over several batches (the slow flush
of dissertation 4.5.3, above the low level too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add

from terascope.analysis.moving import ALL
from terascope.analysis.order import FINENESS
from terascope.analysis.watermarks import Watermarks
from terascope.connectors.arrival import TICKS_NS, is_arrival
from terascope.connectors.base import MOST_NAMED
from terascope.connectors.live import Offset
from terascope.functions.base import Trend, Value
from terascope.physical.stream.plan import LowStream
from terascope.physical.stream.slice_streams import SliceValue
from terascope.plan.rel import Scan, SourceField
from terascope.streaming.heartbeat import Heartbeat
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import Seen, StreamState, keep

LEAST_PORTION = 1 << 18
"""Bytes of partials that may always close in one batch."""
MANY_SEGMENTS = 48
"""The number of segments of one stream at one destination from which on they are compacted."""
LARGE_SEGMENT = 1 << 16
"""The groups of a segment from which on it is not compacted any more."""


@dataclass(frozen=True)
class ClosingSlices:
    """The slices of a stream that one task closes, or whose partials it only compacts."""

    number: int
    low: SliceValue | None
    high: SliceValue | None
    """Slices from `low` up to, and without, `high`; None: no limit on that side."""
    segments: tuple[Segment, ...]
    destination: int
    together: bool
    """The slices stay open: their partials are only compacted."""


# ---- heartbeats ----------------------------------------------------------------------------------


def ingest_heartbeats(state: StreamState, beats: Iterable[Heartbeat], offset: Offset) -> None:
    for beat in beats:
        for name, report in beat.interfaces.items():
            seen = state.seen.setdefault(name, Seen())
            for column, value in report.smallest.items():
                behind = seen.largest.get(column, value) - value
                seen.disorder[column] = max(seen.disorder.get(column, 0), behind)
            keep(seen.largest, report.largest, max)
            keep(seen.smallest, report.smallest, min)
            keep(seen.disorder, report.disorder, max)
            keep(seen.late_behind, report.late_behind, max)
            keep(seen.malformed, report.malformed, add, 0)
            keep(seen.late_streams, report.late_streams, add, 0)
            for path, why in report.files.items():
                seen.files.pop(path, None)
                seen.files[path] = why
            for path in list(seen.files)[: len(seen.files) - MOST_NAMED]:
                del seen.files[path]
            seen.skipped_bytes += report.skipped_bytes
            seen.tuples += report.tuples
            seen.bytes += report.bytes
            seen.late += report.late
            for column in report.late_behind.keys() & report.smallest.keys():
                seen.late_smallest[column] = report.smallest[column]
            if report.tuples:
                seen.last_tuple_ns = offset.now_ns
    ingest_offset(state.seen, offset)
    state.ended = offset.ended


def ingest_offset(known: dict[str, Seen], offset: Offset) -> None:
    """Ingest the bounds of the tuples of all sources before an offset, and their signs of life."""
    for name, link in offset.links.items():
        seen = known.setdefault(name, Seen())
        keep(seen.largest, {column: most for column, (_, most) in link.seen.items()}, max)
        keep(seen.smallest, {column: least for column, (least, _) in link.seen.items()}, min)
        seen.arrived_ns = max(seen.arrived_ns, offset.arrived_ns)
        if link.quiet_ns is not None:
            seen.quiet_ns = max(seen.quiet_ns or link.quiet_ns, link.quiet_ns)
        if link.is_left_behind:
            seen.left_ns = seen.quiet_ns


def scan_watermarks(
    seen: Mapping[str, Seen], skew_ns: int, ended: bool
) -> Callable[[Scan], Mapping[str, Value]]:
    """The watermarks of the ordered columns of a scan: those of its slowest interface, before the
    declared disorder is subtracted.
    """

    def watermarks(scan: Scan) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        for column, rising in ordered_columns_of(scan):
            values = [reached(column, seen.get(name), skew_ns) for name in scan.interfaces]
            told = [v for v in values if v is not None]
            if ended:
                found[column.name] = ALL
            elif len(told) == len(values):
                found[column.name] = min(told) if rising else max(told)
        return found

    return watermarks


def furthest(seen: Mapping[str, Seen]) -> Callable[[Scan], Mapping[str, Value]]:
    """The largest value of every ordered column, over the interfaces of a scan."""

    def told(scan: Scan) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        known = [seen[name] for name in scan.interfaces if name in seen]
        for column, rising in ordered_columns_of(scan):
            ends = [one.largest if rising else one.smallest for one in known]
            there = [values[column.read_from] for values in ends if column.read_from in values]
            if there:
                found[column.name] = max(there) if rising else min(there)
        return found

    return told


def ordered_columns_of(scan: Scan) -> Iterator[tuple[SourceField, bool]]:
    """The ordered columns of a scan, and whether each rises with time."""
    for column in scan.columns:
        if column.slope is not None and column.slope.is_ordered:
            yield column, column.slope.trend is Trend.INCREASING


def reached(column: SourceField, seen: Seen | None, skew_ns: int) -> SliceValue | None:
    """The value that a column of one interface has reached: by its tuples, or by the clock when all
    older data was read (4.4.5). For arrival times it is always the wall clock. Bands are not
    subtracted here.
    """
    assert column.slope is not None
    if seen is None:
        return None
    if is_arrival(column.read_from):
        return seen.arrived_ns // TICKS_NS[column.read_from] + column.slope.band
    if column.slope.trend is not Trend.INCREASING:
        return seen.smallest.get(column.read_from)
    told = [seen.largest[column.read_from]] if column.read_from in seen.largest else []
    if column.read_from in seen.passed:
        told.append(seen.passed[column.read_from] + column.slope.band)
    if column.clock is not None and seen.quiet_ns is not None:
        # What the clock says holds without the band, which is taken off later.
        tick = 10**9 // FINENESS[column.clock]
        told.append((seen.quiet_ns - skew_ns) // tick + column.slope.band)
    return max(told, default=None)


# ---- slices that close ---------------------------------------------------------------------------


def epoch_watermark(stream: LowStream, watermarks: Watermarks) -> Value:
    """The epoch before which all groups of a stream are complete."""
    assert stream.value is not None
    return watermarks.of_column(stream.value, stream.read)


def due(
    stream: LowStream,
    state: StreamState,
    watermark: Value,
    portion: int,
    least: SliceValue | None = None,
) -> tuple[SliceValue | None, list[ClosingSlices]]:
    """The value up to which a stream of groups closes at most, and the slices to close. `least`:
    tasks already emitted rows of slices before this one, so that older slices have to close now,
    however many they are, or their rows would be emitted out of order.
    """
    until = state.streams[stream.key].until
    pending = state.partials(stream.key)
    if watermark is ALL:
        return None, work(stream, pending, until, None)
    if watermark is None or (until is not None and watermark <= until):
        return until, []
    high = within(pending, until, watermark, portion)
    if least is not None:
        high = max(high, min(least, watermark))
    return high, work(stream, [s for s in pending if s.has_before(high)], until, high)


def work(
    stream: LowStream,
    segments: Sequence[Segment],
    low: SliceValue | None,
    high: SliceValue | None,
    together: bool = False,
) -> list[ClosingSlices]:
    """The slices that close, by destination."""
    homes: dict[int, list[Segment]] = {}
    for segment in segments:
        homes.setdefault(segment.destination, []).append(segment)
    return [
        ClosingSlices(stream.number, low, high, tuple(some), home, together)
        for home, some in sorted(homes.items())
    ]


def within(
    segments: Sequence[Segment], low: SliceValue | None, high: SliceValue, portion: int
) -> SliceValue:
    """The last edge up to which no more than a portion closes; one slice always does."""
    sliced = [s for s in segments if s.low is not None and s.has_before(high)]
    if sum(s.length for s in sliced) <= portion or not sliced:
        return high
    first = int(min(s.low for s in sliced if s.low is not None))
    first = first if low is None else max(first, int(low))
    least, most = first + 1, int(high)
    while least < most:
        middle = (least + most + 1) // 2
        if bytes_before(sliced, middle) <= portion:
            least = middle
        else:
            most = middle - 1
    return least


def bytes_before(segments: Sequence[Segment], edge: int) -> float:
    """The approximate bytes of segments in slices before an edge."""
    total = 0.0
    for segment in segments:
        if segment.low is None or segment.high is None or segment.low >= edge:
            continue
        slices = segment.high - segment.low + 1
        total += segment.length * min(1.0, (edge - segment.low) / slices)
    return total


def portion_of(state: StreamState) -> int:
    """The bytes that may close in one batch: twice those of the busiest batch so far."""
    return max(LEAST_PORTION, 2 * state.peak_bytes)


def scattered(stream: LowStream, state: StreamState) -> list[ClosingSlices]:
    """The partials of open slices that are in too many segments. Large segments stay as they are;
    otherwise all open slices would be written again and again.
    """
    small = [s for s in state.partials(stream.key) if s.rows < LARGE_SEGMENT]
    made = work(stream, small, state.streams[stream.key].until, None, together=True)
    return [slices for slices in made if len(slices.segments) >= MANY_SEGMENTS]
