"""Paper 0, sections 3 and 4: paned and paired windows, composition, theorem 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terascope.functions.base import ValueMistake
from terascope.functions.slices import SliceVector, parse_slices
from terascope.sharing.slices import (
    MOST_SLICES,
    Periodic,
    composed,
    composed_panes,
    paired,
    rate,
    shortest,
    stretched,
    with_gaps,
)

slides = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12])
windows = st.builds(Periodic, st.integers(1, 40), slides)


def edges(vector: SliceVector) -> set[int]:
    return set(vector.starts)


def can_be_computed(window: Periodic, vector: SliceVector) -> bool:
    """Whether every window of two common periods begins and ends at an edge of the slices."""
    common = math.lcm(window.slide, vector.period)
    for end in range(0, 2 * common, window.slide):
        if any(vector.start(edge) != edge for edge in (end - window.range, end)):
            return False
    return True


def test_the_example_of_figure_3() -> None:
    window = Periodic(18, 15)
    assert paned(window).lengths == (3, 3, 3, 3, 3)
    assert paired(window).lengths == (12, 3)


def test_the_example_of_figure_5_sums_to_its_period() -> None:
    """The paper prints eleven slices that sum to 42: one is missing."""
    made = composed([Periodic(18, 15), Periodic(12, 9)])
    assert made is not None
    assert made.lengths == (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)
    assert sum(made.lengths) == 45


def test_tumbling_windows_have_one_slice_and_hopping_ones_a_gap() -> None:
    assert str(paired(Periodic(60, 60))) == "60"
    assert str(paired(Periodic(300, 60))) == "60"
    assert str(paired(Periodic(5, 10))) == "(5) 5"
    assert str(paired(Periodic(1, 86400))) == "(86399) 1"


@settings(deadline=None)
@given(windows)
def test_windows_are_made_of_their_slices(window: Periodic) -> None:
    for vector in (paired(window), paned(window)):
        assert vector.period == window.slide
        assert can_be_computed(window, vector)
    assert len(paired(window).lengths) <= min(2, len(paned(window).lengths))


@settings(deadline=None)
@given(st.lists(windows, min_size=1, max_size=4))
def test_theorem_1_every_rewriting_has_the_edges_of_the_paired_one(some: list[Periodic]) -> None:
    made = composed(some)
    panes = composed_panes(some)
    assert made is not None
    assert panes is not None
    period = math.lcm(*(w.slide for w in some))
    whole = stretched(made, period // made.period)
    assert all(can_be_computed(w, whole) for w in some)
    assert edges(whole) <= edges(panes)
    for window in some:
        own = stretched(paired(window), period // window.slide)
        assert edges(own) <= edges(whole)


@settings(deadline=None)
@given(windows, st.data())
def test_no_slices_without_an_edge_at_s_minus_r_mod_s(
    window: Periodic, data: st.DataObject
) -> None:
    """Whatever vector of the same period W[r, s] is computed from has an edge at s - r mod s."""
    inside = data.draw(st.sets(st.integers(1, max(1, window.slide - 1)), max_size=6))
    cuts = sorted({0, *(i for i in inside if i < window.slide)})
    lengths = tuple(b - a for a, b in zip(cuts, [*cuts[1:], window.slide], strict=True))
    vector = SliceVector(lengths)
    wanted = -window.range % window.slide
    assert can_be_computed(window, vector) == (wanted in edges(vector))


@settings(deadline=None)
@given(st.lists(windows, min_size=1, max_size=4, unique=True))
def test_the_rate_of_a_composition_is_within_its_bounds(some: list[Periodic]) -> None:
    made = composed(some)
    assert made is not None
    least, most = rate_bounds(some)
    every = Fraction(len(made.lengths), made.period)
    assert least <= every <= most
    assert rate(made) <= every


@settings(deadline=None)
@given(st.lists(windows, min_size=1, max_size=3))
def test_gaps_are_what_no_window_has(some: list[Periodic]) -> None:
    made = composed(some)
    assert made is not None
    for time in range(-made.period, 2 * made.period):
        ends = {w: (time // w.slide + 1) * w.slide for w in some}  # the first after it
        kept = any(end - window.range <= time for window, end in ends.items())
        assert made.has(time) == kept


@settings(deadline=None)
@given(st.lists(windows, min_size=2, max_size=3), st.integers(-200, 200))
def test_a_time_lies_in_its_slice(some: list[Periodic], time: int) -> None:
    made = composed(some)
    assert made is not None
    start, end = made.start(time), made.end(time)
    assert start <= time < end
    assert made.start(end) == end
    assert made.start(start) == start
    assert parse_slices(str(made)) == made
    assert shortest(stretched(made, 3)) == shortest(made)


def test_a_composition_does_not_explode() -> None:
    primes = [Periodic(1, 86_399), Periodic(1, 86_400), Periodic(7, 86_381)]
    assert composed(primes) is None
    for pair in combinations(primes, 2):
        made = composed(pair)
        assert made is None or len(made.lengths) <= MOST_SLICES


def test_slices_that_repeat_are_written_once() -> None:
    made = SliceVector((30, 30, 30, 5, 5, 1), frozenset({3, 4}))
    assert str(made) == "30x3 (5)x2 1"
    assert parse_slices(str(made)) == made


@pytest.mark.parametrize("text", ["", "3 x", "0", "3 -1", "(3", "3x", "3x0x2", "1x999999 1x999999"])
def test_what_are_no_slices_is_said(text: str) -> None:
    with pytest.raises(ValueMistake):
        parse_slices(text)


def paned(window: Periodic) -> SliceVector:
    """(g, ..., g) with g = gcd(r, s)."""
    step = math.gcd(window.range, window.slide)
    return with_gaps(range(0, window.slide, step), window.slide, [window])


def rate_bounds(windows: Sequence[Periodic]) -> tuple[Fraction, Fraction]:
    """What the rate of edges of a composition lies between: all edges of the others being among
    those of one, and no more than the last of the period being common.
    """
    rates = [Fraction(len(w.edges), w.slide) for w in windows]
    period = math.lcm(*(w.slide for w in windows))
    return max(rates), sum(rates, Fraction(0)) - Fraction(len(windows) - 1, period)
