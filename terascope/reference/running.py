"""CLOSING_WHEN: groups that live over epochs (dissertation 3.1.2).

In: tuples with an epoch (the first key) and a group (the other keys). Out: for each group a row
per epoch from its first tuple until it closes, epochs without a tuple included; the last epoch is
the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator

from terascope.plan.evaluate import Evaluator
from terascope.plan.rel import Running
from terascope.reference.accumulate import Accumulator, accumulators
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row, same_row


def running(rel: Running, rows: list[Row], context: Evaluation) -> list[Row]:
    """A tuple without an epoch belongs nowhere and is passed over."""
    names = rel.source.names
    keys = [context.compile(expr, names) for _, expr in rel.keys]
    groups: dict[Row, dict[int, list[Row]]] = {}
    for row in rows:
        epoch, *group = (key(row) for key in keys)
        if epoch is not None:
            groups.setdefault(same_row(group), {}).setdefault(epoch, []).append(row)
    reached = [epoch for epochs in groups.values() for epoch in epochs]
    known = context.horizon(rel.keys[0][1], rel.source)
    if known is not None:
        reached.append(known)
    last = max(reached, default=0)
    closing = context.compile(rel.closing, rel.names)
    given: list[Row] = []
    for group_key, epochs in groups.items():
        aggs = accumulators(rel.aggs, names, context)
        given += life_of_group(group_key, epochs, last, aggs, closing)
    return given


def life_of_group(
    group: Row,
    epochs: dict[int, list[Row]],
    last: int,
    aggs: list[Accumulator],
    closing: Evaluator,
) -> Iterator[Row]:
    """The rows of one group, which may die and be born again several times."""
    alive = False
    for epoch in range(min(epochs), last + 1):
        tuples = epochs.get(epoch, [])
        if not alive and not tuples:
            continue
        for agg in aggs:
            if not alive:
                agg.restart()
            agg.take(tuples)
        row = (epoch, *group, *(agg.value() for agg in aggs))
        yield row
        alive = closing(row) is not True
        for agg in aggs:
            agg.end_epoch()
