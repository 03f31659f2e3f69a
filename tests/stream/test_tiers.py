"""Spans of slices: whatever was built, windows are covered once, and long ones by few spans."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from terascope.functions.slices import SliceVector
from terascope.physical.stream.windows import FACTOR, tiers_of
from terascope.streaming.state.segments import Segment
from terascope.streaming.stored_rows import SLICES, base_stream, tier_stream
from terascope.streaming.tasks.windows import Built, SliceSpan, within

VECTORS = [SliceVector((5,)), SliceVector((2, 3)), SliceVector((6, 3, 6))]


@st.composite
def built(draw: st.DrawFn) -> Built:
    vector = draw(st.sampled_from(VECTORS))
    tiers = tiers_of(vector, 40 * FACTOR * vector.period)
    spans = st.sets(st.integers(-10, 60))
    return Built(vector, {tier: {tier * n for n in draw(spans)} for tier in tiers})


@given(built(), st.integers(-40, 40), st.integers(1, 900), st.sets(st.integers(-200, 4000)))
def test_time_is_covered_once_by_what_is_there(
    have: Built, begin: int, slices: int, wanted: set[int]
) -> None:
    vector = have.vector
    first = vector.start(begin)
    until = first
    for _ in range(slices):
        until = vector.end(until)
    edges = {vector.start(edge) for edge in wanted}
    spans = have.cover(first, until, edges)
    assert spans[0].start == first
    assert spans[-1].end == until
    assert all(a.end == b.start for a, b in pairwise(spans))
    for span in spans:
        assert not any(span.start < edge < span.end for edge in edges)
        if span.tier == SLICES:
            assert span.end == vector.end(span.start)
        else:
            assert span.start in have.begins[span.tier]
            assert span.end - span.start == span.tier


def test_a_long_window_is_a_few_spans() -> None:
    vector, hour = SliceVector((1,)), 3600
    tiers = tiers_of(vector, hour)
    everything = Built(vector, {tier: range(0, 3 * hour, tier) for tier in tiers})
    for end in range(hour, 2 * hour, 7):
        spans = everything.cover(end - hour, end)
        assert len(spans) <= 2 * (FACTOR - 1) * len(tiers) + hour // tiers[-1]


def test_what_is_missing_is_built_from_below() -> None:
    vector = SliceVector((1,))
    have = Built(vector, {8: {0, 8, 24}, 64: set()})
    assert list(have.missing([8, 64], 0, 35)) == [SliceSpan(8, 16, 24)]
    assert list(have.missing([8, 64], 0, 130))[-2:] == [
        SliceSpan(64, 64, 128),
        SliceSpan(64, 0, 64),
    ]
    assert list(have.missing([8], 10, 35)) == [SliceSpan(8, 16, 24)], "its first slices are gone"


def test_windows_that_are_short_have_no_tiers() -> None:
    assert tiers_of(SliceVector((5,)), 60) == ()
    assert tiers_of(SliceVector((10,)), 3600) == (80, 640)


def test_segments_of_spans() -> None:
    segments = [Segment("s", "rows", 0, "f", 0, 1, 1, low, low + 4) for low in range(0, 40, 5)]
    spans = [SliceSpan(SLICES, 7, 8), SliceSpan(SLICES, 19, 20)]
    assert [s.low for s in within(segments, spans, SLICES)] == [5, 15]
    assert list(within(segments, [], SLICES)) == []


def test_a_tier_is_a_stream_of_its_own() -> None:
    assert base_stream(tier_stream("0a1b.2", 80)) == "0a1b.2"
    assert tier_stream("0a1b", SLICES) == "0a1b"
