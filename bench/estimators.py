"""Estimators of distinct values that statistics could be made with instead, for comparison.

In: frequencies of frequencies of a sample of r of n tuples, and n/r. Out: an estimate each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from terascope.sharing.distinct import Frequencies, fit_growth, gee


def chao(found: Frequencies, scale: float) -> float:
    """Chao's lower bound, for samples without replacement."""
    single, double = found.of_size(1), found.of_size(2)
    if scale <= 1.0 or not single:
        return float(found.groups)
    return found.groups + single**2 / (2 * double + single / (scale - 1.0))


def shlosser(found: Frequencies, scale: float) -> float:
    """Shlosser's, made for skewed values."""
    if scale <= 1.0 or not found.of_size(1):
        return float(found.groups)
    missed = (1.0 - 1.0 / scale) ** found.sizes.astype(np.float64)
    seen_once = found.sizes / scale * missed / (1.0 - 1.0 / scale)
    return float(
        found.groups + found.of_size(1) * (found.numbers @ missed) / (found.numbers @ seen_once)
    )


def adaptive(found: Frequencies, scale: float) -> float:
    """AE of Charikar et al.: rare groups are taken to be equally frequent."""
    single, double = found.of_size(1), found.of_size(2)
    if scale <= 1.0 or not single:
        return float(found.groups)
    common = found.sizes >= 3
    sizes, numbers = found.sizes[common].astype(np.float64), found.numbers[common]
    unseen = float(numbers @ np.exp(-sizes))
    once = float(numbers @ (sizes * np.exp(-sizes)))
    tuples = single + 2 * double

    def excess(rare: float) -> float:
        decay = math.exp(-tuples / rare)
        return rare - single - double - single * (unseen + rare * decay) / (once + tuples * decay)

    low, high = float(single + double), scale * found.tuples
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return found.groups + low - single - double


def growth(found: Frequencies, scale: float) -> float:
    """Ours."""
    return fit_growth(found, scale).seen_in(scale)


ESTIMATORS: Mapping[str, Callable[[Frequencies, float], float]] = {
    "terascope": growth,
    "gee": gee,
    "chao": chao,
    "shlosser": shlosser,
    "adaptive": adaptive,
}
