"""`heartbeat-cpu`: section 4.8.3 of the dissertation, what heartbeats cost in processor time.

The merge of `heartbeat-merge` over the two busy links, replayed at the speed at which it was
recorded, with a heartbeat every second and with none. Both run a micro-batch every second anyway.
The two take turns; each turn gives a pair of runs, and the answer is the mean of the pairs with its
interval of confidence. The dissertation: 37.3% of a processor without, 37.5% with. As two runs
differ by more than heartbeats cost, these also keep account of themselves: the processor time in
which tasks look at tuples for them, and the driver takes them in.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from rich.console import RenderableType

from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.streams.links import Trace, busy_and_silent, small
from bench.streams.merge import FLOWS
from bench.streams.numbers import Interval, interval
from bench.streams.streamed import Feed, Streamed, WithSeries, same_as_batch

WITH, WITHOUT = "every 1 s", "heartbeats off"
PAIRS = 8
QUICK_PAIRS = 2
SECONDS = 30
QUICK_SPEED = "10x"
TARGET = 0.01


def pairs(outcomes: list[Outcome]) -> list[tuple[float, float]]:
    """Processor seconds with and without, of runs next to each other."""
    found = {o.contender: [f["cpu_seconds"] for f in o.figures] for o in outcomes}
    both = found.get(WITH, []), found.get(WITHOUT, [])
    return list(zip(*both, strict=False))


def overhead(outcomes: list[Outcome]) -> Interval | None:
    """Of heartbeats, as a share of what runs without them."""
    shares = [with_ / without - 1 for with_, without in pairs(outcomes)]
    return interval(shares) if shares else None


def verdict(found: Interval) -> str:
    """What the runs allow to say, and no more."""
    if found.mean + found.half < TARGET:
        return f"less than {TARGET:.0%}"
    if found.mean - found.half > TARGET:
        return f"MORE THAN {TARGET:.0%}"
    return f"too few runs, or too uneven ones, to say whether it is less than {TARGET:.0%}"


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    found = overhead(outcomes)
    if found is None:
        return ["not both were measured"]
    lines: list[RenderableType] = [
        f"a heartbeat every second costs {found} of processor time"
        f" ({len(pairs(outcomes))} pairs, 95% confidence): {verdict(found)}"
    ]
    told = next((o for o in outcomes if o.contender == WITH and o.figures), None)
    if told is not None:
        spent, whole = told.figure("heartbeat_seconds") or 0.0, told.figure("cpu_seconds") or 1.0
        lines.append(
            f"by its own account, in tasks and driver: {spent:.3f} s of {whole:.1f} s,"
            f" {spent / whole:.2%} (target {TARGET:.0%})"
        )
    loads = {o.contender: (o.figure("cpu_seconds") or 0) / o.median for o in outcomes if o.median}
    each = ", ".join(f"{name} {load:.1%}" for name, load in loads.items())
    return [*lines, f"load of one processor: {each}; the dissertation prints 37.5% and 37.3%"]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    """Every pair as a line."""
    axes = figure.add_subplot()
    for with_, without in pairs(outcomes):
        axes.plot([0, 1], [without, with_], "o-", color="#7f8c9b", alpha=0.7)
    axes.set_xticks([0, 1], [WITHOUT, WITH])
    axes.set_xlim(-0.3, 1.3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("processor seconds of a run")


def busy_feed(trace: Trace, split_bytes: int) -> Feed:
    """Without the silent link: both go on by themselves."""
    sources = {name: text for name, text in trace.sources.items() if name != "control"}
    return Feed(FLOWS, sources, split_bytes=split_bytes)


@dataclass(frozen=True)
class HeartbeatCpu:
    name: str = "heartbeat-cpu"
    title: str = "processor time with a heartbeat every second and with none (section 4.8.3)"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        trace = busy_and_silent(settings, SECONDS, tell)
        feed = busy_feed(trace, max(4096, round(trace.per_second() / 8)))
        little = busy_feed(small(settings, tell), 65_536)
        contenders: list[Contender] = []
        for name, beat in ((WITH, 1.0), (WITHOUT, 0.0)):
            running = {
                "speed": QUICK_SPEED if settings.quick else "1x",
                "heartbeat": beat,
                "trigger": 0.5 if settings.quick else 1.0,
                "tasks": settings.cores,
            }
            # Looking at memory costs processor time, too: seldom.
            contenders.append(Streamed(name, feed, running, little, sample_seconds=10.0))
        return Prepared(
            tuple(contenders),
            WithSeries(same_as_batch(settings, feed, little)),
            (
                f"{trace.seconds} s of two busy links at the speed of their clocks,"
                f" {trace.packets / trace.seconds / 2:,.0f} packets per second on each",
            ),
            columns=(
                Column("cpu_seconds", "CPU s", "{:.2f}"),
                Column("heartbeat_seconds", "of heartbeats", "{:.3f}"),
                Column("batches", "batches"),
                Column("longest_batch", "longest batch s", "{:.2f}"),
            ),
            runs=QUICK_PAIRS if settings.quick else PAIRS,
            conclude=conclude,
            draw=draw,
        )


EXPERIMENT = HeartbeatCpu()
