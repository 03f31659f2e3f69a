"""Joins with ON mean what they mean in SQL: the same text gives the same rows in DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from terascope.diagnostic import Source
from terascope.optimize.driver import optimize
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from tests.oracle.compare import canonical_order
from tests.reference.memory_sources import MemorySources
from tests.settings import SOAK

PROTOCOLS = "".join(
    f"PROTOCOL {name} (ts UINT increasing clock(s), k INT, v INT); " for name in "LRZ"
)
SIDES = "FROM L a {kind} JOIN R b ON {on}"
KINDS = ("INNER", "LEFT", "RIGHT", "FULL")
CONDITIONS = (
    "a.ts = b.ts",
    "a.ts = b.ts AND a.k = b.k",
    "a.ts = b.ts + 1 AND a.k = b.k",
    "a.ts = b.ts AND a.k = b.k AND a.v > b.v",
    "b.ts BETWEEN a.ts - 1 AND a.ts + 1 AND a.k = b.k",
)
FILTERS = (
    "", " WHERE a.k IS NULL", " WHERE b.k IS NULL", " WHERE b.ts IS NOT NULL", " WHERE b.ts > 4",
    " WHERE a.ts IS NULL OR b.k > 1", " WHERE NOT (b.k = 1)", " WHERE a.ts < 5 AND b.ts < 5",
    " WHERE coalesce(b.k, 7) = 7",
)  # fmt: skip
THREE = (
    "FROM L a {one} JOIN R b ON a.ts = b.ts AND a.k = b.k {two} JOIN Z c ON a.ts = c.ts",
    "FROM L a {one} JOIN R b ON a.ts = b.ts {two} JOIN Z c ON b.ts = c.ts AND b.k = c.k",
    "FROM L a {one} JOIN R b ON a.ts = b.ts {two} JOIN Z c "
    "ON coalesce(a.ts, b.ts) = c.ts AND a.k = c.k",
    "FROM L a {one} JOIN (R b {two} JOIN Z c ON b.ts = c.ts AND b.k = c.k) ON a.ts = b.ts",
)


def queries() -> Iterator[str]:
    columns = "a.ts, a.k, a.v, b.ts AS bts, b.k AS bk, b.v AS bv"
    for kind in KINDS:
        for on in CONDITIONS:
            for where in FILTERS:
                yield f"SELECT {columns} {SIDES.format(kind=kind, on=on)}{where}"
    for one in KINDS:
        for two in KINDS:
            for joined in THREE:
                yield f"SELECT {columns}, c.ts AS cts, c.k AS ck {joined.format(one=one, two=two)}"


def tables(seed: int) -> dict[str, list[dict[str, int | None]]]:
    rng = random.Random(seed)
    made = {}
    for name in "LRZ":
        times = sorted(rng.randrange(0, 9) for _ in range(8))
        made[name] = [
            {"ts": ts, "k": rng.choice([None, 0, 1, 1, 2]), "v": rng.randrange(5)} for ts in times
        ]
    return made


@pytest.mark.parametrize("seed", range(4 if SOAK else 2))
def test_the_same_text_gives_the_same_rows(seed: int) -> None:
    given = tables(seed)
    sources = MemorySources({f"i{name}": rows for name, rows in given.items()})
    connection = duckdb.connect()
    for name, rows in given.items():
        connection.execute(f"CREATE TABLE {name} (ts BIGINT, k BIGINT, v BIGINT)")
        connection.executemany(f"INSERT INTO {name} VALUES ($ts, $k, $v)", rows)
    for text in queries():
        expected = canonical_order(connection.execute(text).fetchall())
        ours = text
        for name, alias in zip("LRZ", "abc", strict=True):
            ours = ours.replace(f"{name} {alias} ", f"i{name}.{name} {alias} ")
        plan = compile_set(Source(PROTOCOLS + ours), Bindings()).plan
        for each in (plan, optimize(plan)):
            found = evaluate(each, sources)["query1"].visible().tuples
            assert canonical_order(found) == expected, ours
    connection.close()
