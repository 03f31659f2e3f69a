"""What the flow records to generate should be like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from terascope.traffic.profile import ProfileError, check_ranges

EPOCH_EDGE: Final = 1_699_999_800
"""A full five minutes, so that an hour of records has twelve epochs."""
RECORDS_PER_TUPLE: Final = 8
TUPLES_PER_PAIR: Final = 4
PAIRS_PER_ADDRESS: Final = 8
MOST_TUPLES: Final = 8_000_000
RANGES: Final = {
    "records": (1, 2**40),
    "duration": (1, 2**31),
    "start_time": (0, 2**32 - 1),
    "seed": (0, 2**63 - 1),
}


@dataclass(frozen=True)
class FlowProfile:
    """The settings of one file of flow records."""

    records: int = 1_000_000
    duration: int = 3600
    """Seconds from the first record to the last."""
    start_time: int = EPOCH_EDGE
    seed: int = 1
    source_exponent: float = 0.85
    pair_exponent: float = 0.67
    tuple_exponent: float = 0.48

    def __post_init__(self) -> None:
        check_ranges(self, RANGES)
        if self.start_time + self.duration >= 2**32:
            raise ProfileError("the records would end after 2106")

    @property
    def tuples(self) -> int:
        """Different 4-tuples to draw from."""
        return max(64, min(MOST_TUPLES, self.records // RECORDS_PER_TUPLE))

    @property
    def pairs(self) -> int:
        return self.tuples // TUPLES_PER_PAIR

    @property
    def addresses(self) -> int:
        return max(16, self.pairs // PAIRS_PER_ADDRESS)
