"""The demo: two minutes of traffic with an attack in it, a query set of the papers, a verdict.

In: a seed, and perhaps who is attacked and when. Out: tables, and a sentence that names the
attacked host and the time, followed from those tables alone; on traffic without an attack it names
nobody.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.panel import Panel

from terascope.display import ResultTable
from terascope.results import Results
from terascope.session import Session
from terascope.traffic.profile import Profile, Scenario
from terascope.traffic.trace import GenerateReport, generate
from terascope.units import NANOSECONDS, readable_bytes, readable_moment

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

RATE = 1500.0
DURATION = 120.0
SNAPLEN = 256
MIN_SYNS = 40
"""SYNs a second to one host that are worth a look; a busy server of the quiet traffic gets a few.
"""

SHOWN: Mapping[str, int] = {
    "flows": 3,
    "heavy_flows": 3,
    "flow_pairs": 3,
    "suspicious_flows": 3,
    "dup_ratio": 3,
    "subnet_stats": 5,
    "busiest_sources": 6,
    "matched_syn_ratio": 3,
    "flood_seconds": 5,
    "attacked_hosts": 3,
}
"""The queries in the order of the story, with the rows that are shown of each."""


@dataclass(frozen=True)
class Attack:
    """An attack found in the tables: the flooded host, its time in seconds since 1970, its SYNs."""

    host: str
    began: int
    ended: int
    syns: int
    answered: int

    def __str__(self) -> str:
        share = 100 * self.answered / self.syns
        began, ended = (readable_moment(t * NANOSECONDS) for t in (self.began, self.ended))
        return (
            f"{self.host} was under a SYN flood from {began} to {ended} UTC"
            f": {self.syns:,} SYNs, of which it answered {share:.1f}%"
        )


def find_attack(rows: Iterable[Mapping[str, Any]]) -> Attack | None:
    """The worst of the attacked hosts; a host may stand in several windows."""
    by_host: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_host[row["destIP"]].append(row)
    attacks = (
        Attack(
            host,
            min(row["began"] for row in some),
            max(row["ended"] for row in some) + 1,
            sum(row["syns"] for row in some),
            sum(row["answered"] for row in some),
        )
        for host, some in by_host.items()
    )
    return max(attacks, key=lambda a: a.syns - a.answered, default=None)


def demo_queries() -> Path:
    """The file with the demo's query set."""
    return Path(str(resources.files(__package__) / "attack.gsql"))


def make_traffic(
    folder: Path,
    *,
    seed: int,
    scenario: str,
    victim: str | None = None,
    start: float | None = None,
    rate: float = RATE,
) -> GenerateReport:
    """Two minutes on one link."""
    event = Scenario(scenario, victim=victim, start=start)
    profile = Profile(rate=rate, duration=DURATION, seed=seed, snaplen=SNAPLEN, scenarios=(event,))
    return generate(profile, folder / "link.pcap")


def run_demo(
    *,
    seed: int = 7,
    scenario: str = "syn_flood",
    victim: str | None = None,
    start: float | None = None,
    keep: Path | None = None,
    console: Console | None = None,
    spark: SparkSession | None = None,
) -> Attack | None:
    """Generate, ask, tell. With `keep`, trace, queries and results stay in that folder."""
    console = console or Console()
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="terascope-demo-") as temporary:
        folder = keep or Path(temporary)
        made = make_traffic(folder, seed=seed, scenario=scenario, victim=victim, start=start)
        console.print(
            f"[bold]1.[/] {sum(made.counts):,} packets of synthetic traffic, two minutes on one "
            f"link, scenario [cyan]{scenario}[/], seed {seed}"
        )
        with Session(spark=spark, engine="spark") as session:
            session.source(f"link=pcap:{made.files[0]}")
            queries = session.load(demo_queries(), min_syns=MIN_SYNS)
            console.print(
                f"[bold]2.[/] {len(queries.compiled.plan.streams)} queries, "
                f"{len(queries.queries)} of them with results, compiled into one job; Spark runs "
                "it here, as it would on a cluster, and reads the trace once"
            )
            with console.status("starting Spark") as status:
                results = queries.run(
                    progress=lambda phase, done, total: status.update(f"{phase} {done}/{total}")
                )
            show_tables(results, console)
            attack = find_attack(results["attacked_hosts"].rows())
            tell(attack, console)
            if keep is not None:
                results.write(keep / "results")
                (keep / "attack.gsql").write_text(queries.source.text, encoding="utf-8")
                console.print(f"trace, queries and results are in '{keep}'")
    return attack


def show_tables(results: Results, console: Console) -> None:
    console.print("[bold]3.[/] the answers")
    for name, rows in SHOWN.items():
        result = results[name]
        head, count = result.head(rows), result.row_count
        console.print(ResultTable(name, result.fields, head, count))
        console.print()
    total = results.total
    console.print(
        f"read {total.tuples:,} packets, {readable_bytes(total.bytes_read)}, "
        f"{sum(total.malformed.values())} malformed"
    )


def tell(attack: Attack | None, console: Console) -> None:
    """The verdict, and the tables it follows from."""
    if attack is None:
        text = (
            "no host is under attack: in no three seconds did a host get many SYNs from many "
            "sources without answering them (flood_seconds, attacked_hosts)"
        )
        console.print(Panel(text, title="verdict", border_style="green"))
        return
    text = (
        f"[bold]{attack}[/]\n"
        "It follows from flood_seconds (one row per second and host) and attacked_hosts; "
        "matched_syn_ratio shows the same minutes from afar."
    )
    console.print(Panel(text, title="verdict", border_style="red"))
