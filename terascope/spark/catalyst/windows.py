"""Windows and slices in Spark: each tuple once per window it belongs to (paper 0, section 3).

In: a Frame with a time, or with elements that have a [wstart, wend) of their own. Out: the Frame
with `wstart` and `wend` appended. A window [t-r, t) that holds [start, end) ends at a multiple t of
the slide with end <= t <= start + r; a tuple at ts is the element [ts, ts+1). The slice that a time
lies in means what terascope.functions.slices says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal, TypeAlias, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from terascope.functions.slices import SliceVector, parse_slices
from terascope.plan.rel import WEND, WSTART, Slices, Sliding, Window, WindowSpec
from terascope.spark.catalyst.frame import Frame, project
from terascope.spark.catalyst.operands import Operands, number

CHUNK = 1 << 16
"""The numbers in one array of `numbers_between`."""

STARTS, ENDS = "window_start", "window_end"

Part: TypeAlias = Literal["start", "end", "inside"]
MOST_SLICES = 64
"""The most slices of a native expression; Python looks up slices of longer vectors."""


def window_frame(rel: Window, source: Frame) -> Frame:
    kept = [source.column(n) for n in source.names if n not in (WSTART, WEND)]
    if rel.elements:
        start, end = source.column(WSTART), source.column(WEND)
    else:
        start = source.column(rel.on)
        end = start + F.lit(1)
    match rel.spec:
        case Sliding(range_, slide):
            df = source.df.select(
                *kept, sliding_ends(start, end, range_, slide).alias(ENDS)
            ).filter(F.col(ENDS).isNotNull())
            ends = F.col(ENDS)
            return project(df, [*kept, ends - F.lit(range_), ends], rel.fields)
        case Slices(lengths):
            vector = SliceVector(lengths)
            low, high = of_slice("start", start, vector), of_slice("end", start, vector)
            df = source.df.select(*kept, end.alias("end"), low.alias(STARTS), high.alias(ENDS))
            df = df.filter(F.col("end") <= F.col(ENDS))
            return project(df, [*kept, F.col(STARTS), F.col(ENDS)], rel.fields)
        case _:
            assert_never(rel.spec)


def sliding_ends(start: Column, end: Column, range_: int, slide: int) -> Column:
    """The end of each window around [start, end); one row each."""
    first = end + F.pmod(-end, F.lit(slide))
    latest = start + F.lit(range_)
    last = latest - F.pmod(latest, F.lit(slide))
    if range_ == slide:
        # Tumbling: the one window there can be needs no generator.
        return F.when(first <= last, first)
    return F.explode(F.when(first <= last, F.sequence(first, last, F.lit(slide))))


def windows_between(df: DataFrame, spec: WindowSpec) -> DataFrame:
    """All windows from the first to the last among `df`'s columns STARTS and ENDS."""
    bounds = df.agg(F.min(STARTS).alias("first"), F.max(STARTS).alias("last"))
    match spec:
        case Sliding(range_, slide):
            starts = numbers_between(bounds, slide)
            return starts.select(F.col("n").alias(STARTS), (F.col("n") + F.lit(range_)).alias(ENDS))
        case Slices(lengths):
            period = sum(lengths)
            periods = bounds.select(
                (F.col("first") - F.pmod("first", F.lit(period))).alias("first"),
                (F.col("last") - F.pmod("last", F.lit(period))).alias("last"),
                F.col("first").alias("from"),
                F.col("last").alias("to"),
            )
            edges = [0, *accumulate(lengths)]
            slices = F.array(
                *(
                    F.struct(F.lit(a).cast("long").alias("a"), F.lit(b).cast("long").alias("b"))
                    for a, b in pairwise(edges)
                )
            )
            each = numbers_between(periods, period, "from", "to").select(
                "n", "from", "to", F.explode(slices).alias("s")
            )
            each = each.select(
                (F.col("n") + F.col("s.a")).alias(STARTS),
                (F.col("n") + F.col("s.b")).alias(ENDS),
                "from",
                "to",
            )
            return each.filter(F.col(STARTS).between(F.col("from"), F.col("to"))).select(
                STARTS, ENDS
            )
        case _:
            assert_never(spec)


def numbers_between(bounds: DataFrame, step: int, *others: str) -> DataFrame:
    """The numbers `n` = first, first + step, ... last, in two steps so that no array is long."""
    known = bounds.filter(F.col("first").isNotNull())
    chunk = step * CHUNK
    chunks = known.select(
        F.explode(F.sequence("first", "last", F.lit(chunk))).alias("low"), "last", *others
    )
    high = F.least(F.col("low") + F.lit(chunk - step), F.col("last"))
    return chunks.select(F.explode(F.sequence("low", high, F.lit(step))).alias("n"), *others)


def slice_column(part: Part, operands: Operands) -> Column | None:
    """The start or the end of the slice of a time, or whether it is no gap."""
    time, text = operands
    if not text.constant or text.value is None:
        return None
    vector = parse_slices(str(text.value))
    return of_slice(part, time.column, vector) if len(vector.lengths) <= MOST_SLICES else None


def of_slice(part: Part, time: Column, vector: SliceVector) -> Column:
    """The position of a time in its period; pmod is right before time 0, too."""
    offset = F.pmod(time, number(vector.period))
    chosen = at_place(offset, vector.starts, results(part, vector))
    return chosen if part == "inside" else time - offset + chosen


def results(part: Part, vector: SliceVector) -> list[Column]:
    """For each slice of a period the value of the function; edges count from its start."""
    if part == "inside":
        return [F.lit(i not in vector.gaps) for i in range(len(vector.lengths))]
    lengths = vector.lengths if part == "end" else (0,) * len(vector.lengths)
    return [number(a + n) for a, n in zip(vector.starts, lengths, strict=True)]


def at_place(offset: Column, starts: Sequence[int], given: Sequence[Column]) -> Column:
    """A binary search as an expression, with few comparisons."""
    if len(given) == 1:
        return given[0]
    middle = len(given) // 2
    before = at_place(offset, starts[:middle], given[:middle])
    behind = at_place(offset, starts[middle:], given[middle:])
    return F.when(offset < number(starts[middle]), before).otherwise(behind)
