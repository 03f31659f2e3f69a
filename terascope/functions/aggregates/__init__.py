"""The aggregates of GSQL, one small module per family.

A module declares `AGGREGATES` and, where an aggregate has further names, `SYNONYMS` (further name
-> name). It is registered by being in this folder, and the law tests take it up.
"""

from __future__ import annotations

from typing import Final

from terascope.functions.base import AggregateFunction
from terascope.functions.discovery import declaring, synonyms

_MODULES = declaring(__name__, __path__, "AGGREGATES")

AGGREGATES: Final[tuple[AggregateFunction, ...]] = tuple(a for m in _MODULES for a in m.AGGREGATES)
SYNONYMS: Final = synonyms(_MODULES)
