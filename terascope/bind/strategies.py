"""Strategies of aggregates: which of its ways to keep states a query or a setting forces.

In: `f(x) WITH strategy 'name'`, the hint `DEFINE { strategy 'f=name, g=name'; }` and the setting
`strategies`; the first of them that names a strategy decides. Out: the last parameter of the
aggregate's zero(), empty where the optimiser chooses (paper 1, conclusions), with the bytes of a
state next to the source behind it where a declaration says them.
"""

from __future__ import annotations

from collections.abc import Mapping

from terascope.bind.context import BindContext
from terascope.diagnostic import Diagnostic, Mistake, Span
from terascope.functions.base import AggregateFunction
from terascope.functions.registry import Functions
from terascope.plan.expr import Lit
from terascope.syntax import ast
from terascope.types import Type

UNKNOWN = "unknown-strategy"


def strategy_of(
    context: BindContext, function: AggregateFunction, node: ast.CallExpr
) -> tuple[Lit, ...]:
    """The strategy of a call, as its constant; none for an aggregate that has no strategies."""
    if node.strategy:
        wrong = problem(function, node.strategy, node.span)
        if wrong is not None:
            raise Mistake(wrong)
    if not function.strategies:
        return ()
    strategy = node.strategy or context.strategies.get(function, "")
    size = context.scratchpads.get(function)
    if size is not None and not strategy.endswith(")"):
        strategy = f"{strategy}({size})"
    return (Lit(strategy, Type.STRING),)


def read_strategies(
    functions: Functions, text: str, span: Span
) -> tuple[dict[AggregateFunction, str], list[Diagnostic]]:
    """The strategies of a list such as 'approx_quantile=gk_heavy, heavy_hitters=hash+adaptive'."""
    given: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, strategy = (part.strip() for part in entry.partition("="))
        if not equals or not name or not strategy:
            message = f"'{entry}' does not give an aggregate a strategy"
            help = "write name=strategy, several with commas between them"
            return {}, [Diagnostic("bad-hint", message, span, (), help)]
        given[name] = strategy
    return checked_strategies(functions, given, span)


def checked_strategies(
    functions: Functions, given: Mapping[str, str], span: Span
) -> tuple[dict[AggregateFunction, str], list[Diagnostic]]:
    """The strategies of aggregates, and what is wrong with those that are none."""
    found: dict[AggregateFunction, str] = {}
    wrong: list[Diagnostic] = []
    for name, strategy in given.items():
        extractor = functions.extractor(name)
        function = functions.aggregate(name if extractor is None else extractor.aggregate)
        if function is None:
            message = f"there is no aggregate '{name}' to give a strategy to"
            wrong.append(Diagnostic("bad-hint", message, span))
            continue
        mistaken = problem(function, strategy, span)
        if mistaken is None:
            found[function] = strategy
        else:
            wrong.append(mistaken)
    return found, wrong


def problem(function: AggregateFunction, strategy: str, span: Span) -> Diagnostic | None:
    """What is wrong with a strategy for an aggregate, if anything is."""
    if not function.strategies:
        message = f"'{function.name}' has no strategies: its states are always kept in one way"
        return Diagnostic(UNKNOWN, message, span)
    if function.has_strategy(strategy):
        return None
    known = tuple(f"{name}: {doc}" for name, doc in function.strategies.items())
    message = f"'{strategy}' is no strategy of '{function.name}'"
    return Diagnostic(UNKNOWN, message, span, known, f"it takes {', '.join(function.strategies)}")
