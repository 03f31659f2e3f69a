"""The quantile strategies of paper 1, 4.1, as contenders, and the check of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.experiment import Figures
from bench.holistic.contenders import HIGH_ONLY, LOW_SKETCH, NULL
from bench.holistic.high_only import high_only
from bench.holistic.level_costs import Udaf
from bench.trees.asked import WRONG
from terascope.sketches.base import StateKind
from terascope.sketches.greenwald_khanna import quantile_kind
from terascope.sketches.kll import quantiles_of
from terascope.sketches.quantile_columns import SCRATCHPAD, Summaries

EPS: Final = 0.01
ALGORITHMS: Final = {"alg1_lite": "gk_lite", "alg2_heavy": "gk_heavy", "alg3_medium": "gk_medium"}
"""Contender -> strategy."""
CONTENDERS: Final = (NULL, HIGH_ONLY, LOW_SKETCH, *ALGORITHMS)
PERCENTS: Final = (5, 50, 95)
CHECKED_GROUPS: Final = 100


def quantile_udaf(contender: str, column: str, scratchpad: int = SCRATCHPAD) -> Udaf:
    return Udaf((column,), kind_of(contender, scratchpad))


def kind_of(contender: str, scratchpad: int) -> StateKind | None:
    """None for the null UDAF. The low sketch is a summary that never leaves before its group."""
    if contender == NULL:
        return None
    if contender == HIGH_ONLY:
        return high_only(quantile_kind(EPS, "gk_lite", scratchpad))
    if contender == LOW_SKETCH:
        whole = partial(Summaries, EPS)
        return StateKind(f"quantile({EPS}) low only", whole, whole)
    return quantile_kind(EPS, ALGORITHMS[contender], scratchpad)


def wrong_quantiles(groups: pa.Table, path: Path, udafs: tuple[Udaf, ...]) -> Figures:
    """Percentiles of some groups whose rank is off by more than eps of all values."""
    chance = np.random.default_rng(1)
    places = chance.permutation(groups.num_rows)[:CHECKED_GROUPS].tolist()
    wrong = 0
    for place, udaf in enumerate(udafs):
        values = values_of(path, udaf.arguments[0])
        for row in places:
            key = groups.column("tb")[row].as_py(), groups.column("srcIP")[row].as_py()
            held = np.sort(values(*key))
            state = quantiles_of(groups.column(f"u{place}")[row].as_py())
            wrong += state.count != len(held)
            wrong += sum(rank_error(held, state.percentile(p), p) > EPS for p in PERCENTS)
    return {WRONG: wrong}


def rank_error(held: NDArray[np.int64], found: float | None, percent: float) -> float:
    """How far the ranks of a value are from the wanted one, as a share of all values."""
    assert found is not None
    rank = max(1, math.ceil(percent / 100 * len(held)))
    first = int(np.searchsorted(held, found, "left")) + 1
    last = int(np.searchsorted(held, found, "right"))
    off = max(0, first - rank, rank - last)
    return off / len(held) if last >= first else math.inf


def values_of(path: Path, column: str) -> Callable[[int, int], NDArray[np.int64]]:
    """The values of each group of a file."""
    table = pq.read_table(path, columns=list(dict.fromkeys(("tb", "srcIP", column))))
    keys = pa.table({"tb": table.column("tb"), "srcIP": table.column("srcIP")})
    epochs, sources = (keys.column(n).to_numpy() for n in ("tb", "srcIP"))
    order = np.lexsort((sources, epochs))
    values: NDArray[np.int64] = table.column(column).to_numpy()[order]
    packed = epochs[order] * (1 << 33) + sources[order]

    def of(tb: int, source: int) -> NDArray[np.int64]:
        wanted = tb * (1 << 33) + source
        first, end = (int(np.searchsorted(packed, wanted, side)) for side in ("left", "right"))
        return values[first:end]

    return of
