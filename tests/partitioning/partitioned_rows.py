"""Tuples in memory, divided by a partitioning set the plain way: equal values, same partition.

The value of each expression is computed by the reference evaluator, and each combination of values
is sent to a random partition: nothing is shared with the hash of `partitioning.placing`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from terascope.connectors.base import POSITION
from terascope.functions.base import Value
from terascope.partitioning.sets import Placement
from terascope.plan.evaluate import compile_expr
from terascope.plan.plan import Plan
from terascope.plan.rel import Scan
from terascope.reference.interpreter import evaluate
from terascope.reference.rows import Row
from tests.reference.memory_sources import MemorySources

Table = Sequence[Mapping[str, Value]]
Tables = Mapping[str, Table]


@dataclass(frozen=True)
class PartOfSources:
    """The tuples of one partition. Time is that of the whole stream: heartbeats tell every
    partition how far it is.
    """

    part: MemorySources
    whole: MemorySources

    def rows(self, scan: Scan) -> list[Row]:
        return self.part.rows(scan)

    def horizon(self, scan: Scan) -> Mapping[str, int]:
        return self.whole.horizon(scan)


def divided(tables: Tables, placement: Placement, count: int, rng: random.Random) -> list[Tables]:
    """The tables of each partition; equal values of aligned sets have partitions of one number."""
    homes: dict[tuple[object, ...], int] = {}
    parts: list[dict[str, list[Mapping[str, Value]]]] = [
        {name: [] for name in tables} for _ in range(count)
    ]
    for name, rows in tables.items():
        names = tuple(rows[0]) if rows else ()
        values = [compile_expr(e, names, {}) for e in placement[name].expressions]
        for place, row in enumerate(rows):
            given = tuple(row[n] for n in names)
            key = tuple(repr(value(given)) for value in values)
            home = homes.setdefault(key, rng.randrange(count))
            parts[home][name].append({**row, POSITION: row.get(POSITION, place)})
    return list(parts)


def union_over_partitions(
    plan: Plan, tables: Tables, parts: Sequence[Tables]
) -> dict[str, list[Row]]:
    """For each stream, the rows that the partitions compute of it, each from its own tuples."""
    whole = MemorySources(tables)
    found: dict[str, list[Row]] = {stream.name: [] for stream in plan}
    for part in parts:
        for name, rows in evaluate(plan, PartOfSources(MemorySources(part), whole)).items():
            found[name] += rows.tuples
    return found


def over_whole(plan: Plan, tables: Tables) -> dict[str, list[Row]]:
    """For each stream, its rows over all tuples."""
    placed = {
        name: [{POSITION: place, **row} for place, row in enumerate(rows)]
        for name, rows in tables.items()
    }
    return {name: rows.tuples for name, rows in evaluate(plan, MemorySources(placed)).items()}
