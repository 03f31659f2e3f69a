"""Which expressions may run next to the source: LFTA-safety (dissertation 3.4.1).

In: an expression over the columns of a source, the costs of functions, and what the source's host
is able to do. Out: nothing when it is safe, else why it is not, in the user's words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from terascope.analysis.costs import Costs
from terascope.plan.expr import Call, Expr, walk

Refusal: TypeAlias = Callable[[Expr], str | None]
"""Why somebody cannot evaluate an expression; None when they can."""


def why_unsafe(expr: Expr, costs: Costs, able: Refusal, knows: Refusal) -> str | None:
    """Why an expression must stay above the source; None when it is low-level safe.

    `able` tells what the host's profile rules out, `knows` what its evaluator has no form for: the
    second is only of interest when the expression would be worth it.
    """
    for call in walk(expr):
        if isinstance(call, Call) and call.function.user_defined:
            return f"{call.function.name} is a user's Python function"
    refused = able(expr)
    if refused is not None:
        return refused
    cost = costs.of(expr)
    if cost > costs.budget_ns:
        return f"costs {cost:.0f} ns, over the budget of {costs.budget_ns:.0f} ns"
    return knows(expr)
