"""What the optimiser did, rule by rule: `explain --stage optimized --verbose`.

In: a Plan as bound. Out: a step for every rule that changed something, with the lines of the plan
it took away and added.
"""

from __future__ import annotations

import difflib

from terascope.analysis.order import plan_orders
from terascope.explain.model import PictureNode, RuleStep
from terascope.explain.operators import operator_node
from terascope.optimize.driver import optimize
from terascope.plan.plan import Plan


def rule_steps(plan: Plan) -> tuple[RuleStep, ...]:
    steps: list[RuleStep] = []

    def observe(rule: str, before: Plan, after: Plan) -> None:
        old, new = stream_lines(before), stream_lines(after)
        changed = [n for n in dict.fromkeys([*old, *new]) if old.get(n) != new.get(n)]
        lines: list[str] = []
        for name in changed:
            lines += changes(old.get(name, []), new.get(name, []))
        # A rule may change what is not shown, such as the order within a hidden place.
        if changed:
            steps.append(RuleStep(rule, tuple(changed), tuple(lines)))

    optimize(plan, observer=observe)
    return tuple(steps)


def stream_lines(plan: Plan) -> dict[str, list[str]]:
    orders = plan_orders(plan)
    trees = {s.name: operator_node(s.rel, orders, lambda _: ()) for s in plan}
    return {name: list(tree_lines(tree)) for name, tree in trees.items()}


def tree_lines(node: PictureNode, depth: int = 0) -> list[str]:
    lines = ["  " * depth + node.label]
    for child in node.children:
        lines += tree_lines(child, depth + 1)
    return lines


def changes(old: list[str], new: list[str]) -> list[str]:
    return [line for line in difflib.ndiff(old, new) if line[:2] in ("- ", "+ ")]
