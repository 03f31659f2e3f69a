"""Windows on Arrow: each row once for every window it belongs to.

In: rows with a time, or with a [wstart, wend) of their own. Out: the same rows with the windows
that contain them. Rows of the same time belong to the same windows, so these are found once for
each time, by the function that defines them (terascope.reference.window), and then repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from terascope.plan.rel import WEND, WSTART, Window
from terascope.reference.window import windows_around


def in_windows(rel: Window, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a window; a row without a time belongs to none."""
    ends = (WSTART, WEND) if rel.elements else (rel.on, rel.on)
    present = pc.and_(*(pc.is_valid(rows.column(name)) for name in ends))
    rows = rows.filter(present)
    starts, stops = (rows.column(name).to_numpy() for name in ends)
    times, which = np.unique(np.stack([starts, stops], axis=1), axis=0, return_inverse=True)
    more = 0 if rel.elements else 1  # a tuple at time t is the element [t, t+1)
    found = [list(windows_around(rel.spec, a, b + more)) for a, b in times.tolist()]
    counts = np.array([len(some) for some in found], np.int64)
    first = np.cumsum(counts) - counts
    which = which.reshape(-1)
    repeats = counts[which]
    places = np.repeat(np.arange(rows.num_rows), repeats)
    nth = np.arange(len(places)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    chosen = np.repeat(first[which], repeats) + nth
    kept = [f.name for f in rel.fields if f.name not in (WSTART, WEND)]
    columns = rows.select(kept).take(pa.array(places)).columns
    bounds = [bound(found, side).take(pa.array(chosen)) for side in (0, 1)]
    return pa.RecordBatch.from_arrays([*columns, *bounds], [*kept, WSTART, WEND])


def bound(found: Sequence[Sequence[tuple[int, int]]], side: int) -> pa.Array:
    """The starts, or the ends, of all windows."""
    return pa.array([interval[side] for some in found for interval in some], pa.int64())
