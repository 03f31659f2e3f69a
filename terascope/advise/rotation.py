"""Rotation: an expression of time in the partitioning set, so that groups change their partition
now and then (P2 3.5.1; dissertation 5.4.1.1, 6.3.4.1).

In: the placement that is recommended, and a period. Out: the placement with `time/600` in the set
of every source; or a QueryError that says which query forbids it: a group must not be in two
partitions, so a query must have no windows that slide, no groups that live across epochs, and
epochs of which each lies in one period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from terascope.connectors.base import TICK_NS, Column
from terascope.diagnostic import NOWHERE, Diagnostic, QueryError, Source, Span
from terascope.partitioning.basic_queries import BasicQuery
from terascope.partitioning.search import Search
from terascope.partitioning.sets import PartitionSet, Placement, parse_set
from terascope.plan.rel import Running, Window, walk
from terascope.units import NANOSECONDS, readable_seconds


def rotated(
    placement: Placement,
    seconds: float,
    columns: Mapping[str, Sequence[Column]],
    search: Search,
    source: Source,
) -> Placement:
    """The placement with an expression of the clock of each source.

    Raises:
        QueryError: a source has no clock, or a query that the placement lets partitions finish
            would no longer be right.
    """
    made = {
        name: with_clock(name, by, seconds, columns[name], source) if by.expressions else by
        for name, by in placement.items()
    }
    kept = search.kept(placement)
    refused = search.refusals(made)
    nodes = {node.name: node for node in search.nodes}
    wrong = [nodes[name] for name in refused if name in kept]
    first = [node for node in wrong if not any(n in refused for n in node.inputs)]
    if first:
        raise QueryError([refusal(node, seconds, refused[node.name]) for node in first], source)
    return made


def with_clock(
    name: str, by: PartitionSet, seconds: float, columns: Sequence[Column], source: Source
) -> PartitionSet:
    clocks = [column for column in columns if column.clock is not None]
    coarse = max(clocks, key=lambda column: TICK_NS[column.clock or "s"], default=None)
    if coarse is None:
        message = f"'{name}' has no clock to rotate by"
        help = "declare one in its PROTOCOL, such as time UINT clock(s)"
        raise QueryError([Diagnostic("no-clock", message, NOWHERE, (), help)], source)
    ticks = round(seconds * NANOSECONDS / TICK_NS[coarse.clock or "s"])
    if ticks < 1:
        message = f"a period of {readable_seconds(seconds)} is less than a tick of '{coarse.name}'"
        raise QueryError([Diagnostic("bad-rotation", message)], source)
    turning = parse_set(f"{coarse.name}/{ticks}", [coarse])
    return PartitionSet(tuple(dict.fromkeys((*by.expressions, *turning.expressions))))


def refusal(node: BasicQuery, seconds: float, why: str) -> Diagnostic:
    """Why a query forbids to rotate."""
    kinds = [type(rel) for rel in walk(node.rel)]
    period = readable_seconds(seconds)
    if Running in kinds:
        note = "its groups live across epochs until CLOSING_WHEN, in one partition"
    elif Window in kinds:
        note = "its windows slide, and a window may begin in one period and end in the next"
    else:
        note = f"{why}: an epoch of it does not lie in one period of {period}"
    return Diagnostic(
        "bad-rotation",
        f"'{node.query}' cannot be computed from partitions that rotate every {period}",
        span_of(node),
        (note,),
        "take a period that is a multiple of the epochs of all queries, or do not rotate",
    )


def span_of(node: BasicQuery) -> Span:
    return next((rel.span for rel in walk(node.rel) if rel.span != NOWHERE), NOWHERE)
