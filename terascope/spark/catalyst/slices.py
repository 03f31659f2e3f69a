"""The slice a time lies in, as Spark Columns; the meaning is that of terascope.functions.slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.slices import SliceVector, parse_slices
from terascope.spark.catalyst.operands import Builder, Operand, number
from terascope.types import Type

MOST_SLICES = 64
"""More would make a long expression; Python looks them up then."""


def slice_column(name: str) -> Builder:
    def build(operands: tuple[Operand, ...], _: Type) -> Column | None:
        time, text = operands
        if not text.constant or text.value is None:
            return None
        vector = parse_slices(str(text.value))
        if len(vector.lengths) > MOST_SLICES:
            return None
        return of_slice(name, time.column, vector)

    return build


def of_slice(name: str, time: Column, vector: SliceVector) -> Column:
    """slice_start, slice_end or in_slices of a time; pmod makes it right before time 0 too."""
    offset = F.pmod(time, number(vector.period))
    chosen = at_place(offset, vector.starts, results(name, vector))
    return chosen if name == "in_slices" else time - offset + chosen


def results(name: str, vector: SliceVector) -> list[Column]:
    """For each slice of a period what the function gives there; edges from its begin."""
    if name == "in_slices":
        return [F.lit(i not in vector.gaps) for i in range(len(vector.lengths))]
    lengths = vector.lengths if name == "slice_end" else (0,) * len(vector.lengths)
    return [number(a + n) for a, n in zip(vector.starts, lengths, strict=True)]


def at_place(offset: Column, starts: Sequence[int], given: Sequence[Column]) -> Column:
    """By halves: as few comparisons as possible."""
    if len(given) == 1:
        return given[0]
    middle = len(given) // 2
    before = at_place(offset, starts[:middle], given[:middle])
    behind = at_place(offset, starts[middle:], given[middle:])
    return F.when(offset < number(starts[middle]), before).otherwise(behind)


SLICE_SCALARS: Mapping[str, Builder] = {
    name: slice_column(name) for name in ("slice_start", "slice_end", "in_slices")
}
