"""`hundred`: what a hundred standing queries cost beside the most expensive of them alone.

Sets of 1, 10, 25, 50 and 100 of the queries of bench/shared/hundred.py over packets, everything
shared, and the hundred with nothing shared; and the ten that look most expensive each alone.
Without Spark, results dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType

from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.set50 import packet_workload
from bench.shared.hundred import queries
from bench.shared.sets import SameNumber, SetContender

PACKETS = 3_000_000
SIZES = (10, 25, 50, 100)
ALONE, APART = "the most expensive alone", "100 queries: nothing shared"
TARGET = 10.0


def expensive(number: int) -> tuple[str, ...]:
    """Those with the most keys, over sliding windows first."""
    whole = queries(100)
    ranked = sorted(whole, key=lambda q: (q.count(","), "RANGE" in q), reverse=True)
    return tuple(ranked[:number])


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    found = {o.contender: o for o in outcomes}
    alone, all_of = found.get(ALONE), found.get("100 queries")
    if alone is None or all_of is None or not alone.seconds or not all_of.seconds:
        return ["not both were measured"]
    one, hundred = alone.figure("longest_s") or 1.0, all_of.figure("cpu_s") or 0.0
    lines: list[RenderableType] = [
        f"100 queries take {hundred / one:.1f} times the most expensive one alone"
        f" (at most {TARGET:.0f})"
    ]
    apart = found.get(APART)
    if apart is not None and apart.seconds:
        times = (apart.figure("cpu_s") or 0) / hundred
        lines.append(f"with nothing shared they take {times:.1f} times as long")
    return lines


@dataclass(frozen=True)
class Hundred:
    name: str = "hundred"
    title: str = "a hundred standing queries beside the most expensive of them alone"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        source = packet_workload(settings, packets).source
        whole = queries(100)
        contenders: tuple[Contender, ...] = (
            SetContender(ALONE, expensive(4 if settings.quick else 8), source, "shared"),
            *(
                SetContender(f"{size} queries", ("\n".join(whole[:size]),), source, "shared")
                for size in SIZES
            ),
            SetContender(APART, ("\n".join(whole),), source, "nothing shared"),
        )
        alike = {c.name: c.name.partition(":")[0] for c in contenders}
        columns = (
            Column("cpu_s", "CPU s", "{:.2f}"),
            Column("probes_millions", "look-ups, M", "{:,.1f}"),
            Column("ns_per_tuple", "ns a tuple"),
        )
        about = (f"{packets:,} packets; results dropped",)
        return Prepared(contenders, SameNumber(alike), about, columns=columns, conclude=conclude)


EXPERIMENT = Hundred()
