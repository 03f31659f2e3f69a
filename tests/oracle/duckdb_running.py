"""CLOSING_WHEN as a recursive query: each step of the recursion is one epoch of every group.

In: the grouping by (epoch, group) of the input. Out: SQL of a row per epoch in which a group lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from terascope.plan.expr import AggCall
from terascope.plan.rel import Running
from terascope.reference.rows import Evaluation
from tests.oracle.duckdb_aggregate import Grouping
from tests.oracle.duckdb_session import Unsupported

CARRIED: Mapping[str, str] = {
    "running_sum": "prev.{c} + {own}",
    "running_count": "prev.{c} + {own}",
    "first": "coalesce(prev.{c}, {own})",
    "last": "coalesce({own}, prev.{c})",
    "count_dups": "list_concat(prev.{c}, {own})",
}
"""Running aggregates: the value of an epoch from that of the one before and the epoch's own."""

FINISHED: Mapping[str, str] = {"count_dups": "(len({c}) - len(list_distinct({c})))"}
"""Where what is carried is not the value itself: the value from it."""


def running_sql(rel: Running, grouping: Grouping, context: Evaluation) -> str:
    keys, width = len(rel.keys), len(rel.fields)
    columns = [f"c{i}" for i in range(width)]
    group = columns[1:keys]
    calls = [None] * keys + [call for _, call in rel.aggs]
    given = [finished(call, c) for call, c in zip(calls, columns, strict=True)]
    names = dict(zip(rel.names, given, strict=True))
    grouping = replace(grouping, states=frozenset(FINISHED))
    closes = f"coalesce({grouping.translator.sql(rel.closing, names)}, FALSE) AS closed"
    known = context.horizon(rel.keys[0][1], rel.source)
    reached = "(SELECT max(c0) FROM parts)"
    last = reached if known is None else f"greatest({known}, {reached})"
    per = f"PARTITION BY {', '.join(group)} " if group else ""
    same_group = "".join(f" AND p.{c} IS NOT DISTINCT FROM prev.{c}" for c in group)
    goes_on = "(prev.lives AND NOT prev.closed)"
    values = [
        f"{next_value(call, c, goes_on)} AS {c}"
        for (_, call), c in zip(rel.aggs, columns[keys:], strict=True)
    ]
    step = ", ".join(
        [
            "prev.c0 + 1 AS c0",
            *(f"prev.{c} AS {c}" for c in group),
            *values,
            f"({goes_on} OR p.c0 IS NOT NULL) AS lives",
        ]
    )
    chosen = ", ".join(columns)
    return f"""
        WITH RECURSIVE
        parts AS (SELECT * FROM ({grouping.by(tuple(n for n, _ in rel.keys))})
                  WHERE c0 IS NOT NULL),
        nothing AS ({grouping.of_nothing()}),
        life AS (
            SELECT {chosen}, TRUE AS lives, {closes} FROM parts
            QUALIFY row_number() OVER ({per}ORDER BY c0) = 1
            UNION ALL
            SELECT {chosen}, lives, {closes} FROM (
                SELECT {step} FROM life prev
                LEFT JOIN parts p ON p.c0 = prev.c0 + 1{same_group}
                CROSS JOIN nothing n
                WHERE prev.c0 < {last}
            )
        )
        SELECT {", ".join(f"{text} AS {c}" for text, c in zip(given, columns, strict=True))}
        FROM life WHERE lives
    """


def finished(call: AggCall | None, column: str) -> str:
    return FINISHED.get(call.function.name if call else "", "{c}").format(c=column)


def next_value(call: AggCall, column: str, goes_on: str) -> str:
    own = f"CASE WHEN p.c0 IS NULL THEN n.{column} ELSE p.{column} END"
    if not call.function.running:
        return own
    if call.function.name not in CARRIED or call.distinct:
        raise Unsupported(f"running aggregate {call.function.name}")
    carried = CARRIED[call.function.name].format(c=column, own=own)
    return f"CASE WHEN {goes_on} THEN {carried} ELSE {own} END"
