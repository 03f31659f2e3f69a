"""The generated kernels of a low-level plan: one program for each of the two passes over a batch.

In: a LowPlan. Out: `Program`s (terascope.kernels.codegen.program).
"""

from __future__ import annotations

from collections.abc import Sequence

from terascope.kernels.codegen.program import Program, program
from terascope.physical.low_plan import LowAggregate, LowPlan, LowQuery
from terascope.plan.expr import Expr


def programs(plan: LowPlan) -> tuple[Program, Program]:
    """Two programs: the first computes, for each batch as it is read, the prefilter and the
    selections; the second computes the columns of aggregations when many batches are pending.
    Aggregations that read the groups of others need no program.
    """
    selections = tuple(q for q in plan.queries if not isinstance(q, LowAggregate))
    aggregations = tuple(
        node
        for node in (*plan.queries, *plan.inner)
        if isinstance(node, LowAggregate) and node.parent is None
    )
    return (
        program(plan.predicates, outputs_of(selections)),
        program((), outputs_of(aggregations)),
    )


def outputs_of(queries: Sequence[LowQuery]) -> list[Expr]:
    """The keys, arguments and columns that queries compute."""
    found: list[Expr] = []
    for query in queries:
        if isinstance(query, LowAggregate):
            found += [expr for _, expr in query.keys]
            found += [s.argument for s in query.slots if s.argument is not None]
        else:
            found += [expr for _, expr in query.items]
    return found
