"""The types of undeclared columns, from a sample of their texts.

INT if all texts are integers, FLOAT if all are numbers, BOOL if all are words for true or false, IP
if all are addresses, else STRING. Empty texts fit any type; a column that has only those is a
STRING.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from terascope.connectors.tables import kernels
from terascope.connectors.tables.convert import Texts, from_text
from terascope.types import Type

SAMPLE_BYTES = 1024 * 1024
SAMPLE_ROWS = 10_000


def infer_type(texts: Texts) -> Type:
    """The narrowest type that holds every text of a sample."""
    filled = texts.valid & (np.diff(texts.offsets) > 0)
    if not filled.any():
        return Type.STRING
    states = np.empty(len(texts), np.uint8)
    kernels.parse_integers(texts.data, texts.offsets, np.empty(len(texts), np.int64), states, False)
    if not (states[filled] > kernels.EMPTY).any():
        return Type.INT
    for type in (Type.FLOAT, Type.BOOL):
        if _fits(texts, type):
            return type
    # Bare numbers convert to IP when they are declared so, but are no sign of one.
    has_numbers = pc.any(pc.match_substring_regex(texts.arrow(), r"^\s*[0-9]+\s*$")).as_py()
    return Type.IP if not has_numbers and _fits(texts, Type.IP) else Type.STRING


def _fits(texts: Texts, type: Type) -> bool:
    faults = from_text(texts, type).faults
    return faults is None or not faults.any()
