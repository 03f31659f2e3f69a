"""The heavy-hitter strategies of paper 1, 4.2, as contenders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from bench.holistic.contenders import HIGH_ONLY, LOW_SKETCH, NULL
from bench.holistic.level_costs import Maker, Udaf
from terascope.functions.aggregates.hitters import USUAL, state_kind
from terascope.sketches.base import StateKind
from terascope.sketches.count_min import SketchSize
from terascope.sketches.hitter_high import EXACT, HitterStates
from terascope.sketches.hitter_ids import IdKind
from terascope.sketches.hitter_low import BufferedPairs, HashedPairs

IDS: Final = IdKind.INTEGER
LOW_LEVELS: Final[Mapping[str, Maker]] = {
    "buffer": partial(BufferedPairs, IDS),
    "hash": partial(HashedPairs, IDS, whole_tables=True),
    "compress": partial(HashedPairs, IDS),
}
DIRECT, ADAPTIVE = "direct", "adaptive"
PLAIN: Final = "_plain"
CHOSEN: Final = "chosen"
"""What the engine takes when a query names no strategy."""
SIX_PAIRS: Final = tuple(f"{low}+{high}" for high in (DIRECT, ADAPTIVE) for low in LOW_LEVELS)
"""The pairs that the paper compares on real traffic."""
CONTENDERS: Final = (NULL, HIGH_ONLY, LOW_SKETCH, *SIX_PAIRS)


def hitter_udaf(
    contender: str, column: str = "destIP", weight: str = "len", exact: int = EXACT
) -> Udaf:
    if contender == NULL:
        return Udaf((weight,))
    return Udaf((column, weight), kind_of(contender, exact))


def kind_of(contender: str, exact: int = EXACT) -> StateKind:
    """`exact`: the identifiers that adaptive states keep exactly. A contender whose name ends in
    PLAIN has the sketch of the paper, without the candidates that ours keeps beside it.
    """
    if contender == CHOSEN:
        return state_kind(IDS, USUAL, is_chosen=True)
    size = SketchSize(candidates=0) if contender.endswith(PLAIN) else SketchSize()
    contender = contender.removesuffix(PLAIN)
    adaptive = partial(HitterStates, IDS, exact, size)
    direct = partial(HitterStates, IDS, 0, size)
    if contender == HIGH_ONLY:
        return StateKind(contender, partial(BufferedPairs, IDS, 1), adaptive)
    if contender == LOW_SKETCH:
        return StateKind(contender, direct, direct)
    low, _, high = contender.partition("+")
    merging = {DIRECT: direct, ADAPTIVE: adaptive}[high]
    return StateKind(f"{contender} {exact} {size}", LOW_LEVELS[low], merging)
