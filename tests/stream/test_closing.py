"""Which slices close, and in portions of which size."""

from __future__ import annotations

import pytest

from terascope.functions.base import Slope, Trend
from terascope.plan.rel import Scan, SourceField
from terascope.streaming.closing import bytes_before, scan_watermarks, within
from terascope.streaming.state.segments import Segment
from terascope.streaming.state.state import Seen
from terascope.types import Type

SECONDS = 10**9


def segment(low: int, high: int, length: int) -> Segment:
    return Segment("s", "groups", 0, "f", 0, length, 1, low, high)


def scan(*interfaces: str, band: int = 0) -> Scan:
    clock = SourceField("time", Type.UINT, Slope(Trend.INCREASING, band), "s")
    number = SourceField("seq", Type.UINT, Slope(Trend.INCREASING))
    falling = SourceField("left", Type.UINT, Slope(Trend.DECREASING))
    return Scan(tuple(interfaces), "P", (clock, number, falling))


def test_promise_is_that_of_the_slowest() -> None:
    seen = {
        "a": Seen(largest={"time": 100, "seq": 7, "left": 50}, smallest={"left": 20}),
        "b": Seen(largest={"time": 90, "seq": 9, "left": 50}, smallest={"left": 30}),
    }
    promised = scan_watermarks(seen, 0, ended=False)(scan("a", "b"))
    assert promised == {"time": 90, "seq": 7, "left": 30}


def test_silent_source_is_moved_by_the_clock_for_clocks_only() -> None:
    """Dissertation 4.4.5: the clock less the skew; a sequence number tells no time."""
    seen = {"a": Seen(largest={"time": 100, "seq": 7}), "b": Seen(quiet_ns=105 * SECONDS)}
    promised = scan_watermarks(seen, 2 * SECONDS, ended=False)(scan("a", "b"))
    assert promised == {"time": 100}
    alone = scan_watermarks(seen, 2 * SECONDS, ended=False)(scan("b"))
    assert alone == {"time": 103}


def test_clock_holds_without_the_band() -> None:
    """The band is taken off later: what the clock says is larger by it."""
    seen = {"b": Seen(quiet_ns=105 * SECONDS)}
    assert scan_watermarks(seen, 0, ended=False)(scan("b", band=4)) == {"time": 109}


def test_interface_that_said_nothing_holds_everything() -> None:
    assert scan_watermarks({"a": Seen(largest={"time": 3})}, 0, ended=False)(scan("a", "b")) == {}


def test_all_closes_when_the_portion_holds_it() -> None:
    assert within([segment(1, 1, 50), segment(2, 2, 50)], None, 3, 100) == 3


@pytest.mark.parametrize("portion", [1, 60, 110, 160, 1000])
def test_portion_bounds_what_closes_but_one_slice_always_does(portion: int) -> None:
    segments = [segment(n, n, 50) for n in range(10, 20)]
    edge = within(segments, None, 20, portion)
    assert edge == min(20, 10 + max(1, portion // 50))
    assert bytes_before(segments, int(edge)) <= max(portion, 50)


def test_portions_close_everything_in_the_end() -> None:
    segments = [segment(n, n + 3, 40) for n in range(0, 30, 2)]
    low: int | None = None
    for _ in range(100):
        low = int(within(segments, low, 33, 100))
        if low == 33:
            return
    pytest.fail("never came to the end")
