"""Low-level streams whose groups are slices of windows, and their comparison.

In: a low-level aggregation, or a family of windows. Out: its tuples and keys as text, without the
slices. Streams that differ only in their slices are of one family: a window may be assembled from
the slices of several of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from terascope.functions.base import Scalar
from terascope.functions.roles import FloorDivision, SlicePart
from terascope.functions.slices import SliceVector, parse_slices
from terascope.physical.rules.low_planner import scan_use
from terascope.physical.split.slicing import SliceFamily
from terascope.physical.split.split_windows import is_retired
from terascope.plan.build import TRUE, call
from terascope.plan.expr import Call, Col, Expr, Lit, conjuncts
from terascope.plan.rel import Aggregate
from terascope.plan.show import show_expr, spelled

SliceValue: TypeAlias = int | float
"""The value that distinguishes the slices of a stream, in the order of time."""


@dataclass(frozen=True)
class WindowedTuples:
    """The tuples of windows, and the time on which the windows are measured, as text."""

    protocol: str
    interfaces: tuple[str, ...]
    conditions: frozenset[str]
    time: str


@dataclass(frozen=True)
class SliceStream:
    tuples: WindowedTuples
    keys: frozenset[str]
    """The keys beside the slice."""
    vector: SliceVector
    retired: bool = False
    scale: int = 1
    """The factor from its values to the start of a slice: 60 for time/60."""

    def closed_before(self, until: SliceValue) -> int:
        """The time before which all slices are closed, if the slices before a value are."""
        edge = int(until) * self.scale
        return edge if self.vector.start(edge) == edge else self.vector.end(edge)

    def value_at(self, time: int) -> int:
        return self.vector.start(time) // self.scale

    def is_like(self, other: SliceStream) -> bool:
        """Whether two streams are the same except for their slices."""
        return self.tuples == other.tuples and self.keys == other.keys


def slice_stream(rel: Aggregate) -> SliceStream | None:
    """The slices of a stream, or None. Groups by time/60 are slices: tumbling windows."""
    scan, predicate = scan_use(rel)
    parts = [part for part in conjuncts(predicate) if part != TRUE]
    for _, key in rel.keys:
        match key:
            case Call(Scalar(role=SlicePart("start")), (Col() as time, Lit(value=str(text)))):
                vector, scale = parse_slices(text), 1
            case Call(Scalar(role=FloorDivision()), (Col() as time, Lit(value=int(scale)))) if (
                scale >= 1
            ):
                vector = SliceVector((scale,))
            case _:
                continue
        others = frozenset(as_text(e) for _, e in rel.keys if e != key)
        tuples = windowed_tuples(scan.protocol, scan.interfaces, parts, time)
        return SliceStream(tuples, others, vector, any(map(is_retired, parts)), scale)
    return None


def tuples_of_family(family: SliceFamily) -> WindowedTuples:
    interfaces, protocol, _, _ = family.scan
    return windowed_tuples(protocol, interfaces, family.conditions, family.time)


def keys_of_family(family: SliceFamily) -> frozenset[str]:
    return frozenset(map(as_text, family.keys))


def windowed_tuples(
    protocol: str, interfaces: Iterable[str], conditions: Iterable[Expr], time: Expr
) -> WindowedTuples:
    has_time = call("not", call("is_null", time))
    own = frozenset(as_text(one) for one in conditions if one != has_time and not is_of_slices(one))
    return WindowedTuples(protocol, tuple(sorted(interfaces)), own, as_text(time))


def is_of_slices(condition: Expr) -> bool:
    """Whether a condition selects slices, or says that there are no more."""
    gaps = isinstance(condition, Call) and isinstance(condition.function.role, SlicePart)
    return gaps or is_retired(condition)


def as_text(expr: Expr) -> str:
    return show_expr(spelled(expr))
