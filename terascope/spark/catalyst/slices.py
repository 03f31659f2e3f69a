"""The slice a time lies in, as Spark Columns; the meaning is that of terascope.functions.slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.slices import SliceVector, parse_slices
from terascope.spark.catalyst.operands import Operands, number

Part: TypeAlias = Literal["start", "end", "inside"]
MOST_SLICES = 64
"""More would make a long expression; Python looks them up then."""


def slice_column(part: Part, operands: Operands) -> Column | None:
    """Where the slice of a time begins or ends, or whether it is no gap."""
    time, text = operands
    if not text.constant or text.value is None:
        return None
    vector = parse_slices(str(text.value))
    return of_slice(part, time.column, vector) if len(vector.lengths) <= MOST_SLICES else None


def of_slice(part: Part, time: Column, vector: SliceVector) -> Column:
    """Pmod makes it right before time 0, too."""
    offset = F.pmod(time, number(vector.period))
    chosen = at_place(offset, vector.starts, results(part, vector))
    return chosen if part == "inside" else time - offset + chosen


def results(part: Part, vector: SliceVector) -> list[Column]:
    """For each slice of a period what the function gives there; edges from its begin."""
    if part == "inside":
        return [F.lit(i not in vector.gaps) for i in range(len(vector.lengths))]
    lengths = vector.lengths if part == "end" else (0,) * len(vector.lengths)
    return [number(a + n) for a, n in zip(vector.starts, lengths, strict=True)]


def at_place(offset: Column, starts: Sequence[int], given: Sequence[Column]) -> Column:
    """By halves: as few comparisons as possible."""
    if len(given) == 1:
        return given[0]
    middle = len(given) // 2
    before = at_place(offset, starts[:middle], given[:middle])
    behind = at_place(offset, starts[middle:], given[middle:])
    return F.when(offset < number(starts[middle]), before).otherwise(behind)
