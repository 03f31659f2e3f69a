"""`advise`: how long the search for a partitioning takes, for sets of 10 to 500 queries.

Every command is a process of its own: it starts, compiles the set, reads the beginning of a
capture, computes all queries on it, searches and prints JSON. Seven of ten queries group by one to
four of fifteen keys, masks and quotients among them; the others join or aggregate what they make.
Told are seconds by the clock and processor time, and the candidates that were judged.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.decode import capture_file
from bench.experiment import Column, Figures, Outcome, Prepared, Settings, Tell
from bench.set50 import packet_profile

PACKETS: Final = 1_000_000
SIZES: Final = (10, 50, 200, 500)
KEYS: Final = (
    "srcIP", "destIP", "srcPort", "destPort", "protocol", "ttl", "tos", "srcIP & 0xFFFFFF00",
    "destIP & 0xFFFF0000", "srcIP & 0xFFFFF000", "destPort/100", "srcPort & 0xFF0",
    "prefix(srcIP, 20)", "len/64", "ipversion",
)  # fmt: skip


def queries(count: int, seed: int) -> str:
    """A set of so many queries."""
    chance = random.Random(seed)
    return "\n".join(query(number, chance) for number in range(count)) + "\n"


def query(number: int, chance: random.Random) -> str:
    below = f"q{number - 1}"
    if number % 10 == 9:
        return (
            f"QUERY q{number}: SELECT tb, k0, COUNT(*) AS c, MAX(n) AS m FROM {below}"
            " GROUP BY tb, k0;"
        )
    if number % 10 == 5:
        return (
            f"QUERY q{number}: SELECT a.tb, a.k0, a.n AS now, b.n AS before FROM {below} a,"
            f" {below} b WHERE a.tb = b.tb + 1 AND a.k0 = b.k0;"
        )
    keys = chance.sample(KEYS, chance.randint(1, 4))
    named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    shown = ", ".join(f"k{i}" for i in range(len(keys)))
    return (
        f"QUERY q{number}: SELECT tb, {shown}, COUNT(*) AS n, SUM(len) AS bytes FROM PKT"
        f" WHERE ttl > {chance.randint(1, 60)}"
        f" GROUP BY time/{chance.choice((5, 10, 60))} AS tb, {named};"
    )


@dataclass(frozen=True)
class Advise:
    """The command, for one set."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Advising:
        del cores  # one process does all of it
        return Advising(self.arguments)


@dataclass(frozen=True)
class Advising:
    arguments: tuple[str, ...]

    def warm(self) -> None:
        """Compiles kernels, and finds the files in memory later."""
        self.run(Path())

    def run(self, output: Path) -> Figures:
        del output
        before, began = used(), time.perf_counter()
        command = [sys.executable, "-m", "terascope", "advise", *self.arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - began
        found = json.loads(done.stdout)
        finished = len(found["candidates"][0]["finished"])
        return {
            "clock": seconds,
            "cpu": used() - before,
            "rows": len(found["candidates"]),
            "queries": len(found["queries"]),
            "finished": finished,
        }

    def close(self) -> None:
        """Nothing is open."""


def used() -> float:
    """Processor seconds of processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass
class AllQueries:
    """Every query of a set has got its advice, and something is finished in partitions."""

    expected: dict[str, int] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            wanted = self.expected[outcome.contender]
            outcome.checked = all(
                one["queries"] == wanted and 0 < one["finished"] <= wanted
                for one in outcome.figures
            )


@dataclass(frozen=True)
class AdviseExperiment:
    name: str = "advise"
    title: str = "the search for a partitioning: sets of 10 to 500 queries, at most 10 s for 200"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        capture = capture_file(settings, packets, packet_profile(packets, settings.seed).snaplen)
        contenders = []
        expected = {}
        for count in SIZES[:2] if settings.quick else SIZES:
            script = capture.with_name(f"advise-{count}.gsql")
            script.write_text(queries(count, settings.seed), encoding="utf-8")
            name = f"{count} queries"
            expected[name] = count
            contenders.append(Advise(name, (str(script), "--source", f"eth0=pcap:{capture}")))
        return Prepared(
            contenders=tuple(contenders),
            check=AllQueries(expected),
            about=(f"{packets:,} packets, {capture.stat().st_size / 2**20:,.0f} MB",),
            columns=(
                Column("cpu", "processor s", "{:.2f}"),
                Column("finished", "finished in partitions", "{:.0f}"),
            ),
            inputs=(capture,),
        )


EXPERIMENT = AdviseExperiment()
