"""Random sets of aggregations that have much in common: windows, epochs, keys, conditions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from tests.settings import config_with

PROTOCOL = (
    "PROTOCOL S (ts UINT increasing clock(s), a UINT, b UINT, c INT, s STRING, v INT, f FLOAT);"
)
CONDITIONS = ["a > 1", "b = 2", "c < 2", "v > 0", "s = 'x'", "a > 1 AND v > 0", "f > 0.5"]
AGGREGATES = [
    "COUNT(*)", "SUM(v)", "MIN(v)", "MAX(v)", "AVG(v)", "SUM(f)", "MAX(f)", "MIN(f)", "COUNT(v)",
    "OR_AGGR(a)", "AND_AGGR(a)", "XOR_AGGR(b)",
]  # fmt: skip
KEYS = ["a", "b", "c", "s", "a % 2"]


@dataclass(frozen=True)
class SharingSet:
    text: str
    compiled: Compiled


def sharing_set(seed: int, folder: Path, queries: int = 8, rows: int = 120) -> SharingSet:
    rng = random.Random(seed)
    path = folder / f"s{seed}.parquet"
    pq.write_table(random_tuples(rng, rows), path, row_group_size=max(1, rows // 4))
    keys = [rng.sample(KEYS, rng.randint(0, 3)) for _ in range(3)]
    conditions = [None, *rng.sample(CONDITIONS, 2)]
    statements = [PROTOCOL]
    statements += [
        f"QUERY q{i}: {random_query(rng, rng.choice(keys), rng.choice(conditions))};"
        for i in range(queries)
    ]
    text = "\n".join(statements)
    bindings = Bindings(
        {"left": Interface("left", "parquet", str(path))}, config=config_with(split_bytes=1)
    )
    return SharingSet(text, compile_set(Source(text, f"sharing{seed}.gsql"), bindings))


def tree_set(seed: int, folder: Path, queries: int = 9, rows: int = 700) -> SharingSet:
    """Aggregations of the same epochs by many sets of keys, with several conditions."""
    rng = random.Random(seed)
    path = folder / f"t{seed}.parquet"
    pq.write_table(random_tuples(rng, rows), path, row_group_size=max(1, rows // 3))
    conditions = ["", "", f" WHERE {rng.choice(CONDITIONS)}"]
    statements = [PROTOCOL]
    for i in range(queries):
        picked = rng.sample(AGGREGATES, rng.randint(1, 3))
        values = ", ".join(f"{call} AS x{n}" for n, call in enumerate(picked))
        keys = rng.sample(["a", "b", "c", "s", "v"], rng.choice([1, 2, 2, 2, 3]))
        where = rng.choice(conditions)
        statements.append(
            f"QUERY q{i}: SELECT tb, {', '.join(keys)}, {values} FROM left.S{where}"
            f" GROUP BY ts/300 AS tb, {', '.join(keys)};"
        )
    text = "\n".join(statements)
    bindings = Bindings(
        {"left": Interface("left", "parquet", str(path))}, config=config_with(split_bytes=1)
    )
    return SharingSet(text, compile_set(Source(text, f"tree{seed}.gsql"), bindings))


def random_query(rng: random.Random, keys: list[str], condition: str | None) -> str:
    picked = rng.sample(AGGREGATES, rng.randint(1, 3))
    values = ", ".join(f"{call} AS x{i}" for i, call in enumerate(picked))
    where = f" WHERE {condition}" if condition else ""
    having = " HAVING COUNT(*) > 1" if rng.random() < 0.3 else ""
    names = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    shown = "".join(f"k{i}, " for i in range(len(keys)))
    if rng.random() < 0.3:
        length = rng.choice([5, 10, 15, 30])
        grouped = ", ".join([f"ts/{length} AS tb", *names])
        return f"SELECT tb, {shown}{values} FROM left.S{where} GROUP BY {grouped}{having}"
    slide = rng.choice([2, 3, 5, 6, 10])
    length = rng.choice([1, slide, slide + 1, 2 * slide, 2 * slide + 1, 3 * slide - 1, 7])
    window = f"[RANGE {length} SLIDE {slide}]"
    if rng.random() < 0.1:
        window = f"[SLICES {slide}, {length}]"
    group = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {shown}{values} FROM left.S {window}{where}{group}{having}"


def random_tuples(rng: random.Random, count: int) -> pa.Table:
    ts, rows = rng.randrange(0, 40), []
    for _ in range(count):
        ts += rng.choice([0, 0, 0, 0, 1, 1, 2, 9 if rng.random() < 0.1 else 0])
        late = ts - rng.randrange(0, 4) if rng.random() < 0.03 else ts
        rows.append(
            {
                "ts": max(0, late),
                "a": rng.choice([0, 1, 2, 2, 3]),
                "b": rng.choice([1, 2, 2, None]),
                "c": rng.choice([-1, 0, 1, 5]),
                "s": rng.choice(["x", "y", "z", None]),
                "v": rng.choice([None, -7, 0, 1, 2, 1000]),
                "f": rng.choice([None, 0.25, 0.5, 1.5, -2.0]),
            }
        )
    return pa.Table.from_pylist(rows)
