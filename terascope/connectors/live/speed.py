"""How fast a trace is replayed.

In: what a user writes, `1x`, `10x`, `0.5x`, `max`. Out: a `Speed`. No speed at all means live: the
clock on the wall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from terascope.diagnostic import SourceError

FASTEST = "max"


@dataclass(frozen=True)
class Speed:
    """Seconds of the trace in a second on the wall."""

    factor: float | None
    """None: as fast as it can be read."""

    @property
    def is_paced(self) -> bool:
        return self.factor is not None

    def trace_ns(self, wall_ns: int) -> int:
        """How far the trace moves in a time on the wall; only of a paced replay."""
        assert self.factor is not None, "the fastest replay does not ask the clock"
        return int(wall_ns * self.factor)

    @staticmethod
    def parse(text: str | None) -> Speed | None:
        """None is live.

        Raises:
            SourceError: the text is no speed.
        """
        if text is None:
            return None
        word = text.strip().lower()
        if word == FASTEST:
            return Speed(None)
        try:
            factor = float(word.removesuffix("x"))
        except ValueError:
            factor = math.nan
        if not (word.endswith("x") and 0 < factor < math.inf):
            raise SourceError(f"'{text}' is no speed; write 1x, 10x, 0.5x or {FASTEST}")
        return Speed(factor)

    def __str__(self) -> str:
        return FASTEST if self.factor is None else f"{self.factor:g}x"
