"""The admission predicate of a shared table, and the tuples that each of its slots takes.

In: aggregations of one read with the same keys, or below the same node of a tree. Out: an
`AdmissionPredicate`: the common condition, and the further condition of each aggregation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from terascope.functions.slots import COUNT
from terascope.physical.low_plan import LowAggregate, Slot, Where
from terascope.plan.expr import Expr
from terascope.types import Type


@dataclass(frozen=True)
class AdmissionPredicate:
    """The condition of a tuple to enter a shared table: any of the queries takes it."""

    signature: tuple[int, ...]
    rest: tuple[Expr, ...]
    anyof: tuple[Where, ...]

    @staticmethod
    def of(queries: Sequence[LowAggregate]) -> AdmissionPredicate:
        first = queries[0]
        if same_tuples(queries):
            return AdmissionPredicate(first.signature, first.rest, first.anyof)
        bits = [b for b in first.signature if all(b in q.signature for q in queries)]
        rest = [p for p in first.rest if all(p in q.rest for q in queries)]
        common = AdmissionPredicate(tuple(bits), tuple(rest), ())
        wheres = [common.where(q) for q in queries]
        known = tuple(dict.fromkeys(w for w in wheres if w is not None))
        return common if None in wheres else replace(common, anyof=known)

    def where(self, query: LowAggregate) -> Where | None:
        """The further condition of a query; None: there is none."""
        bits = tuple(b for b in query.signature if b not in self.signature)
        rest = tuple(p for p in query.rest if p not in self.rest)
        return Where(bits, rest) if bits or rest else None

    def slots(self, query: LowAggregate) -> list[Slot]:
        """The slots of a query in the table, and the count that marks its groups."""
        where = self.where(query)
        if where is None:
            return list(query.slots)
        seen = Slot("seen", COUNT, None, Type.ULLONG, where)
        return [seen, *(replace(slot, where=where) for slot in query.slots)]


def same_tuples(queries: Sequence[LowAggregate]) -> bool:
    return len({(frozenset(q.signature), frozenset(q.rest), q.anyof) for q in queries}) == 1
