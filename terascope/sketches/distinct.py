"""Distinct counts: what their states say, and set operations between them.

In: packed states of HyperLogLog, of Flajolet and Martin, or Theta sketches. Out: how many different
values they have seen; of Theta sketches also the union, the intersection and the difference of two,
as states of the same kind, and their Jaccard similarity.

HyperLogLog is the fastest and smallest, but only Theta sketches can be intersected. Both hash as
Apache DataSketches does; the bytes of a state from the 16th on are a sketch of that library.
"""

from __future__ import annotations

from typing import Any, Final

import datasketches
import numpy as np

from terascope.sketches.base import StateKind, bytes_of, packed_states
from terascope.sketches.flajolet_martin import (
    FLAJOLET_MARTIN_KIND,
    bitmap_estimate,
    measure_bitmaps,
)
from terascope.sketches.hll import HLL_KIND, LG_REGISTERS, hll_estimate, measure_hll
from terascope.sketches.packed_form import checked_one, refusal
from terascope.sketches.theta import (
    FAMILY,
    FLAJOLET_MARTIN,
    HLL,
    NAME,
    SKETCH,
    THETA,
    THETA_KIND,
    VARIANTS,
    count_hashes,
    wrapped,
)

KINDS: Final[dict[str, StateKind]] = {
    "hll": HLL_KIND,
    "theta": THETA_KIND,
    "fm": FLAJOLET_MARTIN_KIND,
}
"""The kinds of states by the names of strategies."""


THETA_FAMILY: Final = 3
"""The third byte of a Theta sketch."""


def distinct_estimate(state: bytes) -> float:
    """The number of different values that a state has seen."""
    variant = checked_state(state)
    if variant == HLL:
        return hll_estimate(state)
    if variant == FLAJOLET_MARTIN:
        return bitmap_estimate(state)
    return float(theta_sketch(state).get_estimate())


def tuples_seen(state: bytes) -> int:
    """The number of tuples that a state has seen; 0 for the result of a set operation."""
    checked_state(state)
    return int.from_bytes(state[8:16], "little")


def checked_state(state: bytes) -> int:
    """The variant of a state, all of which was checked."""
    variant = checked_one(state, FAMILY, NAME, VARIANTS, SKETCH)
    starts, data = bytes_of(packed_states([state]))
    check: Any = (measure_hll, measure_bitmaps)[variant] if variant < THETA else count_hashes
    found = np.zeros(2 if variant == THETA else 1, np.int64)
    if check(starts, data, found) >= 0:
        raise ValueError(refusal(state, FAMILY, NAME))
    return variant


def theta_sketch(state: bytes) -> Any:
    """The sketch of DataSketches in a Theta state."""
    if checked_state(state) != THETA:
        raise ValueError("only states of distinct_state(x) have set operations")
    return datasketches.compact_theta_sketch.deserialize(state[SKETCH:])


def sketch_bytes(state: bytes) -> bytes:
    """The sketch of DataSketches in a state, for Spark's functions on such sketches."""
    if checked_state(state) == FLAJOLET_MARTIN:
        raise ValueError("a state of Flajolet and Martin is no sketch of DataSketches")
    return state[SKETCH:]


def state_of_sketch(sketch: bytes) -> bytes:
    """The state around a Theta sketch, or an HLL sketch of at least 4096 registers, in any form
    that DataSketches writes.
    """
    try:
        if sketch[2:3] == bytes((THETA_FAMILY,)):
            held = datasketches.compact_theta_sketch.deserialize(sketch)
            state = wrapped(held.serialize(), THETA)
        else:
            union = datasketches.hll_union(LG_REGISTERS)
            union.update(datasketches.hll_sketch.deserialize(sketch))
            found = union.get_result(datasketches.tgt_hll_type.HLL_8)
            state = wrapped(found.serialize_compact(), HLL)
    except (ValueError, RuntimeError, IndexError) as mistake:
        raise ValueError("these bytes are no sketch of distinct values") from mistake
    checked_state(state)
    return state


def united(left: bytes, right: bytes) -> bytes:
    union = datasketches.theta_union()
    for state in (left, right):
        union.update(theta_sketch(state))
    return wrapped(union.get_result().serialize(), THETA)


def intersected(left: bytes, right: bytes) -> bytes:
    common = datasketches.theta_intersection()
    for state in (left, right):
        common.update(theta_sketch(state))
    return wrapped(common.get_result().serialize(), THETA)


def subtracted(left: bytes, right: bytes) -> bytes:
    """The values of the first state that the second has not."""
    without = datasketches.theta_a_not_b()
    rest = without.compute(theta_sketch(left), theta_sketch(right))
    return wrapped(rest.serialize(), THETA)


def jaccard(left: bytes, right: bytes) -> float:
    """The share of the values of either that both have; that of two empty states is 1."""
    similarity = datasketches.theta_jaccard_similarity.jaccard(
        theta_sketch(left), theta_sketch(right)
    )
    return float(similarity[1])
