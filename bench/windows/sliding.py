"""The queries of `windows-peers`: 32 sliding windows over flow records, in everybody's words.

In: nothing. Out: GSQL for us, and SQL for the others. A window [t-r, t) stands at every multiple t
of its slide, 1.25 to 20 times as long as that; half of the ranges are no multiples of the slide.
For each source: how many records, how many bytes, and the largest.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.queries78 import PROTOCOL
from terascope.sharing.slices import Periodic

RANGES = {
    20: (40, 100, 200, 400, 25, 50, 130, 250),
    30: (60, 150, 300, 600, 50, 100, 200, 400),
    40: (80, 200, 400, 800, 60, 100, 180, 500),
    60: (120, 300, 600, 1200, 90, 200, 400, 1000),
}
"""By slide, in seconds: four multiples of it, and four that are none."""
WINDOWS = tuple(Periodic(length, slide) for slide, some in RANGES.items() for length in some)


def name(window: Periodic) -> str:
    return f"last_{window.range}_every_{window.slide}"


def gsql(windows: Iterable[Periodic]) -> str:
    queries = (
        f"QUERY {name(w)}:\n"
        f"SELECT wstart, wend, srcIP, COUNT(*) AS n, SUM(bytes) AS total, MAX(bytes) AS largest\n"
        f"FROM flows.FLOW [RANGE '{w.range} sec' SLIDE '{w.slide} sec'] GROUP BY srcIP;\n"
        for w in windows
    )
    return "\n".join([PROTOCOL, *queries])


def duckdb_sql(window: Periodic) -> str:
    """A tuple comes once for each end of a window it is in."""
    length, slide = window.range, window.slide
    ends = f"(time // {slide} + 1) * {slide}, (time + {length}) // {slide} * {slide}, {slide}"
    return (
        f"SELECT wend - {length} AS wstart, wend, srcIP,"
        " COUNT(*) AS n, BIGINT(SUM(bytes)) AS total, MAX(bytes) AS largest"
        f" FROM (SELECT unnest(generate_series({ends})) AS wend, srcIP, bytes FROM flows)"
        " GROUP BY wend, srcIP"
    )


def spark_sql(window: Periodic) -> str:
    """Spark's windows are aligned at their starts: these are moved, so that ends are multiples."""
    length, slide = window.range, window.slide
    cut = f"'{length} seconds', '{slide} seconds', '{-length % slide} seconds'"
    return (
        "SELECT BIGINT(window.start) AS wstart, BIGINT(window.end) AS wend, srcIP,"
        " COUNT(*) AS n, BIGINT(SUM(bytes)) AS total, MAX(bytes) AS largest"
        f" FROM flows GROUP BY window(timestamp_seconds(time), {cut}), srcIP"
    )


def flink_sql(window: Periodic) -> str:
    """Of a table whose event time is `at`. Starts are moved as in Spark. Only batches may: Flink's
    streams refuse ranges that are no multiples of the slide.
    """
    length, slide = window.range, window.slide
    cut = ", ".join(interval(part) for part in (slide, length, -length % slide))
    return (
        "SELECT UNIX_TIMESTAMP(CAST(window_start AS STRING)) AS wstart,"
        " UNIX_TIMESTAMP(CAST(window_end AS STRING)) AS wend, srcIP,"
        " COUNT(*) AS n, SUM(`bytes`) AS total, MAX(`bytes`) AS largest"
        f" FROM HOP(TABLE flows, DESCRIPTOR(`at`), {cut})"
        " GROUP BY window_start, window_end, srcIP"
    )


def interval(seconds: int) -> str:
    """Flink must be told how many digits there are."""
    return f"INTERVAL '{seconds}' SECOND({len(str(seconds))})"
