"""The operators of a Job, one line each: what it does, where, its predicted and measured cost."""

from __future__ import annotations

from collections.abc import Sequence

from terascope.explain.model import Facts, OperatorLine
from terascope.physical.operators import Measure, Measures, Operator
from terascope.units import readable_bytes


def operator_lines(
    operators: Sequence[Operator], measures: Measures | None = None
) -> tuple[OperatorLine, ...]:
    """One line for each operator; `measures`: what they did, after a run."""
    return tuple(
        OperatorLine(
            one.name,
            one.places,
            one.does,
            one.inputs,
            "" if one.cost_ns is None else f"{one.cost_ns:.0f} ns each",
            one.choice,
            () if measures is None or one.name not in measures else figures(measures[one.name]),
        )
        for one in operators
    )


def figures(measure: Measure) -> Facts:
    """What was measured, as words and values; zeros are left out."""
    rest = (
        (measure.probes, "probes", f"{measure.probes:,}"),
        (measure.evicted, "evicted", f"{measure.evicted:,}"),
        (measure.exchanged_bytes, "exchanged", readable_bytes(measure.exchanged_bytes)),
        (measure.spilled_bytes, "spilled", readable_bytes(measure.spilled_bytes)),
        (measure.seconds, "time", f"{measure.seconds:.3f} s"),
    )
    counts = (("in", f"{measure.taken:,}"), ("out", f"{measure.given:,}"))
    return (*counts, *((word, text) for amount, word, text in rest if amount))
