"""A stream in whose middle queries with the same keys begin to want the same tuples.

In: a folder. Out: a set of them over a file of such tuples: `one`, `two` and `three` by the same
keys, each with a condition of its own; in the first half hardly a tuple meets two of them, in the
second half nearly all meet all. `other` has no condition, and one key.

By default there are few groups, but so many values of each key that their places are not computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from tests.agreement import WITHOUT_COMPILING
from tests.properties.swapped_skew import EPOCH_TUPLES, EPOCHS, Swapped
from tests.settings import Changes

SOME: Final = 16
SET: Final = """
PROTOCOL S (ts UINT increasing clock(s), a UINT, b UINT, c UINT, d UINT, v INT, w INT);
QUERY one: SELECT tb, a, b, c, d, COUNT(*) AS n, SUM(v) AS x FROM left.S WHERE v < 60
    GROUP BY ts/100 AS tb, a, b, c, d;
QUERY two: SELECT tb, c, a, b, d, COUNT(*) AS n, MAX(w) AS x FROM left.S WHERE v >= 40
    GROUP BY ts/100 AS tb, c, a, b, d;
QUERY three: SELECT tb, a, b, c, d, MIN(v) AS x FROM left.S WHERE w > 0 AND a * b >= 0
    GROUP BY ts/100 AS tb, a, b, c, d;
QUERY other: SELECT tb, a, COUNT(*) AS n FROM left.S GROUP BY ts/100 AS tb, a;
"""


def rival_set(
    folder: Path,
    trees: Changes | None = None,
    tables: Literal["cost", "never"] = "cost",
    values: int = SOME,
    tied: bool = True,
) -> Swapped:
    """`values`: of each key. `tied`: one key tells the others, so that there are as many groups."""
    path = folder / "left.parquet"
    pq.write_table(rival_tuples(values, tied), path, row_group_size=EPOCH_TUPLES // 4)
    shared = trees or {"share_trees": "time"}
    config = WITHOUT_COMPILING.changed(share_tables=tables, split_bytes=1, **shared)
    interfaces = {"left": Interface("left", "parquet", str(path))}
    bindings = Bindings(interfaces, config=config)
    return Swapped(compile_set(Source(SET, str(folder / "rivals.gsql")), bindings))


def rival_tuples(values: int, tied: bool) -> pa.Table:
    random = np.random.default_rng(7)
    count = EPOCHS * EPOCH_TUPLES
    half = np.arange(count) < count // 2
    keys = random.integers(0, values, (4, count))
    if tied:
        keys[1:] = (keys[0] + 3) % values
    apart = np.where(random.random(count) < 0.5, random.integers(0, 40, count), 77)
    return pa.table(
        {
            "ts": np.arange(count) * 100 // EPOCH_TUPLES,
            **dict(zip("abcd", keys, strict=True)),
            "v": np.where(half, apart, random.integers(40, 62, count)),
            "w": np.where(half, 0, random.integers(0, 20, count)),
        }
    )
