"""Slopes and intervals of what was measured.

In: numbers. Out: the line of least squares through points; a mean with its interval of 95%
confidence (Student's t, as the runs are few).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev

STUDENT_95 = (
    *(inf, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""By degrees of freedom: how many standard errors to either side hold 95%."""
MANY = 1.960


@dataclass(frozen=True)
class Interval:
    """A mean, and how far to either side its true value lies with 95% confidence."""

    mean: float
    half: float

    def __str__(self) -> str:
        if self.half == inf:
            return f"{self.mean:+.2%} (one pair: no interval)"
        return f"{self.mean:+.2%} ± {self.half:.2%}"


def interval(values: Sequence[float]) -> Interval:
    """Of at least one value."""
    freedom = len(values) - 1
    if freedom == 0:
        return Interval(values[0], inf)
    factor = STUDENT_95[freedom] if freedom < len(STUDENT_95) else MANY
    return Interval(fmean(values), factor * stdev(values) / sqrt(len(values)))


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """By which y grows with x, by least squares; 0 when all x are the same."""
    middle_x, middle_y = fmean(xs), fmean(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    if not spread:
        return 0.0
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread


def second_half(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """The points whose x is in the second half of the time."""
    middle = (xs[0] + xs[-1]) / 2
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x >= middle]
    return [x for x, _ in pairs], [y for _, y in pairs]
