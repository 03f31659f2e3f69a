"""The aggregates of GSQL, one small module per family.

Every module gives `AGGREGATES` and, where an aggregate has further names, `SYNONYMS` (further name
-> name). A new module is added to the tuple here and to nothing else: the law tests take it up.
"""

from __future__ import annotations

from typing import Final

from terascope.functions.aggregates import (
    average,
    bits,
    changes,
    concatenation,
    counting,
    distinct,
    ends,
    extremes,
    moving,
    rank,
    running,
    spread,
    time_average,
    total,
)
from terascope.functions.base import Aggregate

_MODULES = (
    counting,
    total,
    extremes,
    average,
    ends,
    spread,
    rank,
    distinct,
    bits,
    changes,
    concatenation,
    running,
    moving,
    time_average,
)

AGGREGATES: Final[tuple[Aggregate, ...]] = tuple(a for m in _MODULES for a in m.AGGREGATES)
SYNONYMS: Final[dict[str, str]] = {
    name: meant for module in _MODULES for name, meant in module.SYNONYMS.items()
}
