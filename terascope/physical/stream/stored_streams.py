"""The low-level streams of a Job in the slice store: their keys, columns and slices.

Checkpoints contain the key and the layout of a stream. These are digests of texts that describe the
content of the stream and not its name, so that a changed query set finds its slices again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from terascope.analysis.order import Trees
from terascope.analysis.release import release_columns
from terascope.analysis.retention import Leaf
from terascope.functions.base import Trend
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.low_plan import LowAggregate, LowQuery, LowSelect
from terascope.physical.rules.low_planner import scanned, source_of
from terascope.physical.split.split_windows import without_retired
from terascope.physical.stream.plan import LowStream, digest
from terascope.physical.stream.slice_streams import slice_stream
from terascope.plan.expr import Expr
from terascope.plan.rel import Aggregate, Project, Read, Rel
from terascope.plan.show import show_expr, spelled
from terascope.types import Type


def low_stream(number: int, query: LowQuery, groups: GroupFields | None, trees: Trees) -> LowStream:
    rel = trees.streams[query.name]
    if isinstance(query, LowAggregate):
        assert isinstance(rel, Aggregate)
        assert groups is not None
        return stream_of_groups(number, query, groups, rel)
    assert isinstance(rel, Project)
    return stream_of_rows(number, query, rel, trees)


def stream_of_groups(
    number: int, query: LowAggregate, groups: GroupFields, rel: Aggregate
) -> LowStream:
    keys = [column_text(expr) for _, expr in query.keys]
    slots = [
        f"{slot.kind}({'' if slot.argument is None else column_text(slot.argument)})"
        for slot in query.slots
    ]
    return LowStream(
        number,
        query.name,
        digest("|".join(["groups", *tuples_of(rel.source), *keys])),
        scanned(rel),
        groups,
        groups.fields,
        (*keys, *slots),
        None if groups.epoch is None else groups.keys[groups.epoch].name,
        rel.fields,
        epoch_text="" if groups.epoch is None else keys[groups.epoch],
        sliced=slice_stream(rel),
    )


def stream_of_rows(number: int, query: LowSelect, rel: Project, trees: Trees) -> LowStream:
    return LowStream(
        number,
        query.name,
        digest("|".join(["rows", *tuples_of(rel.source)])),
        scanned(rel),
        None,
        query.fields,
        tuple(column_text(expr) for _, expr in query.items),
        next(iter(release_columns(Read(query.name, rel.fields), trees)), None),
        rel.fields,
    )


def column_text(expr: Expr) -> str:
    """The text of a stored column. A WIDE has other bytes than the same number of another type."""
    text = show_expr(spelled(expr))
    return f"{text} {Type.WIDE.value}" if expr.type is Type.WIDE else text


def tuples_of(rel: Rel) -> list[str]:
    """The protocol, interfaces and condition of a low-level stream, as before it was retired."""
    scan, predicate = source_of(rel)
    asked = show_expr(spelled(without_retired(predicate)))
    return [scan.protocol, ",".join(sorted(scan.interfaces)), asked]


def with_own_keys(streams: Iterable[LowStream]) -> Iterator[LowStream]:
    """Streams with different keys: streams of the same tuples are numbered in their order."""
    known: Counter[str] = Counter()
    for stream in streams:
        known[stream.key] += 1
        several = known[stream.key] > 1
        yield replace(stream, key=f"{stream.key}.{known[stream.key]}") if several else stream


def with_retention(stream: LowStream, kept_by: Mapping[Leaf, str], trees: Trees) -> LowStream:
    column = kept_by.get(stream.name, stream.value)
    orders = trees.orders(Read(stream.name, stream.tree_fields))
    falling = (
        column is not None and column in orders and orders[column].slope.trend is Trend.DECREASING
    )
    return replace(stream, kept_by=column, descending=falling)


def needs_order(stream: LowStream) -> bool:
    """Whether the stream is a selection of several interfaces, whose tuples are merged in order."""
    return stream.groups is None and len(stream.scan.interfaces) > 1 and stream.value is not None
