"""The scalar functions of GSQL, by theme: one small module each.

A module declares `SCALARS` and, where a function has further names, `SYNONYMS` (further name ->
name). It is registered by being in this folder.
"""

from __future__ import annotations

from typing import Final

from terascope.functions.base import Scalar
from terascope.functions.discovery import declaring, synonyms

_MODULES = declaring(__name__, __path__, "SCALARS")

SCALARS: Final[tuple[Scalar, ...]] = tuple(s for m in _MODULES for s in m.SCALARS)
SYNONYMS: Final = synonyms(_MODULES)
