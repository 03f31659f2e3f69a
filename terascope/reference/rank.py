"""ORDER BY and LIMIT in each window: the first rows of every combination of `per` columns."""

from __future__ import annotations

from operator import itemgetter

from terascope.plan.evaluate import Evaluator
from terascope.plan.rel import Rank
from terascope.reference.context import Evaluation
from terascope.reference.rows import Row, same_row, sort_key


def rank(rel: Rank, rows: list[Row], context: Evaluation) -> list[Row]:
    """In the order asked for within each combination; NULL counts as the largest value."""
    per = [rel.source.names.index(name) for name in rel.per]
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(same_row(row[i] for i in per), []).append(row)
    order = [(context.compile(expr, rel.source.names), down) for expr, down in rel.order]
    return [row for group in groups.values() for row in in_order(group, order)[: rel.limit]]


def in_order(rows: list[Row], order: list[tuple[Evaluator, bool]]) -> list[Row]:
    """Sorting is stable, so the last sort, by the first expression, decides first."""
    for value, descending in reversed(order):
        keyed = [(sort_key(value(row)), row) for row in rows]
        keyed.sort(key=itemgetter(0), reverse=descending)
        rows = [row for _, row in keyed]
    return rows
