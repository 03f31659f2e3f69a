"""Plans by hand, run by Spark over real Parquet files.

In: a Plan and tables in memory. Out: the rows Spark gives for every stream, hidden columns
included, and what reading saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from terascope.connectors.base import LAYERS, Column, ReadReport, arrow_type
from terascope.connectors.registry import Interface
from terascope.functions.base import Value
from terascope.physical.job import Job, Output, SourceRead
from terascope.plan.expr import Expr
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import IFACE, Scan, walk
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from terascope.spark.mistakes import translating
from terascope.spark.run import run_job
from terascope.types import Type
from tests.oracle.compare import assert_same_rows
from tests.reference.memory_sources import MemorySources
from tests.settings import SOAK

Tables = Mapping[str, Sequence[Mapping[str, Value]]]


@dataclass(frozen=True)
class Given:
    rows: dict[str, list[Row]]
    reports: dict[str, ReadReport]


def write_tables(
    plan: Plan, tables: Tables, folder: Path, rows_per_group: int
) -> dict[str, Interface]:
    """A Parquet file per interface, in row groups of that many rows."""
    types: dict[str, Type] = {}
    for scan in scans(plan):
        types |= {c.read_from: c.type for c in scan.columns if not c.read_from.startswith("#")}
    found: dict[str, Interface] = {}
    for name, rows in tables.items():
        columns = {c: pa.array([r.get(c) for r in rows], arrow_type(t)) for c, t in types.items()}
        path = folder / f"{name}-{rows_per_group}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=rows_per_group)
        found[name] = Interface(name, "parquet", str(path))
    return found


def scans(plan: Plan) -> list[Scan]:
    return [rel for stream in plan for rel in walk(stream.rel) if isinstance(rel, Scan)]


def job_of(plan: Plan, interfaces: Mapping[str, Interface], predicate: Expr | None = None) -> Job:
    """Every stream is delivered; each interface is read once."""
    used = [stream for reader in plan for stream in (r.stream for r in reads(reader.rel))]
    return Job(
        tuple(
            SourceRead(
                name,
                (interface,),
                columns_of(plan, name),
                predicate,
                tuple(interface.splits(1)),
                ("ts",),
            )
            for name, interface in interfaces.items()
        ),
        {s.name: s.rel for s in plan},
        tuple(Output(s.name, s.rel.names, ()) for s in plan),
        plan.values,
        kept=frozenset(s.name for s in plan if used.count(s.name) > 0),
    )


def columns_of(plan: Plan, interface: str) -> tuple[Column, ...]:
    columns = {
        c.read_from: c.type
        for scan in scans(plan)
        if interface in scan.interfaces
        for c in scan.columns
        if c.name != IFACE
    }
    if any(scan.layer is not None for scan in scans(plan)):
        columns[LAYERS] = Type.LLONG
    return tuple(Column(name, type) for name, type in columns.items())


def run_in_spark(
    plan: Plan, tables: Tables, spark: SparkSession, folder: Path, rows_per_group: int
) -> Given:
    job = job_of(plan, write_tables(plan, tables, folder, rows_per_group))
    with run_job(job, spark) as result, translating():
        rows: dict[str, list[Row]] = {}
        for name, df in result.dataframes.items():
            table = df.toArrow()
            columns = [column.to_pylist() for column in table.columns]
            rows[name] = list(zip(*columns, strict=True))
        return Given(rows, result.reports)


def assert_agreement(
    plan: Plan,
    tables: Tables,
    spark: SparkSession,
    folder: Path,
    group_rows: Sequence[int] = (1000, 3) if SOAK else (3,),
) -> Given:
    """Spark gives the rows of the reference, read as many partitions, in a soak also as one."""
    wanted = evaluate(plan, MemorySources(tables))
    for rows_per_group in group_rows:
        given = run_in_spark(plan, tables, spark, folder, rows_per_group)
        for stream in plan:
            expected = wanted[stream.name]
            try:
                assert_same_rows(expected.tuples, given.rows[stream.name], expected.fields)
            except AssertionError as difference:
                difference.add_note(f"stream {stream.name}, {rows_per_group} rows per row group")
                raise
    return given
