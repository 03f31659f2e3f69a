"""The slice a time lies in: how windows that overlap are made of parts that do not (paper 0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal

from terascope.functions.base import UNORDERED, Scalar, Slope, Trend
from terascope.functions.roles import SlicePart
from terascope.functions.signatures import INTEGER, TEXT, builtin, known, parses
from terascope.functions.slices import SliceVector, parse_slices
from terascope.functions.slopes import folding
from terascope.functions.values import Text, as_text, whole
from terascope.types import Type


def _vector(text: Text) -> SliceVector:
    return parse_slices(as_text(text))


def _cut(args: Sequence[Slope]) -> Slope:
    """An edge falls behind by no more than its time does, and the longest slice."""
    time, text = args
    if time.trend is not Trend.INCREASING or not isinstance(text.value, str | bytes):
        return UNORDERED
    band = time.band + max(_vector(text.value).lengths) if time.band else 0
    return replace(time, band=band, strict=False)


_check: Final = parses(parse_slices)


def _edge(part: Literal["start", "end"]) -> Callable[[Callable[[int, Text], int]], Scalar]:
    def declared(function: Callable[[int, Text], int]) -> Scalar:
        return builtin(
            INTEGER, TEXT, returns=lambda args: known(args[0], Type.LLONG),
            slope=folding(function, _cut), check_constants=_check, role=SlicePart(part),
        )(function)  # fmt: skip

    return declared


@_edge("start")
def slice_start(time: int, text: Text) -> int:
    """slice_start(time, '12 3'): where the slice begins it lies in."""
    return whole(_vector(text).start(time), "slice_start")


@_edge("end")
def slice_end(time: int, text: Text) -> int:
    """slice_end(time, '12 3'): where the slice ends it lies in."""
    return whole(_vector(text).end(time), "slice_end")


@builtin(INTEGER, TEXT, returns=Type.BOOL, check_constants=_check, role=SlicePart("inside"))
def in_slices(time: int, text: Text) -> bool:
    """in_slices(time, '(5) 5'): whether the slice it lies in is none in brackets."""
    return _vector(text).has(time)
