"""The real tables as a measure of the models: draws, and a chain of two tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from terascope.functions.slots import COUNT
from terascope.kernels.columns.arrays import Rows
from terascope.kernels.tables.bounded_tables import BoundedTable
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import Policy

Codes = npt.NDArray[np.int64]
SHAPE = Shape(1, (COUNT,), with_epoch=True)


def draws(groups: int, exponent: float, count: int, seed: int) -> Codes:
    weight = np.arange(1, groups + 1.0) ** -exponent
    edges = np.cumsum(weight / weight.sum())
    at = np.searchsorted(edges, np.random.default_rng(seed).random(count))
    return np.minimum(at, groups - 1)


def through(codes: Codes, policy: Policy, buckets: int) -> Codes:
    """The groups of the rows that leave a table in one epoch, in their order."""
    left: list[Rows] = []
    table = BoundedTable(
        SHAPE, policy, buckets, "eager", lambda rows: left.append(rows[:, 2].copy())
    )
    count = len(codes)
    rows = np.arange(count, dtype=np.int32)
    table.add(np.zeros(count, np.int64), rows, [codes.astype(np.int32)], [], [])
    table.flush()
    return np.concatenate(left) >> 32


def held_at_the_end(codes: Codes, policy: Policy, buckets: int) -> int:
    """Groups in a table after one epoch, before it is flushed."""
    table = BoundedTable(SHAPE, policy, buckets, "eager", lambda rows: None)
    rows = np.arange(len(codes), dtype=np.int32)
    table.add(np.zeros(len(codes), np.int64), rows, [codes.astype(np.int32)], [], [])
    return table.occupied


def distinct(codes: Codes) -> float:
    return float(len(np.unique(codes)))
