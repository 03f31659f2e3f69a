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
from terascope.functions.spark_form import SparkArguments
from terascope.plan.rel import WEND, WSTART, Slices, Sliding, Window, WindowSpec
from terascope.spark.catalyst.frame import Frame, number, project

CHUNK = 1 << 16
"""The numbers in one array of `windows_between`."""

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
    """All windows from the first to the last whose start is in `df`'s column STARTS."""
    first, last, n = F.col("first"), F.col("last"), F.col("n")
    match spec:
        case Sliding(range_, slide):
            period, edges, begin = slide, [(0, range_)], first
        case Slices(lengths):
            period, edges = sum(lengths), list(pairwise([0, *accumulate(lengths)]))
            begin = first - F.pmod(first, F.lit(period))
        case _:
            assert_never(spec)
    bounds = df.agg(F.min(STARTS).alias("first"), F.max(STARTS).alias("last"))
    known = bounds.filter(first.isNotNull()).withColumn("begin", begin)
    # The starts of periods, in two steps so that no array is long.
    chunk = period * CHUNK
    lows = F.explode(F.sequence("begin", "last", F.lit(chunk))).alias("low")
    highs = F.least(F.col("low") + F.lit(chunk - period), last)
    starts = known.select("first", "last", lows).select(
        "first", "last", F.explode(F.sequence("low", highs, F.lit(period))).alias("n")
    )
    windows = F.array(
        *(F.struct((n + F.lit(a)).alias(STARTS), (n + F.lit(b)).alias(ENDS)) for a, b in edges)
    )
    each = starts.select("first", "last", F.inline(windows))
    return each.filter(F.col(STARTS).between(first, last)).select(STARTS, ENDS)


def slice_column(part: Part, call: SparkArguments) -> Column | None:
    """The start or the end of the slice of a time, or whether it is no gap."""
    time, text = call.operands
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
    """The value of the function for each slice of a period, whose start edges count from."""
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
