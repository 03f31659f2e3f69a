"""A Plan as DuckDB SQL: one temporary table per stream.

In: a Plan and the tuples of its scans. Out: the rows of its streams, comparable with those of the
reference interpreter. Inside, the columns of every relation are c0, c1, ..., because DuckDB's
names know no upper and lower case.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import assert_never

import pyarrow as pa

from terascope.connectors.base import arrow_type
from terascope.plan.plan import Plan
from terascope.plan.rel import (
    WEND,
    WSTART,
    Aggregate,
    Field,
    Filter,
    Join,
    Lookup,
    Merge,
    Project,
    Rank,
    Read,
    Rel,
    Running,
    Scan,
    Slices,
    Sliding,
    Window,
)
from terascope.reference.rows import Evaluation, Row, Rows, Sources
from terascope.types import BIAS, Type
from tests.oracle.duckdb_aggregate import Grouping
from tests.oracle.duckdb_expr import Columns, Translator, equality
from tests.oracle.duckdb_running import running_sql
from tests.oracle.duckdb_session import Session
from tests.oracle.duckdb_window import missing_windows, slice_bounds, window_ends


def run_duckdb(
    plan: Plan, sources: Sources, given: Mapping[str, Rows] | None = None
) -> dict[str, list[Row]]:
    """The rows of every stream.

    `given`: rows of streams that DuckDB cannot compute, named by the caller; they are taken as
    they are, so that streams which read them can still be checked.

    Raises:
        Unsupported: a stream that is not given uses what DuckDB does not have.
    """
    session = Session()
    try:
        compiler = Compiler(plan, sources, session)
        rows: dict[str, list[Row]] = {}
        for place, stream in enumerate(plan):
            if given and stream.name in given:
                compiler.store(f"stream_{place}", stream.rel.fields, given[stream.name].tuples)
            else:
                text = compiler.relation(stream.rel)
                session.connection.execute(f"CREATE TEMP TABLE stream_{place} AS {text}")
            found = session.connection.execute(f"SELECT * FROM stream_{place}").fetchall()
            rows[stream.name] = shifted(found, stream.rel.fields, -BIAS)
        return rows
    finally:
        session.close()


def shifted(rows: Sequence[Row], fields: Sequence[Field], by: int) -> list[Row]:
    """Held values of WIDE columns as DuckDB has them, or back."""
    if not any(f.type is Type.WIDE for f in fields):
        return list(rows)
    return [
        tuple(
            v + by if f.type is Type.WIDE and v is not None else v
            for v, f in zip(row, fields, strict=True)
        )
        for row in rows
    ]


def numbered(rel: Rel, table: str = "") -> Columns:
    """The SQL of each column of a relation."""
    prefix = f"{table}." if table else ""
    return {name: f"{prefix}c{i}" for i, name in enumerate(rel.names)}


class Compiler:
    """Translates trees, registering the tables they read as it goes."""

    def __init__(self, plan: Plan, sources: Sources, session: Session) -> None:
        self.plan = plan
        self.sources = sources
        self.session = session
        self.translator = Translator(session, plan.values)
        self.tables = 0

    def relation(self, rel: Rel) -> str:
        match rel:
            case Scan():
                return self.table(rel.fields, self.sources.rows(rel))
            case Read():
                place = [stream.name for stream in self.plan].index(rel.stream)
                return f"SELECT * FROM stream_{place}"
            case Lookup():
                return self.lookup(rel)
            case Filter():
                where = self.translator.sql(rel.predicate, numbered(rel.source))
                return f"SELECT * FROM ({self.relation(rel.source)}) WHERE {where}"
            case Project():
                items = ", ".join(
                    f"{self.translator.sql(expr, numbered(rel.source))} AS c{i}"
                    for i, (_, expr) in enumerate(rel.items)
                )
                return f"SELECT {items} FROM ({self.relation(rel.source)})"
            case Window():
                return self.window(rel)
            case Aggregate():
                return self.aggregate(rel)
            case Running():
                context = Evaluation.of(self.plan, self.sources, {})
                return running_sql(rel, self.grouping(rel), context)
            case Rank():
                return self.rank(rel)
            case Join():
                return self.join(rel)
            case Merge():
                return " UNION ALL ".join(f"({self.relation(source)})" for source in rel.sources)
            case _:
                assert_never(rel)

    def table(self, fields: Sequence[Field], rows: Sequence[Row]) -> str:
        self.tables += 1
        name = f"source_{self.tables}"
        self.store(name, fields, rows)
        return f"SELECT * FROM {name}"

    def store(self, name: str, fields: Sequence[Field], rows: Sequence[Row]) -> None:
        types = [pa.uint64() if f.type is Type.WIDE else arrow_type(f.type) for f in fields]
        schema = pa.schema([(f"c{i}", type) for i, type in enumerate(types)])
        numbers = shifted(rows, fields, BIAS)
        columns = [list(column) for column in zip(*numbers, strict=True)] or [[] for _ in fields]
        arrays = [pa.array(c, type=t) for c, t in zip(columns, schema.types, strict=True)]
        self.session.connection.register(name, pa.Table.from_arrays(arrays, schema=schema))

    def lookup(self, rel: Lookup) -> str:
        with Path(rel.path).open(encoding="utf-8", newline="") as file:
            header = [name.strip() for name in next(csv.reader(file))]
        named = set(rel.names) <= set(header)
        places = [header.index(n) if named else i for i, n in enumerate(rel.names)]
        items = ", ".join(
            self.translator.cast(f"nullif(trim(column{place}), '')", Type.STRING, field.type)
            + f" AS c{i}"
            for i, (place, field) in enumerate(zip(places, rel.schema, strict=True))
        )
        path = rel.path.replace("'", "''")
        options = f"header = false, skip = {int(named)}, all_varchar = true"
        options += """, delim = ',', quote = '"', escape = '"'"""
        return f"SELECT {items} FROM read_csv('{path}', {options})"

    def window(self, rel: Window) -> str:
        source = numbered(rel.source)
        kept = [c for name, c in source.items() if name not in (WSTART, WEND)]
        items = [f"{c} AS c{i}" for i, c in enumerate(kept)]
        start = source[WSTART] if rel.elements else source[rel.on]
        end = source[WEND] if rel.elements else f"({start} + 1)"
        where = f"WHERE {start} IS NOT NULL AND {end} IS NOT NULL"
        match rel.spec:
            case Sliding(range_, _):
                ends = f"unnest({window_ends(rel.spec, start, end)}) AS t"
                inner = f"SELECT *, {ends} FROM ({self.relation(rel.source)}) {where}"
                low, high = f"t - {range_}", "t"
            case Slices():
                low, high = slice_bounds(rel.spec, start)
                inner = f"SELECT * FROM ({self.relation(rel.source)}) {where} AND {end} <= {high}"
            case _:
                assert_never(rel.spec)
        items += [f"{low} AS c{len(kept)}", f"{high} AS c{len(kept) + 1}"]
        return f"SELECT {', '.join(items)} FROM ({inner})"

    def grouping(self, rel: Aggregate | Running) -> Grouping:
        source = self.relation(rel.source)
        return Grouping(source, rel.keys, rel.aggs, self.translator, numbered(rel.source))

    def aggregate(self, rel: Aggregate) -> str:
        grouping = self.grouping(rel)
        sets = rel.sets if rel.sets is not None else (tuple(name for name, _ in rel.keys),)
        rows = " UNION ALL ".join(f"({grouping.by(chosen)})" for chosen in sets)
        if rel.emit_empty is None:
            return rows
        missing = missing_windows(rel)
        columns = ", ".join(f"c{i}" for i in range(len(rel.fields)))
        return (
            f"WITH present AS ({rows}), missing AS ({missing}) SELECT {columns} FROM present "
            f"UNION ALL SELECT {columns} FROM missing, ({grouping.of_nothing()})"
        )

    def rank(self, rel: Rank) -> str:
        source = numbered(rel.source)
        order = ", ".join(
            self.translator.sql(expr, source)
            + (" DESC NULLS FIRST" if descending else " ASC NULLS LAST")
            for expr, descending in rel.order
        )
        per = ", ".join(source[name] for name in rel.per)
        over = (f"PARTITION BY {per} " if per else "") + (f"ORDER BY {order}" if order else "")
        where = "TRUE" if rel.limit is None else f"place <= {rel.limit}"
        numbered_rows = (
            f"SELECT *, row_number() OVER ({over}) AS place FROM ({self.relation(rel.source)})"
        )
        return f"SELECT * EXCLUDE (place) FROM ({numbered_rows}) WHERE {where}"

    def join(self, rel: Join) -> str:
        left, right = numbered(rel.left, "l"), numbered(rel.right, "r")
        both = {**left, **right}
        conditions = [
            equality(
                (self.translator.sql(a, left), a.type), (self.translator.sql(b, right), b.type)
            )
            for a, b in rel.equalities
        ]
        if rel.residual is not None:
            conditions.append(self.translator.sql(rel.residual, both))
        fills = dict(rel.fills)
        items = []
        for i, field in enumerate(rel.fields):
            sql = both[field.name]
            if field.name in fills:
                present = sql.split(".")[0] + ".present"
                fill = self.translator.sql(fills[field.name], both)
                sql = f"CASE WHEN {present} THEN {sql} ELSE {fill} END"
            items.append(f"{sql} AS c{i}")
        sides = [
            f"(SELECT *, TRUE AS present FROM ({self.relation(side)})) {name}"
            for side, name in ((rel.left, "l"), (rel.right, "r"))
        ]
        return (
            f"SELECT {', '.join(items)} FROM {sides[0]} {rel.kind.upper()} JOIN {sides[1]} "
            f"ON {' AND '.join(conditions) or 'TRUE'}"
        )
