"""The errors of heavy hitters, against the exact weights of a group.

In: the identifiers and weights of all tuples, and a state or a list of heavy hitters. Out: the
error of each estimate as a share of the weight of the group. An estimate below the weight is
infinitely wrong, and one that is off by more than the error given with it by all of the weight.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.functions.base import Value
from terascope.functions.bounds import Errors, impossible, no_errors
from terascope.functions.hitter_lists import written
from terascope.sketches.hitter_answers import Hitters

TRIED_IDS: Final = 200
"""The number of identifiers whose estimates are compared."""


def exact_weights(columns: Sequence[pa.Array]) -> dict[Value, int]:
    """The weight of each identifier, the tuples without a positive weight left out."""
    weights = columns[1].to_numpy(zero_copy_only=False)
    coded = columns[0].filter(pa.array(weights > 0)).dictionary_encode()
    sums = np.zeros(len(coded.dictionary), np.int64)
    np.add.at(sums, coded.indices.to_numpy(), weights[weights > 0])
    return dict(zip(coded.dictionary.to_pylist(), sums.tolist(), strict=True))


def shares(pairs: Sequence[tuple[int, int, int]], total: int) -> Errors:
    """The errors of estimates. `pairs`: the estimate, its given error, and the exact weight."""
    if not pairs:
        return no_errors()
    estimates, given, exact = np.array(pairs, np.float64).T
    over = estimates - exact
    rounded = np.maximum(0, over - 1)  # bounds are rounded up to whole weights
    return np.where(over < 0, np.inf, np.where(over > given, 1.0, rounded / total))


def state_errors(columns: Sequence[pa.Array], found: bytes | None) -> Errors:
    """The errors of a state, for the heaviest identifiers and some others."""
    weights = exact_weights(columns)
    if found is None or not weights:
        return no_errors() if found is None and not weights else impossible()
    held, total = Hitters(found), sum(weights.values())
    if held.total != total:
        return impossible()
    ids = list(weights)[:: max(1, len(weights) // TRIED_IDS)]
    hits = [held.estimate(id) for id in ids]
    return shares([(hit.estimate, hit.error, weights[hit.id]) for hit in hits], total)


def list_errors(columns: Sequence[pa.Array], found: str | None, k: int) -> Errors:
    """The errors of a list in JSON."""
    weights = {written(id): weight for id, weight in exact_weights(columns).items()}
    if found is None or not weights:
        return no_errors() if found is None and not weights else impossible()
    entries, total = json.loads(found), sum(weights.values())
    named = [entry for entry in entries if "other" not in entry]
    ids = [entry["id"] for entry in named]
    if len(set(ids)) < len(ids) or len(ids) > k or not set(ids) <= weights.keys():
        return impossible()
    pairs = [(entry["estimate"], entry["error"], weights[entry["id"]]) for entry in named]
    errors = shares(pairs, total)
    for entry in entries[len(named) :]:  # it has the errors of all entries before it
        others = total - sum(weights[id] for id in ids)
        apart = max(0, abs(entry["other"] - others) - len(named))
        errors = np.append(errors, apart / (len(named) * total))
    return errors
