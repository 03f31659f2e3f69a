"""The low-level streams of a Job in the slice store: their keys, columns and slices.

Checkpoints contain the key and the layout of a stream. These are digests of texts that describe the
content of the stream and not its name, so that a changed query set finds its slices again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from terascope.analysis.order import Trees, falls
from terascope.analysis.release import release_columns
from terascope.analysis.retention import Leaf
from terascope.kernels.merge.groups import GroupFields
from terascope.physical.low_plan import LowQuery, LowSelect
from terascope.physical.rules.low_planner import scan_use
from terascope.physical.split.split_windows import without_retired
from terascope.physical.stream.plan import LowStream, digest
from terascope.physical.stream.slice_streams import slice_stream
from terascope.plan.expr import Expr
from terascope.plan.rel import Aggregate, Read
from terascope.plan.show import show_expr, spelled
from terascope.types import Type


def low_stream(number: int, query: LowQuery, groups: GroupFields | None, trees: Trees) -> LowStream:
    """A low-level stream in the slice store. `groups`: the layout of its groups, if it has any."""
    rel = trees.streams[query.name]
    scan, predicate = scan_use(rel)
    asked = show_expr(spelled(without_retired(predicate)))
    tuples = [scan.protocol, ",".join(sorted(scan.interfaces)), asked]
    read = Read(query.name, rel.fields)
    if isinstance(query, LowSelect):
        key = digest("|".join(["rows", *tuples]))
        texts = tuple(column_text(expr) for _, expr in query.items)
        value = next(iter(release_columns(read, trees)), None)
        return LowStream(number, query.name, key, scan, None, texts, value, read)
    assert isinstance(rel, Aggregate)
    assert groups is not None
    keys = [column_text(expr) for _, expr in query.keys]
    key = digest("|".join(["groups", *tuples, *keys]))
    slots = [
        f"{slot.kind}({'' if slot.argument is None else column_text(slot.argument)})"
        for slot in query.slots
    ]
    value, sliced = groups.epoch_name, slice_stream(rel)
    return LowStream(
        number, query.name, key, scan, groups, (*keys, *slots), value, read, sliced=sliced
    )


def column_text(expr: Expr) -> str:
    """The text of a stored column. A WIDE has other bytes than the same number of another type."""
    text = show_expr(spelled(expr))
    return f"{text} {Type.WIDE.value}" if expr.type is Type.WIDE else text


def with_own_keys(streams: Iterable[LowStream]) -> Iterator[LowStream]:
    """Streams with different keys: streams of the same tuples are numbered in their order."""
    known: Counter[str] = Counter()
    for stream in streams:
        known[stream.key] += 1
        several = known[stream.key] > 1
        yield replace(stream, key=f"{stream.key}.{known[stream.key]}") if several else stream


def with_retention(stream: LowStream, kept_by: Mapping[Leaf, str], trees: Trees) -> LowStream:
    column = kept_by.get(stream.name, stream.value)
    descending = column is not None and falls(column, trees.orders(stream.read))
    return replace(stream, kept_by=column, descending=descending)


def needs_order(stream: LowStream) -> bool:
    """Whether the stream is a selection of several interfaces, whose tuples are merged in order."""
    return stream.groups is None and len(stream.scan.interfaces) > 1 and stream.value is not None
