"""Why no source was sampled, in words.

In: what a sample could have gained. Out: one line, where there was something to decide by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from terascope.physical.statistics.prospects import Prospect


def prospect_notes(prospect: Prospect | None) -> Iterator[str]:
    if prospect is not None and prospect.aggregations > 1 and not prospect.pays:
        most = max(1, math.ceil(10 * prospect.saves_seconds)) / 10
        yield f"not sampled: sharing would hardly save more than {most:.1f} s"
