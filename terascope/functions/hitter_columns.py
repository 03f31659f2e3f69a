"""Heavy hitters of many groups as text, all at once.

In: a column of packed states of heavy hitters. Out: the list of each in JSON, the same that
terascope.functions.hitter_lists writes for one. The pairs of all exact and frequent-items states
are read, added up and put in order together; states with a sketch are left to the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from terascope.functions.base import ValueMistake
from terascope.functions.hitter_lists import written
from terascope.sketches.hitter_answers import identifier_of, rank
from terascope.sketches.hitter_ids import NAMED, HitterIds, IdKind
from terascope.sketches.hitter_layout import (
    FREQUENT,
    SKETCH,
    WEIGHT_MAX,
    contents_of,
    named_keys,
    pairs_of,
    variants_of,
)

Ints: TypeAlias = NDArray[np.int64]


def listed_column(
    name: str, packed: pa.Array, k: int, with_other: bool, one: Callable[[bytes], str | None]
) -> pa.Array:
    """The k heaviest identifiers of each state, and the weight of all others if it is wanted. `one`
    makes the list of a single state.
    """
    given = packed.cast(pa.large_binary())
    made: list[str | None] = [None] * len(given)
    held = given.drop_null()
    places = np.flatnonzero(given.is_valid().to_numpy(zero_copy_only=False))
    try:
        variants = variants_of(held)
        plain = np.flatnonzero(variants != SKETCH)
        texts = lists_of(held.take(pa.array(plain)), k, with_other)
    except ValueError as problem:
        raise ValueMistake(f"{name}: {problem}") from problem
    for place, text in zip(places[plain].tolist(), texts, strict=True):
        made[place] = text
    for number in np.flatnonzero(variants == SKETCH).tolist():
        made[int(places[number])] = one(held[number].as_py())
    return pa.array(made, pa.string())


def lists_of(packed: pa.Array, k: int, with_other: bool) -> list[str | None]:
    """The lists of states without sketches."""
    if not len(packed):
        return []
    heaviest = Heaviest.of(packed, k)
    entries = heaviest.entries()
    ends = np.cumsum(heaviest.counts).tolist()
    texts: list[str | None] = []
    begin = 0
    for number, end in enumerate(ends):
        own = entries[begin:end]
        begin = end
        if not heaviest.totals[number]:
            texts.append(None)
            continue
        if with_other:
            own = [*own, f'{{"id": null, "other": {heaviest.others[number]}}}']
        texts.append(f"[{', '.join(own)}]")
    return texts


@dataclass(frozen=True)
class Heaviest:
    """The heaviest identifiers of states, those of a state beside each other."""

    ids: HitterIds
    keys: Ints
    estimates: Ints
    errors: Ints
    counts: Ints
    """How many there are of each state."""
    totals: Ints
    others: Ints
    """The weight of all but these."""

    @classmethod
    def of(cls, packed: pa.Array, k: int) -> Heaviest:
        contents, ids = contents_of(packed), HitterIds(IdKind.NOTHING)
        states, keys, weights = added_up(*pairs_of(contents, named_keys(contents, ids)))
        count = len(packed)
        offsets = np.zeros(count, np.int64)
        totals = np.bincount(states, weights.astype(np.float64), count).astype(np.int64)
        if len(weights) and weights.max() > 1 << 50:  # too large for the sum of FLOATs
            np.add.at(totals := np.zeros(count, np.int64), states, weights)
        frequent = np.flatnonzero(variants_of(packed) == FREQUENT)
        head = contents.starts[frequent]
        offsets[frequent] = (contents.words[head + 2] & np.uint64(WEIGHT_MAX)).astype(np.int64)
        totals[frequent] = (contents.words[head + 3] & np.uint64(WEIGHT_MAX)).astype(np.int64)
        order = np.lexsort((ranks(keys, ids), -weights, states))
        states, keys, weights = states[order], keys[order], weights[order]
        counts = np.bincount(states, minlength=count)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        kept = np.arange(len(states)) - firsts < k
        states, keys, weights = states[kept], keys[kept], weights[kept]
        estimates = weights + offsets[states]
        errors = np.minimum(offsets[states], estimates)
        known = np.zeros(count, np.int64)
        np.add.at(known, states, estimates - errors)
        others = np.maximum(totals - known, 0)
        counts = np.bincount(states, minlength=count)
        return cls(ids, keys, estimates, errors, counts, totals, others)

    def entries(self) -> list[str]:
        """Each identifier as an object of JSON."""
        different, numbers = np.unique(self.keys, return_inverse=True)
        values = (written(identifier_of(self.ids, key)) for key in different.tolist())
        names = [json.dumps(value, ensure_ascii=False) for value in values]
        rows = zip(numbers.tolist(), self.estimates.tolist(), self.errors.tolist(), strict=True)
        return [f'{{"id": {names[n]}, "estimate": {e}, "error": {r}}}' for n, e, r in rows]


def added_up(states: Ints, keys: Ints, weights: Ints) -> tuple[Ints, Ints, Ints]:
    """Each identifier of a state once, in the order of states."""
    order = np.lexsort((keys, states))
    states, keys, weights = states[order], keys[order], weights[order]
    changed = np.ones(len(states), np.bool_)
    changed[1:] = (states[1:] != states[:-1]) | (keys[1:] != keys[:-1])
    if changed.all():
        return states, keys, weights
    begins = np.flatnonzero(changed)
    return states[begins], keys[begins], np.add.reduceat(weights, begins)


def ranks(keys: Ints, ids: HitterIds) -> Any:
    """Numbers that sort as the identifiers of keys do."""
    if not len(keys) or int(keys.max()) < NAMED:
        return keys
    different, numbers = np.unique(keys, return_inverse=True)
    values = [rank(identifier_of(ids, key)) for key in different.tolist()]
    order = sorted(range(len(values)), key=values.__getitem__)
    ranked = np.empty(len(order), np.int64)
    ranked[order] = np.arange(len(order))
    return ranked[numbers]
