"""The cost of subtrees when memory has a price.

Problem: with a budget, the saving of a change depends on how the memory of all tables is allocated
anew. Idea: give memory a price, so many hash operations a byte. Then a subtree, and a change within
it, can be judged by itself; and the trees that are tried do not depend on the budget.

In: the curve of a table, the cost of the rows that leave it, a price. Out: W(n), the least of (cost
below the table + price * bytes) when n rows enter it, on a grid of n; and the best size.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from terascope.machine_code import compiled
from terascope.sharing.curves import Curve
from terascope.sharing.evictions import Floats

GRID: Final = 48


@compiled
def best_size(
    log_inputs: Floats,
    log_out: Floats,
    buckets: Floats,
    byte_price: float,
    below: Floats,
    grid: Floats,
    rows_in: float,
) -> tuple[float, float, float]:
    """The cheapest size of a table: its cost, the buckets, the rows that leave it.

    `below` is the cost of a leaving row, on the grid; `byte_price` is for a whole bucket.
    """
    log_step = np.log(grid[1])
    points = len(log_inputs)
    flat = points == 1 or np.log(rows_in) <= log_inputs[0]
    low, part = 0, 0.0
    if not flat:
        at = (np.log(rows_in) - log_inputs[0]) / (log_inputs[1] - log_inputs[0])
        low = min(int(at), points - 2)
        part = min(at - low, 1.0)
    best, best_buckets, best_out = np.inf, 0.0, rows_in
    for k in range(len(buckets)):
        if flat:
            out = min(rows_in, np.exp(log_inputs[0]))
        else:
            out = np.exp((1 - part) * log_out[low, k] + part * log_out[low + 1, k])
        cell = min(max(int(np.log(out) / log_step), 0), len(grid) - 2)
        share = (out - grid[cell]) / (grid[cell + 1] - grid[cell])
        value = below[cell] + share * (below[cell + 1] - below[cell]) + byte_price * buckets[k]
        if value < best:
            best, best_buckets, best_out = value, buckets[k], out
        if flat:
            break
    return best, best_buckets, best_out


@compiled
def priced_values(
    log_inputs: Floats,
    log_out: Floats,
    buckets: Floats,
    byte_price: float,
    below: Floats,
    grid: Floats,
) -> Floats:
    """W(n) of a table, on the grid."""
    values = np.empty(len(grid))
    for at in range(len(grid)):
        values[at] = best_size(log_inputs, log_out, buckets, byte_price, below, grid, grid[at])[0]
    return values


@compiled
def interpolated(values: Floats, grid: Floats, rows: float) -> float:
    """The value at a number of rows, linear between the points of a geometric grid."""
    if rows <= grid[0]:
        return float(values[0])
    at = np.log(rows / grid[0]) / np.log(grid[1] / grid[0])
    cell = min(int(at), len(grid) - 2)
    share = min((rows - grid[cell]) / (grid[cell + 1] - grid[cell]), 1.0)
    return float(values[cell] + share * (values[cell + 1] - values[cell]))


def worth(curve: Curve, byte_price: float, below: Floats, grid: Floats) -> Floats:
    return priced_values(curve.log_inputs, curve.log_out, curve.buckets, byte_price, below, grid)
