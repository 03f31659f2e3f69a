"""`trees`: aggregate trees beside flat plans, in look-ups and in processor time (paper 4).

Two sets: the 78 pairs of attributes of flow records, which are aggregates already; and packets by
every set of two or more of the five fields of a flow, where thousands of packets are one group.
Without Spark, results dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from rich.console import RenderableType

from bench.experiment import Column, Contender, Outcome, Prepared, Settings, Tell
from bench.queries78 import PAIRS, flow_pair, gsql, sql
from bench.set50 import packet_workload
from bench.shared.sets import SameNumber, SetContender

RECORDS, PACKETS = 4_000_000, 3_000_000
FIELDS = ("srcIP", "destIP", "srcPort", "destPort", "protocol")
SUBSETS = [keys for size in range(2, 6) for keys in combinations(FIELDS, size)]
FLOWS, TRAFFIC = "78 pairs of flow records", "26 sets of packets"
NAMES = ("flat", "shared", "fewest operations")


def subset_queries() -> str:
    """Packets and bytes in a minute by every two or more fields of a flow."""
    return "\n".join(
        f"QUERY {'_'.join(keys)}: SELECT tb, {', '.join(keys)}, COUNT(*) AS n, SUM(len) AS bytes"
        f" FROM IPV4 GROUP BY time/60 AS tb, {', '.join(keys)};"
        for keys in SUBSETS
    )


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    found = {o.contender: o for o in outcomes}
    lines: list[RenderableType] = []
    for what in (FLOWS, TRAFFIC):
        flat = found.get(f"{what}: flat")
        for name in NAMES[1:]:
            tree = found.get(f"{what}: {name}")
            if flat is None or tree is None or not flat.seconds or not tree.seconds:
                continue
            probes = (flat.figure("probes_millions") or 0) / (tree.figure("probes_millions") or 1)
            time = (flat.figure("cpu_s") or 0) / (tree.figure("cpu_s") or 1)
            saved = f"{probes:.2f} times fewer look-ups, {time:.2f} times as fast"
            lines.append(f"{what}, {name}: {saved}")
    return lines


@dataclass(frozen=True)
class Trees:
    name: str = "trees"
    title: str = "aggregate trees beside flat plans: look-ups and processor time"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records, packets = settings.count(RECORDS), settings.count(PACKETS)
        tell(f"{records:,} flow records and {packets:,} packets in {settings.data}")
        flows = flow_pair(settings, records, gsql(PAIRS), sql(PAIRS)).full
        traffic = packet_workload(settings, packets)
        sets = {
            FLOWS: (flows.gsql.read_text("utf-8"), flows.source),
            TRAFFIC: (subset_queries(), traffic.source),
        }
        contenders: tuple[Contender, ...] = tuple(
            SetContender(f"{what}: {name}", (text,), source, name)
            for what, (text, source) in sets.items()
            for name in NAMES
        )
        check = SameNumber({c.name: c.name.rpartition(": ")[0] for c in contenders})
        about = (f"{records:,} flow records of one hour; {packets:,} packets",)
        columns = (
            Column("cpu_s", "CPU s", "{:.2f}"),
            Column("probes_millions", "look-ups, M", "{:,.1f}"),
            Column("ns_per_tuple", "ns a tuple"),
        )
        return Prepared(contenders, check, about, columns=columns, conclude=conclude)


EXPERIMENT = Trees()
