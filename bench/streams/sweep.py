"""State of a query against the interval of heartbeats: figures 4-2 and 4-4 of the dissertation.

In: a query set, intervals, a length. Out: an experiment with a contender for each interval and one
without heartbeats. A trace of two busy links and a silent one is replayed as fast as can be, with
the trace's own clock: heartbeats follow it, and a micro-batch reads a fixed time of it. Without
heartbeats nothing comes out before the trace ends, and the store grows to that end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from matplotlib.figure import Figure
from rich.console import RenderableType

from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.picture import OWN_COLOUR, PEER_COLOUR
from bench.streams.links import Trace, busy_and_silent, small
from bench.streams.streamed import Feed, Streamed, WithSeries, same_as_batch

OFF = "heartbeats off"
QUICK_BATCH_SECONDS = 4.0
COLUMNS = (
    Column("held_mb", "held MB", "{:,.1f}"),
    Column("most_rows", "rows at once"),
    Column("rows_before_end", "rows before the end"),
    Column("longest_batch", "longest batch s", "{:.2f}"),
    Column("driver_mb", "driver MB"),
    Column("jvm_mb", "JVM MB"),
    Column("workers_mb", "workers MB"),
)


@dataclass(frozen=True)
class Sweep:
    """One of the two experiments."""

    name: str
    title: str
    gsql: str
    sets: Mapping[str, tuple[str, ...]]
    intervals: tuple[int, ...]
    quick_intervals: tuple[int, ...]
    seconds: int
    """Of the trace."""
    batch_seconds: float
    """Of the trace, that a micro-batch reads."""
    printed_at: int
    printed_mb: float
    """What the dissertation gives for an interval."""

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        intervals = self.quick_intervals if settings.quick else self.intervals
        trace = busy_and_silent(settings, 30 if settings.quick else self.seconds, tell)
        little = small(settings, tell)
        batch_seconds = QUICK_BATCH_SECONDS if settings.quick else self.batch_seconds
        feed, little_feed = self._feed(trace, batch_seconds), self._feed(little, 10.0)
        contenders: list[Contender] = []
        for beat in (*intervals, 0):
            running = {
                "speed": "max",
                "heartbeat": beat,
                "trigger": 0.0,
                "batch_bytes": round(trace.per_second() * batch_seconds),
                "tasks": settings.cores,
            }
            contenders.append(Streamed(label(beat), feed, running, little_feed))
        check = WithSeries(same_as_batch(settings, feed, little_feed))
        about = (
            f"{trace.packets:,} packets of {trace.seconds} s on two busy links,"
            f" {trace.packets / trace.seconds / 2:,.0f} per second on each;"
            f" {trace.bytes / 1e6:,.0f} MB; the third is silent;"
            f" a micro-batch reads {batch_seconds:g} s of the trace",
        )
        return Prepared(
            tuple(contenders),
            check,
            about,
            columns=COLUMNS,
            runs=0,
            alternating=False,
            conclude=partial(conclude, self),
            draw=partial(draw, self),
        )

    def _feed(self, trace: Trace, batch_seconds: float) -> Feed:
        # Several splits in a batch, so that all tasks have work.
        split = max(4096, round(trace.per_second() * batch_seconds / 8))
        return Feed(self.gsql, trace.sources, self.sets, split)


def label(beat: int) -> str:
    return f"every {beat} s" if beat else OFF


def interval_of(contender: str) -> int | None:
    """In seconds; None without heartbeats."""
    return None if contender == OFF else int(contender.split()[1])


def conclude(sweep: Sweep, outcomes: list[Outcome]) -> list[RenderableType]:
    """Ours beside what the dissertation prints."""
    lines: list[RenderableType] = []
    held = {interval_of(o.contender): o.figure("held_mb") for o in outcomes if o.seconds}
    mine = held.get(sweep.printed_at)
    if mine is not None:
        lines.append(
            f"held at an interval of {sweep.printed_at} s: {mine:,.1f} MB;"
            f" the dissertation prints {sweep.printed_mb:,.0f} MB"
        )
    lines += slow_flush([o for o in outcomes if o.seconds and o.contender != OFF])
    blocked = next((o for o in outcomes if o.contender == OFF and o.seconds), None)
    if blocked is not None:
        lines.append(
            f"without heartbeats {blocked.figure('rows_before_end') or 0:,.0f} rows came out before"
            f" the trace ended, and {blocked.figure('held_mb'):,.1f} MB were held"
        )
    return lines


def slow_flush(outcomes: list[Outcome]) -> list[str]:
    """What the rarest heartbeats cost that close many slices at once, against the most frequent."""
    if len(outcomes) < 2:
        return []
    often, seldom = outcomes[0], outcomes[-1]

    def times(*names: str) -> float:
        first, last = (sum(o.figure(n) or 0.0 for n in names) for o in (often, seldom))
        return last / first if first else 0.0

    return [
        f"{seldom.contender} against {often.contender}:"
        f" {times('driver_mb', 'jvm_mb', 'workers_mb'):.2f} times the memory,"
        f" {times('longest_batch'):.2f} times the longest micro-batch (target 2)"
    ]


def draw(sweep: Sweep, figure: Figure, outcomes: list[Outcome]) -> None:
    """What is held against the interval; and over the time of the trace."""
    by_interval, over_time = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.09, wspace=0.25)
    points = [
        (beat, o.figure("held_mb") or 0.0)
        for o in outcomes
        if o.seconds and (beat := interval_of(o.contender)) is not None
    ]
    by_interval.plot([x for x, _ in points], [y for _, y in points], "o-", color=OWN_COLOUR)
    by_interval.plot([sweep.printed_at], [sweep.printed_mb], "x", color=PEER_COLOUR)
    by_interval.annotate(
        f"dissertation:\n{sweep.printed_mb:,.0f} MB",
        (sweep.printed_at, sweep.printed_mb), ha="right", va="top", fontsize=7,
        xytext=(-6, 0), textcoords="offset points",
    )  # fmt: skip
    by_interval.set_yscale("log")
    by_interval.set_xlabel("heartbeat interval, s")
    by_interval.set_ylabel("most held, MB")
    chosen = [o for o in outcomes if o.series]
    for outcome in (chosen[0], *chosen[-2:]) if len(chosen) > 3 else chosen:
        series = outcome.series
        over_time.plot(series["batch_trace"], series["batch_held_mb"], label=outcome.contender)
    over_time.set_xlabel("time of the trace, s")
    over_time.set_ylabel("held, MB")
    over_time.legend(fontsize=7)
