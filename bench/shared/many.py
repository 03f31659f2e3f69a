"""`hundred`: what a hundred standing queries cost beside the most expensive of them alone.

Sets of 1, 10, 25, 50 and 100 of the queries of bench/shared/hundred.py over packets, everything
shared, and the hundred with nothing shared; and those that look most expensive each alone. Without
Spark, results dropped; and beside it the hundred and the most expensive alone as a user runs them,
through Spark, with results written.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType

from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.set50 import packet_workload
from bench.shared.hundred import queries
from bench.shared.sets import SameNumber, SetContender
from bench.shared.written import WrittenContender

PACKETS = 3_000_000
SIZES = (10, 25, 50, 100)
ALONE, APART = "the most expensive alone", "100 queries: nothing shared"
WRITTEN_ALONE, WRITTEN = f"{ALONE}: written", "100 queries: written"
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
    longest, written = found.get(WRITTEN_ALONE), found.get(WRITTEN)
    if longest is not None and written is not None and longest.seconds and written.seconds:
        times = (written.figure("written_s") or 0) / (longest.figure("longest_s") or 1)
        rows = f"{written.rows:,} rows instead of {longest.rows:,}" if longest.rows else ""
        lines.append(f"by the clock and with results written {times:.1f} times: {rows}")
    return lines


@dataclass(frozen=True)
class Hundred:
    name: str = "hundred"
    title: str = "a hundred standing queries beside the most expensive of them alone"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        packets = settings.count(PACKETS)
        tell(f"{packets:,} packets in {settings.data}")
        source = packet_workload(settings, packets).source
        whole, few = queries(100), 4 if settings.quick else 8
        contenders: tuple[Contender, ...] = (
            SetContender(ALONE, expensive(few), source, "shared"),
            *(
                SetContender(f"{size} queries", ("\n".join(whole[:size]),), source, "shared")
                for size in SIZES
            ),
            SetContender(APART, ("\n".join(whole),), source, "nothing shared"),
            WrittenContender(WRITTEN_ALONE, expensive(few), source),
            WrittenContender(WRITTEN, ("\n".join(whole),), source),
        )
        alike = {c.name: c.name.partition(":")[0] for c in contenders}
        columns = (
            Column("cpu_s", "CPU s", "{:.2f}"),
            Column("probes_millions", "look-ups, M", "{:,.1f}"),
            Column("ns_per_tuple", "ns a tuple"),
            Column("longest_s", "longest s", "{:.2f}"),
            Column("written_s", "written s", "{:.2f}"),
        )
        about = (f"{packets:,} packets; results dropped, but where it says written",)
        return Prepared(contenders, SameNumber(alike), about, columns=columns, conclude=conclude)


EXPERIMENT = Hundred()
