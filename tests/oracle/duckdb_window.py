"""Windows as DuckDB SQL: which windows an element belongs to, and which windows are missing.

In: a window specification and the SQL of an element's bounds. Out: SQL.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from terascope.plan.expr import Col
from terascope.plan.rel import WSTART, Aggregate, Slices, Sliding


def window_ends(spec: Sliding, start: str, end: str) -> str:
    """A list of the ends of all windows that contain [start, end): multiples of the slide from
    `end` to `start + range`.
    """
    first = f"-floor_div(-{end}, {spec.slide}::BIGINT) * {spec.slide}"
    last = f"floor_div({start} + {spec.range}, {spec.slide}::BIGINT) * {spec.slide}"
    return f"generate_series({first}, {last}, {spec.slide}::BIGINT)"


def slice_bounds(spec: Slices, time: str) -> tuple[str, str]:
    """Start and end of the slice that contains a time."""
    period = sum(spec.lengths)
    base = f"(floor_div({time}, {period}::BIGINT) * {period})"
    edges = [0, *accumulate(spec.lengths)]
    whens = [f"WHEN {time} - {base} < {edge}" for edge in edges[1:]]
    starts = " ".join(f"{when} THEN {edge}" for when, edge in zip(whens, edges, strict=False))
    ends = " ".join(f"{when} THEN {edge}" for when, edge in zip(whens, edges[1:], strict=True))
    return f"({base} + CASE {starts} END)", f"({base} + CASE {ends} END)"


def missing_windows(rel: Aggregate) -> str:
    """Keys of the windows, or epochs, strictly between the first and the last of `present` that
    are not in it.
    """
    match rel.emit_empty:
        case Sliding(range_, slide):
            start, end = bound_columns(rel)
            every = (
                f"SELECT t - {range_} AS {start}, t AS {end} FROM (SELECT "
                f"unnest(generate_series(min({end}), max({end}), {slide}::BIGINT)) AS t "
                f"FROM present)"
            )
        case Slices(lengths):
            start, end = bound_columns(rel)
            period = sum(lengths)
            edges = [0, *accumulate(lengths)]
            offsets = ", ".join(f"({a}, {b})" for a, b in pairwise(edges))
            every = (
                f"SELECT p * {period} + a AS {start}, p * {period} + b AS {end} FROM (SELECT "
                f"unnest(generate_series(floor_div(min({start}), {period}::BIGINT), "
                f"floor_div(max({start}), {period}::BIGINT), 1)) AS p FROM present), "
                f"(VALUES {offsets}) offsets(a, b)"
            )
        case _:
            start = end = "c0"
            every = "SELECT unnest(generate_series(min(c0), max(c0), 1::BIGINT)) AS c0 FROM present"
    keys = ", ".join(f"c{i}" for i in range(len(rel.keys)))
    return (
        f"SELECT {keys} FROM ({every}) WHERE {start} NOT IN "
        f"(SELECT {start} FROM present WHERE {start} IS NOT NULL) "
        f"AND {start} > (SELECT min({start}) FROM present) "
        f"AND {start} < (SELECT max({start}) FROM present)"
    )


def bound_columns(rel: Aggregate) -> tuple[str, str]:
    sources = [expr.name if isinstance(expr, Col) else name for name, expr in rel.keys]
    place = sources.index(WSTART)
    return f"c{place}", f"c{1 - place}"
