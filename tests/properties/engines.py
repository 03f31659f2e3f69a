"""A random query set bound to tables in memory, and the same tables as files for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import arrow_type
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.plan import Plan
from terascope.plan.rel import Running, walk
from terascope.reference.rows import Row, Rows
from terascope.types import Type, format_ip
from tests.properties.random_sets import INTERFACES, RandomSet, random_rows
from tests.settings import config_with

TYPES = {"ts": Type.UINT, "a": Type.INT, "b": Type.INT, "s": Type.STRING, "f": Type.FLOAT}
Tables = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass(frozen=True)
class Case:
    """One seed's query set over one seed's tuples."""

    compiled: Compiled
    tables: Tables

    @property
    def running(self) -> tuple[str, ...]:
        """Streams DuckDB cannot compute: state over epochs."""
        return tuple(
            s.name
            for s in self.compiled.optimized
            if any(isinstance(r, Running) for r in walk(s.rel))
        )


def make_case(seed: int, folder: Path, queries: int, rows: int) -> Case:
    """The query set of a seed, with its tables written as Parquet, addresses as text."""
    tables = random_tables(seed, rows)
    interfaces = {}
    for name, tuples in tables.items():
        path = folder / f"{name}.parquet"
        write_table(path, tuples)
        interfaces[name] = Interface(name, "parquet", str(path))
    return bound_case(seed, interfaces, tables, queries)


def random_tables(seed: int, rows: int) -> Tables:
    return {name: random_rows(seed * 7 + i, rows + 11 * i) for i, name in enumerate(INTERFACES)}


def write_table(path: Path, tuples: Sequence[Mapping[str, object]]) -> None:
    columns: dict[str, pa.Array] = {
        c: pa.array([t[c] for t in tuples], arrow_type(kind)) for c, kind in TYPES.items()
    }
    texts = [None if t["ip"] is None else format_ip(bytes(t["ip"])) for t in tuples]  # type: ignore[call-overload]
    columns["ip"] = pa.array(texts, pa.string())
    pq.write_table(pa.table(columns), path, row_group_size=max(1, len(tuples) // 3))


def bound_case(
    seed: int, interfaces: Mapping[str, Interface], tables: Tables, queries: int
) -> Case:
    """The query set of a seed over some interfaces."""
    bindings = Bindings(interfaces, {"both": INTERFACES}, config=config_with(split_bytes=1))
    text = RandomSet(seed).text(queries)
    return Case(compile_set(Source(text, f"seed{seed}.gsql"), bindings), tables)


def visible_rows(plan: Plan, rows: Mapping[str, Rows]) -> dict[str, list[Row]]:
    """The rows of every visible stream, without hidden columns."""
    shown = {}
    for stream in plan.visible:
        places = [i for i, f in enumerate(stream.rel.fields) if not f.hidden]
        shown[stream.name] = [tuple(r[i] for i in places) for r in rows[stream.name].tuples]
    return shown
