"""Arrow's bitmaps: booleans and validity.

In: a byte or an integer per row. Out: bits, the first row in the lowest.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from terascope.connectors.packets.compiled import Bytes, Ints


def bitmap(values: Bytes, bit: int) -> pa.Buffer:
    """Whether each byte has a bit."""
    return pa.py_buffer(np.packbits(values & bit, bitorder="little"))


def validity_by_bit(values: Bytes, bit: int) -> pa.Buffer | None:
    """The rows that have a bit are valid; None when all have it."""
    return None if (values & bit).all() else bitmap(values, bit)


def validity_by_sign(values: Ints) -> pa.Buffer | None:
    """The rows that are not negative are valid; None when all are."""
    valid = values >= 0
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
