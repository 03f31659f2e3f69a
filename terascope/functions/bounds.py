"""Declared error bounds of approximate aggregates, as data.

In: nothing. Out: `ErrorBound`, which an aggregate declares for its parameters: the largest error of
an answer, and in which share of cases it holds. The sentence for people is derived from it, and the
laws check it (terascope.functions.bound_trials).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Errors: TypeAlias = NDArray[np.float64]
"""The errors of an answer: one, or one for each value that is taken from a state."""

ROUNDING: Final = 1e-9
"""An error that arithmetic with FLOATs makes."""


@dataclass(frozen=True)
class ErrorBound:
    """The largest error of an approximate answer."""

    most: float
    of: str = ""
    """The quantity that the error is a share of, such as "the number of different values"; empty:
    the error is the difference itself."""
    unit: str = ""
    """The unit of the difference, such as bits."""
    cases: float = 1.0
    """The share of groups whose answer is within the bound; 1: all."""
    values: float = 1.0
    """The share of the values taken from one state that are within it; 1: all."""
    exact_to: int = 0
    """Groups of no more different values than this have exact answers."""
    never_below: bool = False
    """No answer is smaller than the exact one."""

    def __str__(self) -> str:
        told = [f"exact up to {self.exact_to:,} different values in a group"] * bool(self.exact_to)
        told += ["never below the exact value"] * self.never_below
        size = f"{self.most * 100:.3g}% of {self.of}" if self.of else f"{self.most:g} {self.unit}"
        each = f" for {self.values:.0%} of the values" if self.values < 1 else ""
        often = f" in {self.cases * 100:g} of 100 groups" if self.cases < 1 else ""
        return "; ".join([*told, f"wrong by at most {size.strip()}{each}{often}"])

    def excess(self, errors: Errors, different: int) -> float:
        """How many times the allowed error the errors of one answer are; above 1, they break the
        bound. `different`: the number of different values of the group.
        """
        if not len(errors):
            return 0.0
        if different <= self.exact_to:
            return 0.0 if errors.max() <= ROUNDING else float("inf")
        if self.never_below and not np.isfinite(errors).all():
            return float("inf")
        counted = np.sort(errors)[max(0, int(np.ceil(self.values * len(errors))) - 1)]
        return float(max(0.0, counted - ROUNDING) / self.most)


def differences(found: ArrayLike, exact: ArrayLike, scale: float = 1.0) -> Errors:
    """The errors of numbers, as shares of `scale`."""
    return np.atleast_1d(np.abs(np.subtract(found, exact, dtype=np.float64)) / max(scale, 1e-300))


def impossible() -> Errors:
    """The error of an answer that no bound allows, such as NULL for a group with values."""
    return np.array([np.inf])


def no_errors() -> Errors:
    return np.zeros(0)
