"""Windows that are made of the slices of a low-level stream (paper 0). Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from terascope.functions.slices import SliceVector
from terascope.sharing.slices import Periodic


@dataclass(frozen=True)
class Windows:
    """Groups of windows that are made of the groups of slices of another stream."""

    stream: str
    vector: SliceVector
    window: Periodic
    columns: tuple[str, ...]
    """Of the stream: the keys, `wend` where the slice was, and the slots."""
    keys: int
    """How many of them are keys."""
    earlier: tuple[tuple[str, SliceVector], ...] = ()
    """Other streams of the same groups in other slices, which windows are made of as well."""
