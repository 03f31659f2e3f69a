from __future__ import annotations

from itertools import pairwise

import pytest

from terascope.plan.rel import Slices, Sliding, Window, WindowSpec
from terascope.reference.rows import Row
from tests.oracle.agreement import rows_of
from tests.oracle.build import ints, records


def windows(spec: WindowSpec, *times: int | None) -> list[Row]:
    source = ints("t", names="ts")
    return rows_of(Window(source, spec, "ts"), {"t": records("ts", *((t,) for t in times))})


def test_tumbling_windows_partition_time() -> None:
    assert windows(Sliding(10, 10), 0, 9, 10, 25) == [
        (0, 0, 10),
        (9, 0, 10),
        (10, 10, 20),
        (25, 20, 30),
    ]


def test_a_time_on_an_edge_belongs_to_the_window_that_begins_there() -> None:
    assert windows(Sliding(6, 3), 3) == [(3, 0, 6), (3, 3, 9)]


def test_range_that_is_no_multiple_of_the_slide() -> None:
    # [t-18, t) at multiples of 15: 20 lies in [12, 30), 14 in [-3, 15) and [12, 30).
    assert windows(Sliding(18, 15), 20, 14) == [(14, -3, 15), (14, 12, 30), (20, 12, 30)]


def test_hopping_windows_leave_gaps() -> None:
    # [7, 10), [17, 20), ...: 5 and 16 are in none.
    assert windows(Sliding(3, 10), 5, 7, 9, 10, 16, 17) == [(7, 7, 10), (9, 7, 10), (17, 17, 20)]


def test_windows_before_time_zero() -> None:
    assert windows(Sliding(4, 2), -1, -2) == [(-2, -4, 0), (-2, -2, 2), (-1, -4, 0), (-1, -2, 2)]
    assert windows(Sliding(10, 10), -1, -10, -11) == [(-11, -20, -10), (-10, -10, 0), (-1, -10, 0)]


def test_a_tuple_without_time_is_in_no_window() -> None:
    assert windows(Sliding(5, 5), None, 1) == [(1, 0, 5)]
    assert windows(Slices((2, 3)), None, 1) == [(1, 0, 2)]


def test_slices_repeat_from_time_zero() -> None:
    # Edges ..., -15, -3, 0, 12, 15, 27, ...
    assert windows(Slices((12, 3)), 0, 11, 12, 14, 15, -1, -4, -15) == [
        (-15, -15, -3),
        (-4, -15, -3),
        (-1, -3, 0),
        (0, 0, 12),
        (11, 0, 12),
        (12, 12, 15),
        (14, 12, 15),
        (15, 15, 27),
    ]


def elements(spec: WindowSpec, *bounds: tuple[int | None, int | None]) -> list[Row]:
    source = ints("t", names="wstart x wend")
    rows = [(start, place, end) for place, (start, end) in enumerate(bounds)]
    tables = {"t": records("wstart x wend", *rows)}
    return rows_of(Window(source, spec, "wend", elements=True), tables)


def test_an_element_belongs_to_windows_that_contain_it() -> None:
    assert elements(Sliding(18, 15), (0, 12), (12, 15), (15, 27)) == [
        (0, -3, 15),
        (1, -3, 15),
        (1, 12, 30),
        (2, 12, 30),
    ]


def test_an_element_over_an_edge_is_in_no_tumbling_window() -> None:
    assert elements(Sliding(10, 10), (0, 10), (5, 15), (-10, -5)) == [(0, 0, 10), (2, -10, 0)]


def test_an_element_lies_inside_one_slice() -> None:
    assert elements(Slices((12, 3)), (0, 4), (8, 12), (10, 14), (12, 15), (None, 3)) == [
        (0, 0, 12),
        (1, 0, 12),
        (3, 12, 15),
    ]


@pytest.mark.parametrize("spec", [Sliding(7, 3), Sliding(2, 5), Sliding(4, 4), Slices((1, 4, 2))])
def test_every_time_agrees_with_the_definition(spec: WindowSpec) -> None:
    given = windows(spec, *range(-20, 20))
    if isinstance(spec, Sliding):
        expected = [
            (ts, t - spec.range, t)
            for ts in range(-20, 20)
            for t in range(-100, 100)
            if t % spec.slide == 0 and t - spec.range <= ts < t
        ]
    else:
        edges = [e + p * 7 for p in range(-10, 10) for e in (0, 1, 5)]
        expected = [(ts, a, b) for ts in range(-20, 20) for a, b in pairwise(edges) if a <= ts < b]
    assert given == expected
