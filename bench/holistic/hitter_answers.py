"""Answers of heavy-hitter states beside the true weights: their bounds, and the ranks of the top.

In: the groups of a query, and the file they are of. Out: figures. Estimates are never too small,
and the weights of a group add up; of the true top five an answer has each at its rank, one rank
off, more than that, or not at all (paper 1, Figure 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.experiment import Figures
from bench.holistic.level_costs import Udaf
from bench.trees.asked import WRONG
from terascope.sketches.hitter_answers import Hit, Hitters

RANKS: Final = ("correct", "off by one", "off by more", "missed")
TOP: Final = 5
CHECKED_GROUPS: Final = 100

Weights: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Identifiers and the weight of each, the heaviest first."""


def wrong_hitters(groups: pa.Table, path: Path, udafs: tuple[Udaf, ...]) -> Figures:
    """States whose weights do not add up, and estimates that are too small."""
    checked = (
        mistakes(state.total, state.hits()[:TOP], true)
        for place, udaf in enumerate(udafs)
        for state, true in checked_states(groups, path, udaf, f"u{place}")
    )
    return {WRONG: sum(checked)}


def mistakes(total: int, hits: Sequence[Hit], true: Weights) -> int:
    ids, weights = true
    known = dict(zip(ids.tolist(), weights.tolist(), strict=True))
    too_small = sum(hit.estimate < known.get(hit.id, 0) for hit in hits)
    return int(total != weights.sum()) + int(too_small)


def top_five(groups: pa.Table, path: Path, udafs: tuple[Udaf, ...]) -> Figures:
    """The same, and the percent of the true top five at each distance from their ranks."""
    (udaf,) = udafs
    counts, wrong = np.zeros(len(RANKS), np.int64), 0
    for state, true in checked_states(groups, path, udaf, "u0"):
        hits = state.hits()[:TOP]
        counts += distances([hit.id for hit in hits], true[0][:TOP].tolist())
        wrong += mistakes(state.total, hits, true)
    percents = (100 * counts / counts.sum()).tolist()
    return dict(zip(RANKS, percents, strict=True)) | {WRONG: wrong}


def distances(found: Sequence[int], true: Sequence[int]) -> NDArray[np.int64]:
    """How many of the true ones are at each of RANKS."""
    places = {identifier: place for place, identifier in enumerate(found)}
    off = [abs(places[each] - rank) if each in places else -1 for rank, each in enumerate(true)]
    kinds = (off.count(0), off.count(1), sum(o > 1 for o in off), off.count(-1))
    return np.array(kinds, np.int64)


def checked_states(
    groups: pa.Table, path: Path, udaf: Udaf, column: str
) -> Iterator[tuple[Hitters, Weights]]:
    """The states of some groups, with the true weights."""
    rows = np.random.default_rng(1).permutation(groups.num_rows)[:CHECKED_GROUPS]
    chosen = groups.take(pa.array(rows))
    true = weights_of(path, udaf)
    for row in chosen.select(["tb", "srcIP", column]).to_pylist():
        yield Hitters(row[column]), true(row["tb"], row["srcIP"])


def weights_of(path: Path, udaf: Udaf) -> Callable[[int, int], Weights]:
    """The true weights of each group of a file."""
    identifier, weight = udaf.arguments
    wanted = list(dict.fromkeys(("tb", "srcIP", identifier, weight)))
    table = pq.read_table(path, columns=wanted)
    sums = table.group_by(["tb", "srcIP", identifier]).aggregate([(weight, "sum")])
    order = [("tb", "ascending"), ("srcIP", "ascending"), (f"{weight}_sum", "descending")]
    in_order = sums.sort_by([*order, (identifier, "ascending")])
    columns = (in_order.column(n).to_numpy() for n in ("tb", "srcIP", identifier, f"{weight}_sum"))
    epochs, sources, ids, weights = columns
    keys = epochs * (1 << 33) + sources

    def of(tb: int, source: int) -> Weights:
        wanted = tb * (1 << 33) + source
        first, end = (int(np.searchsorted(keys, wanted, side)) for side in ("left", "right"))
        return ids[first:end], weights[first:end]

    return of
