"""The reference interpreter and DuckDB on the same tuples: they must agree on every stream.

In: a plan, or one relation, and tables in memory. Out: the reference's rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from terascope.functions.base import Value
from terascope.plan.plan import Plan, Stream
from terascope.plan.rel import Rel
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row, Rows, Sources
from tests.oracle.compare import assert_same_rows, canonical_order
from tests.oracle.duckdb_sql import run_duckdb
from tests.reference.memory_sources import MemorySources

Tables: TypeAlias = Mapping[str, Sequence[Mapping[str, Value]]]


def agreed(plan: Plan, sources: Sources, beyond_duckdb: Collection[str] = ()) -> dict[str, Rows]:
    """The rows of all streams; those in `beyond_duckdb` are not asked of DuckDB."""
    reference = evaluate(plan, sources)
    given = {name: reference[name] for name in beyond_duckdb}
    duckdb = run_duckdb(plan, sources, given)
    for stream in plan:
        rows = reference[stream.name]
        assert_same_rows(rows.tuples, duckdb[stream.name], rows.fields, rounding=True)
    return reference


def rows_of(rel: Rel, tables: Tables, *, in_duckdb: bool = True) -> list[Row]:
    """The agreed rows of one relation, in canonical order."""
    plan = Plan((Stream("out", rel),))
    beyond = () if in_duckdb else ("out",)
    return canonical_order(agreed(plan, MemorySources(tables), beyond)["out"].tuples)
