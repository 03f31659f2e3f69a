"""The slice a time lies in: how windows that overlap are made of parts that do not (paper 0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from terascope.functions.base import UNORDERED, Scalar, Slope, Trend, Value
from terascope.functions.roles import SlicePart
from terascope.functions.signatures import INTEGER, TEXT, known, signature
from terascope.functions.slices import SliceVector, parse_slices
from terascope.functions.slopes import folding
from terascope.functions.values import Text, as_text, whole
from terascope.types import Type


def _vector(text: Text) -> SliceVector:
    return parse_slices(as_text(text))


def _start(time: int, text: Text) -> int:
    return whole(_vector(text).start(time), "slice_start")


def _end(time: int, text: Text) -> int:
    return whole(_vector(text).end(time), "slice_end")


def _has(time: int, text: Text) -> bool:
    return _vector(text).has(time)


def _cut(args: Sequence[Slope]) -> Slope:
    """An edge falls behind by no more than its time does, and the longest slice."""
    time, text = args
    if time.trend is not Trend.INCREASING or not isinstance(text.value, str | bytes):
        return UNORDERED
    band = time.band + max(_vector(text.value).lengths) if time.band else 0
    return replace(time, band=band, strict=False)


def _check(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        _vector(constants[1])


def _edge(name: str, evaluate: Value, role: SlicePart, doc: str) -> Scalar:
    rule = signature(name, INTEGER, TEXT, returns=lambda args: known(args[0], Type.LLONG))
    slope = folding(evaluate, _cut)
    return Scalar(name, rule, evaluate, slope=slope, check_constants=_check, role=role, doc=doc)


SCALARS: Final = (
    _edge(
        "slice_start",
        _start,
        SlicePart("start"),
        "slice_start(time, '12 3'): where the slice begins it lies in",
    ),
    _edge(
        "slice_end",
        _end,
        SlicePart("end"),
        "slice_end(time, '12 3'): where the slice ends it lies in",
    ),
    Scalar(
        "in_slices",
        signature("in_slices", INTEGER, TEXT, returns=Type.BOOL),
        _has,
        check_constants=_check,
        role=SlicePart("inside"),
        doc="in_slices(time, '(5) 5'): whether the slice it lies in is none in brackets",
    ),
)
