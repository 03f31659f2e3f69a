"""The scalar functions of GSQL, by theme: one small module each.

Every module gives `SCALARS` and, where a function has further names, `SYNONYMS` (further name ->
name). A new module is added to the tuple here and to nothing else.
"""

from __future__ import annotations

from typing import Final

from terascope.functions.base import Scalar
from terascope.functions.scalars import (
    addresses,
    lists,
    logic,
    math,
    patterns,
    slices,
    tables,
    text,
)

_MODULES = (addresses, lists, logic, math, patterns, slices, tables, text)

SCALARS: Final[tuple[Scalar, ...]] = tuple(s for module in _MODULES for s in module.SCALARS)
SYNONYMS: Final[dict[str, str]] = {
    name: meant for module in _MODULES for name, meant in module.SYNONYMS.items()
}
