"""`start`: what a run costs before it reads much.

One small query over a capture of 300,000 packets. *Plain Spark*: a new process opens Spark as it
comes and gets its first rows from Python workers. *Cold*: `terascope run` in a new process. *Warm*:
the same query again in one session. *After a pause*: the same when Spark has ended its idle
workers, which it does after a minute. *Local*: the same without Spark. Told are seconds by the
clock and the processor time of all processes, those of a command to the end of the last one.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import RenderableType
from rich.text import Text

from bench.decode import capture_file
from bench.experiment import Column, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.memory import process_tree
from bench.set50 import packet_profile

PACKETS = 300_000
PAUSE_SECONDS = 65.0
"""Spark ends workers that were idle for 60 s."""
QUERY = """
QUERY talkers:
SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS total FROM PKT
GROUP BY time/60 AS tb, srcIP ORDER BY total DESC LIMIT 3;
"""
PLAIN_SPARK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(0, 1000, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()
print(len(rows))
spark.stop()
"""
CHILD_SUBREAPER = 36
"""Of prctl(2): processes whose parent has ended become ours, and we hear what they took."""


@dataclass(frozen=True)
class Command:
    """A process of its own, each time."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Commanding:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
        return Commanding(tuple(a.replace("CORES", str(cores)) for a in self.arguments))


@dataclass(frozen=True)
class Commanding:
    arguments: tuple[str, ...]

    def warm(self) -> None:
        """Compiles kernels, and finds the files in memory later."""
        self.run(Path())

    def run(self, output: Path) -> Figures:
        del output
        others = children()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *self.arguments], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - began
        wait_for_all(others)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"clock": seconds, "cpu": cpu, "rows": len(done.stdout.splitlines())}

    def close(self) -> None:
        """Nothing is open."""


def children() -> set[int]:
    """The processes that this one has started, or has taken over from those that ended."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text(encoding="ascii").split()}


def wait_for_all(others: set[int]) -> None:
    """Wait until no process is left but these: Java ends after Python."""
    while new := children() - others:
        for pid in new:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


@dataclass(frozen=True)
class Again:
    """The same query in a session that is open."""

    name: str
    query: str
    source: str
    pause: float = 0.0
    engine: Literal["local", "spark"] = "spark"
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Repeating:
        import terascope

        session = terascope.Session(master=f"local[{cores}]", engine=self.engine)
        session.source(self.source)
        return Repeating(session, self.query, self.pause)


@dataclass(frozen=True)
class Repeating:
    session: Any
    query: str
    pause: float

    def warm(self) -> None:
        for _ in range(3):
            self.asked()

    def asked(self) -> int:
        with self.session.load(self.query).run() as results:
            return int(results["talkers"].head().num_rows)

    def run(self, output: Path) -> Figures:
        del output
        time.sleep(self.pause)
        before, began = tree_seconds(), time.perf_counter()
        rows = self.asked()
        seconds = time.perf_counter() - began
        return {"clock": seconds, "cpu": tree_seconds() - before, "rows": rows}

    def close(self) -> None:
        self.session.close()


def tree_seconds() -> float:
    """Processor time of this process and all below it; 0 where there is no /proc."""
    ticks = 0
    for process in process_tree(os.getpid()):
        try:
            text = Path(f"/proc/{process.pid}/stat").read_text(encoding="latin-1")
        except OSError:
            continue  # it has just ended
        ticks += sum(int(value) for value in text.rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass
class SomeRows:
    """Everybody must have got rows, as many in every run."""

    seen: Mapping[str, int] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            counts = {figures["rows"] for figures in outcome.figures}
            outcome.checked = len(counts) == 1 and min(counts) > 0
            if outcome.figures and not outcome.checked:
                outcome.remark = f"rows: {sorted(counts)}"


def compared(outcomes: list[Outcome]) -> list[RenderableType]:
    """The best of each, which what else the machine does disturbs least."""
    best = {
        outcome.contender: {
            name: min(f[name] for f in outcome.figures) for name in ("clock", "cpu")
        }
        for outcome in outcomes
        if outcome.figures
    }
    lines = [
        f"{name}: at best {figures['clock']:.2f} s, {figures['cpu']:.2f} s of processor time"
        for name, figures in best.items()
    ]
    if "plain Spark" in best and "cold" in best:
        plain, cold = best["plain Spark"], best["cold"]
        lines.append(
            f"cold by plain Spark: {cold['clock'] / plain['clock']:.2f} by the clock,"
            f" {cold['cpu'] / plain['cpu']:.2f} by processor time"
        )
    return [Text(line) for line in lines]


@dataclass(frozen=True)
class StartExperiment:
    name: str = "start"
    title: str = "what a run costs before it reads much: cold, warm, after a pause, beside Spark"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        cut = packet_profile(packets, settings.seed).snaplen
        capture = capture_file(settings, packets, cut)
        query = capture.with_name("start-talkers.gsql")
        query.write_text(QUERY, encoding="utf-8")
        source = f"eth0=pcap:{capture}"
        run = ("-m", "terascope", "run", str(query), "--source", source, "-q")
        pause = 1.0 if settings.quick else PAUSE_SECONDS
        contenders: tuple[Contender, ...] = (
            Command("plain Spark", ("-c", PLAIN_SPARK, "local[CORES]")),
            Command("cold", (*run, "--master", "local[CORES]")),
            Again("warm", str(query), source),
            Again("after a pause", str(query), source, pause),
            Command("local cold", (*run, "--engine", "local")),
            Again("local warm", str(query), source, engine="local"),
        )
        return Prepared(
            contenders=contenders,
            check=SomeRows(),
            about=(f"{packets:,} packets, {capture.stat().st_size / 2**20:,.0f} MB",),
            columns=(
                Column("clock", "of these measured s", "{:.2f}"),
                Column("cpu", "processor s", "{:.2f}"),
            ),
            inputs=(capture,),
            conclude=compared,
        )


EXPERIMENT = StartExperiment()
