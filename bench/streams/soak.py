"""`soak`: ten minutes of a mixed set as a stream: what grows, and are the rows those of the batch?

Two links with 20,000 packets a second together, replayed at the speed of their clocks, and a set
with all kinds of operators: selections, aggregations of several lengths, a merge, a join, sliding
windows, groups that live on until they are closed. Every 5 seconds: memory of the driver, the JVM
and the workers, files and bytes of the slice store. Memory must not grow by more than 1 MB a minute
in the second half; the store must stay bounded; the rows must be those of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure
from rich.console import RenderableType

from bench.experiment import Column, Outcome, Prepared, Settings, Tell
from bench.harness import made_once
from bench.streams.numbers import second_half, slope
from bench.streams.streamed import Feed, Streamed, WithSeries, same_as_batch
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate, link_files

MINUTES, QUICK_MINUTES = 10.0, 1.0
RATE, QUICK_RATE = 20_000, 2_000
SAMPLE_SECONDS = 5.0
MOST_MB_PER_MINUTE = 1.0
WATCHED = ("driver_mb", "jvm_mb", "workers_mb")
NAME = "terascope"

MIXED = """
QUERY resets: SELECT time, srcIP, destIP FROM TCP WHERE RST;
QUERY load: SELECT tb, COUNT(*) AS packets, SUM(len) AS bytes FROM PKT GROUP BY time/1 AS tb;
QUERY senders: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes
FROM PKT GROUP BY time/10 AS tb, srcIP;
QUERY flows: SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS packets, MAX(len) AS longest
FROM TCP GROUP BY time/30 AS tb, srcIP, destIP, srcPort, destPort;
QUERY top: SELECT tb, destPort, COUNT(*) AS packets FROM TCP GROUP BY time/10 AS tb, destPort
ORDER BY packets DESC LIMIT 5;
QUERY sent0: SELECT tb, srcIP, COUNT(*) AS packets FROM eth0.PKT GROUP BY time/10 AS tb, srcIP;
QUERY sent1: SELECT tb, srcIP, COUNT(*) AS packets FROM eth1.PKT GROUP BY time/10 AS tb, srcIP;
QUERY both: SELECT sent0.tb, sent0.srcIP, sent0.packets AS here, sent1.packets AS there
FROM sent0, sent1 WHERE sent0.tb = sent1.tb AND sent0.srcIP = sent1.srcIP;
QUERY merged: MERGE sent0.tb : sent1.tb FROM sent0, sent1;
QUERY sliding: SELECT COUNT(*) AS syns FROM TCP [RANGE '60 sec' SLIDE '10 sec'] WHERE SYN;
QUERY busy: SELECT tb, srcIP, COUNT(*) AS packets, running_count(*) AS total
FROM TCP WHERE len > 1300 GROUP BY time/5 AS tb, srcIP CLOSING_WHEN COUNT(*) < 2;
"""


@dataclass(frozen=True)
class Growth:
    """How memory of some processes moved in the second half."""

    name: str
    mb_per_minute: float
    last_mb: float

    def __str__(self) -> str:
        verdict = "" if self.mb_per_minute < MOST_MB_PER_MINUTE else ", TOO FAST"
        return (
            f"{self.name.removesuffix('_mb')}: {self.mb_per_minute:+.2f} MB a minute in the second"
            f" half, {self.last_mb:,.0f} MB at the end{verdict}"
        )


def growth(outcome: Outcome, name: str) -> Growth:
    """By least squares. The last sample is from when the stream had stopped."""
    walls, sizes = outcome.series["sample_wall"][:-1], outcome.series[name][:-1]
    xs, ys = second_half(walls, sizes)
    return Growth(name, 60 * slope(xs, ys), ys[-1])


def lags(outcome: Outcome) -> list[float]:
    """By how much each batch was later than the promptest, in seconds."""
    pairs = zip(outcome.series["batch_wall"], outcome.series["batch_trace"], strict=True)
    # The first batches start workers, the last is not paced.
    late = [wall - trace for wall, trace in pairs][1:-1]
    return [value - min(late) for value in late]


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for outcome in (o for o in outcomes if o.series):
        lines += [str(growth(outcome, name)) for name in WATCHED]
        files, held = outcome.series["store_files"], outcome.series["store_mb"]
        half = len(files) // 2
        lines.append(
            f"slice store: at most {max(files[:half] or [0]):,.0f} files and"
            f" {max(held[:half] or [0]):,.2f} MB in the first half, {max(files[half:]):,.0f} and"
            f" {max(held[half:]):,.2f} MB in the second"
        )
        late = lags(outcome)
        if late:
            lines.append(
                f"batches took {median(outcome.series['batch_seconds']):.2f} s (median),"
                f" {max(outcome.series['batch_seconds'][1:]):.2f} s at most; the latest came"
                f" {max(late):.2f} s after the promptest, the last {late[-1]:.2f} s"
            )
        rows = "are those" if outcome.checked else "are NOT those"
        lines.append(f"the rows of all queries {rows} of the batch")
    return lines


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    """Memory, the store, and the batches, over the run."""
    memory, store, batches = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.1, wspace=0.4)
    for outcome in (o for o in outcomes if o.series):
        series = outcome.series
        minutes = [wall / 60 for wall in series["sample_wall"]]
        for name in WATCHED:
            memory.plot(minutes, series[name], label=name.removesuffix("_mb"))
        store.plot(minutes, series["store_mb"])
        batches.plot([w / 60 for w in series["batch_wall"]], series["batch_seconds"], ".")
    memory.set_ylabel("memory, MB")
    memory.set_ylim(bottom=0)
    memory.legend(fontsize=7)
    store.set_ylabel("slice store, MB")
    batches.set_ylabel("seconds of a micro-batch")
    for axes in (memory, store, batches):
        axes.set_xlabel("minutes")


@dataclass(frozen=True)
class Soak:
    name: str = "soak"
    title: str = "ten minutes of a mixed set: memory, slice store, lag, and the rows of the batch"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        minutes = settings.minutes or (QUICK_MINUTES if settings.quick else MINUTES)
        rate = QUICK_RATE if settings.quick else settings.count(RATE)
        tell(f"{minutes:g} minutes of {rate:,} packets a second")
        feed, little = feed_of(settings, rate, minutes * 60), feed_of(settings, 500, 20.0)
        running = {"speed": "1x", "trigger": 1.0, "tasks": settings.cores}
        return Prepared(
            (Streamed(NAME, feed, running, little, SAMPLE_SECONDS),),
            WithSeries(same_as_batch(settings, feed, little)),
            (f"{rate:,} packets per second on two links for {minutes:g} minutes, 11 queries",),
            columns=(
                Column("tuples", "packets"),
                Column("batches", "batches"),
                Column("held_mb", "held MB", "{:,.2f}"),
                Column("mean_batch", "mean batch s", "{:.2f}"),
                Column("mean_merging", "closing s", "{:.2f}"),
                Column("mean_high_level", "high level s", "{:.2f}"),
                Column("cpu_seconds", "CPU s", "{:.0f}"),
            ),
            runs=0,
            conclude=conclude,
            draw=draw,
        )


def feed_of(settings: Settings, rate: int, seconds: float) -> Feed:
    """The two links, made once."""
    profile = Profile(
        rate=rate, duration=seconds, seed=settings.seed, links=2, snaplen=96, ipv6_share=0.0
    )
    folder = settings.data / f"soak-{rate}-{seconds:g}s-seed{settings.seed}"
    made_once(folder, partial(written, profile))
    files = link_files(folder / "eth.pcap", 2)
    return Feed(MIXED, {f"eth{i}": f"pcap:{path}" for i, path in enumerate(files)})


def written(profile: Profile, folder: Path) -> None:
    """Both links into a folder."""
    folder.mkdir(parents=True)
    generate(profile, folder / "eth.pcap")


EXPERIMENT = Soak()
