"""The queries of an experiment answered twice at tiny scale: by DuckDB, and by what GSQL means."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.compare import Fingerprints, fingerprints
from bench.dialects import translate
from bench.workload import Workload, answers
from terascope.connectors.base import arrow_type
from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.reference.interpreter import evaluate
from terascope.types import Type
from tests.reference.connector_sources import ConnectorSources


def by_reference(workload: Workload, folder: Path) -> Fingerprints:
    """As the reference interpreter answers the GSQL."""
    interface = parse_interface(workload.source)
    interfaces = {interface.name: interface}
    source = Source(workload.gsql.read_text(encoding="utf-8"), str(workload.gsql))
    plan = compile_set(source, Bindings(interfaces=interfaces)).plan
    rows = evaluate(plan, ConnectorSources(interfaces))
    folder.mkdir()
    for stream in plan.visible:
        held = rows[stream.name].visible()
        columns = {
            field.name: written([row[place] for row in held.tuples], field.type)
            for place, field in enumerate(held.fields)
        }
        pq.write_table(pa.table(columns), folder / f"{stream.name}.parquet")
    return fingerprints(answers(workload), folder)


def written(values: list[object], type: Type) -> pa.Array:
    if type is not Type.IP:
        return pa.array(values, arrow_type(type))
    numbers = [int.from_bytes(v[1:], "big") if isinstance(v, bytes) else None for v in values]
    return pa.array(numbers, pa.int64())


def by_duckdb(workload: Workload, folder: Path) -> Fingerprints:
    """As DuckDB answers the SQL."""
    folder.mkdir()
    with duckdb.connect() as session:
        scan = f"read_parquet('{workload.parquet}')"
        session.execute(f"CREATE VIEW {workload.table} AS FROM {scan}")
        for query, sql in workload.sql.items():
            copy = f"COPY ({translate(sql, 'duckdb')}) TO '{folder}/{query}.parquet'"
            session.execute(f"{copy} (FORMAT parquet)").fetchall()
    return fingerprints(answers(workload), folder)
