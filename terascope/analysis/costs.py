"""The cost of an expression per tuple, in nanoseconds (dissertation 3.4.1).

In: an expression, and the costs of functions: as the user gives them, else as `terascope calibrate`
measured them on this machine, else as each function estimates its own. Out: the sum over all its
calls.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never

from terascope.functions.base import Scalar
from terascope.plan.expr import Call, Case, Cast, Col, Expr, Lit, Param, children, is_constant
from terascope.types import Type

BUDGET_NS: Final = 800
"""The most nanoseconds per tuple of a predicate, key or computed column next to the source: about
as much as sending a tuple with its payload to the high level instead."""
THROUGH_PAYLOAD_NS: Final = 1000
"""The cost of a function that reads a packet's whole payload, where it declares none."""
NUMBER_CAST_NS: Final = 2
TEXT_CAST_NS: Final = 100
BRANCH_NS: Final = 1
PAYLOAD_MARK: Final = " on payload"


@dataclass(frozen=True)
class Costs:
    """Costs of functions by name; `name on payload` where an argument is BINARY."""

    given: Mapping[str, float] = field(default_factory=dict)
    """The costs that the user gives, which override all others."""
    measured: Mapping[str, float] = field(default_factory=dict)
    budget_ns: float = BUDGET_NS

    def of(self, expr: Expr) -> float:
        """Nanoseconds for one tuple. An expression without columns costs nothing."""
        if is_constant(expr):
            return 0.0
        return self.of_node(expr) + sum(map(self.of, children(expr)))

    def of_node(self, expr: Expr) -> float:
        """The cost of one node, without its operands."""
        match expr:
            case Col() | Lit() | Param():
                return 0.0
            case Call(function, args):
                on_payload = any(a.type is Type.BINARY and not is_constant(a) for a in args)
                return self.of_function(function, on_payload)
            case Case(branches):
                return float(BRANCH_NS * len(branches))
            case Cast(operand, type):
                numbers = {t for t in (operand.type, type) if t.is_numeric or t is Type.BOOL}
                return float(NUMBER_CAST_NS if numbers == {operand.type, type} else TEXT_CAST_NS)
            case _:
                assert_never(expr)

    def of_function(self, function: Scalar, on_payload: bool = False) -> float:
        name = payload_name(function.name) if on_payload else function.name
        for known in (self.given, self.measured):
            if name in known:
                return float(known[name])
            # What the user says of a function holds for whatever it is called with.
            if known is self.given and function.name in known:
                return float(known[function.name])
        if not on_payload:
            return float(function.cost_ns)
        through = max(THROUGH_PAYLOAD_NS, function.cost_ns)
        return float(through if function.payload_ns is None else function.payload_ns)


def payload_name(function: str) -> str:
    return function + PAYLOAD_MARK


# ---- the file that calibration writes ------------------------------------------------------------


def costs_file() -> Path:
    """The file with the costs of this machine, in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    folder = Path(home) if home else Path.home() / ".cache"
    return folder / "terascope" / "costs.json"


def read_measured(path: Path | None = None) -> dict[str, float]:
    """The measured costs; empty without a calibration. A damaged file counts as empty."""
    try:
        document = json.loads((path or costs_file()).read_text(encoding="utf-8"))
        return {str(name): float(ns) for name, ns in document["costs"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def write_measured(
    measured: Mapping[str, float], about: Mapping[str, str], path: Path | None = None
) -> Path:
    """Keep measured costs, with a few words about where they come from."""
    target = path or costs_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    rounded = {name: round(ns, 2) for name, ns in sorted(measured.items())}
    text = json.dumps({**about, "costs": rounded}, indent=2) + "\n"
    unfinished = target.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(target)
    return target
