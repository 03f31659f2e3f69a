"""`fig8-9`, `fig10-11`, `fig13-14` of paper 2 and `fig6-10-11` of the dissertation: what one
aggregator receives, and the processor time it takes, with one to four hosts.

The papers show the utilisation of processors and of the network; here the rows, the bytes and the
processor seconds for one fixed trace are shown, which no faster machine makes smaller. The papers'
words stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.experiment import BenchError, Outcome, Prepared, Settings, Tell
from bench.hosts.configurations import (
    AGGREGATOR,
    BYTES,
    GROUPS,
    HOSTS,
    NETWORK,
    ROWS,
    Configuration,
    HostsContender,
    SameAnswers,
    figure,
)
from bench.hosts.network import lacking
from bench.hosts.queries import DELAYS, FLOW_PAIRS, SUBNETS, SUSPICIOUS
from bench.hosts.traffic import PER_HOST, Trace, trace_file
from bench.trees.asked import new_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKETS: Final = 2_000_000
SIZES: Final = (1, 2, 3, 4)
QUICK: Final = (1, 4)
FLOW: Final = "srcIP, destIP, srcPort, destPort"
SUBNET: Final = "srcIP & 0xFFFFFFF0, destIP"
NAIVE: Final = Configuration("naive")
OPTIMIZED: Final = Configuration("optimized", combining=True)
SUBOPTIMAL: Final = Configuration("suboptimal", FLOW)
OPTIMAL: Final = Configuration("optimal", SUBNET)
CENTRAL: Final = Configuration("optimal, central join", SUBNET, central=("delays",))
COLOURS: Final = ("#7f8c9b", "#d98e04", "#27803b", "#2c6fbb", "#c0392b")


@dataclass(frozen=True)
class HostsExperiment:
    """One experiment: a query set and the configurations that are compared."""

    name: str
    title: str
    text: str
    configurations: tuple[Configuration, ...]
    paper: tuple[str, ...]
    """What the paper says in words."""
    versus: str = NAIVE.name
    """The configuration that the last one is compared with."""

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        if why := lacking():
            raise BenchError(why)
        trace = Trace(settings.count(PACKETS), seed=settings.seed)
        sizes = QUICK if settings.quick else SIZES
        tell(f"{trace.packets:,} packets in {settings.data}")
        trace_file(settings.data, trace)
        rate = trace.packets / trace.seconds
        return Prepared(
            contenders=tuple(
                HostsContender(one, self.text, trace, settings.data, sizes)
                for one in self.configurations
            ),
            check=SameAnswers(),
            about=(
                f"{trace.packets:,} TCP packets of {trace.seconds} s, {rate:,.0f} a second;"
                f" {PER_HOST} partitions on each host",
            ),
            runs=0,
            alternating=False,
            conclude=self.concluded(sizes, trace.packets),
            draw=drawn(sizes),
        )

    def concluded(
        self, sizes: tuple[int, ...], packets: int
    ) -> Callable[[list[Outcome]], list[RenderableType]]:
        def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
            measured = {one.contender: one for one in outcomes if one.figures}
            lines = [table_of(measured, sizes, packets)]
            lines += [growth(name, one, sizes) for name, one in measured.items()]
            last = self.configurations[-1].name
            for base in dict.fromkeys((NAIVE.name, self.versus)):
                for name in measured:
                    if name != base and base in measured and (base == NAIVE.name or name == last):
                        lines.append(below(measured, name, base, sizes))
            return [*lines, *self.paper]

        return conclude


def received_rows(outcome: Outcome, hosts: int) -> float:
    """All rows that the aggregator receives."""
    return sum(outcome.figure(figure(what, hosts)) or 0.0 for what in (GROUPS, ROWS))


def table_of(
    measured: Mapping[str, Outcome], sizes: tuple[int, ...], packets: int
) -> RenderableType:
    names = [
        "configuration", "hosts", "partial groups", "rows", "payload KB", "network KB",
        "aggregator CPU s", "hosts CPU s", "CPU us a tuple",
    ]  # fmt: skip
    table = new_table("what the aggregator receives, and processor seconds", names)
    for name, outcome in measured.items():
        for hosts in sizes:
            found = {
                what: outcome.figure(figure(what, hosts)) or 0.0
                for what in (GROUPS, ROWS, BYTES, NETWORK, AGGREGATOR, HOSTS)
            }
            both = found[AGGREGATOR] + found[HOSTS]
            table.add_row(
                name if hosts == sizes[0] else "", str(hosts),
                f"{found[GROUPS]:,.0f}", f"{found[ROWS]:,.0f}", f"{found[BYTES] / 1e3:,.0f}",
                f"{found[NETWORK] / 1e3:,.0f}", f"{found[AGGREGATOR]:.2f}", f"{found[HOSTS]:.2f}",
                f"{both / packets * 1e6:.2f}",
            )  # fmt: skip
    return table


def growth(name: str, outcome: Outcome, sizes: tuple[int, ...]) -> str:
    """How much more the aggregator receives from the most hosts than from the fewest."""
    first, last = sizes[0], sizes[-1]
    rows = received_rows(outcome, last) / max(1.0, received_rows(outcome, first))
    whole = [outcome.figure(figure(BYTES, hosts)) or 1.0 for hosts in (last, first)]
    return (
        f"{name}: {rows:.2f} times the rows and {whole[0] / whole[1]:.2f} times the bytes from"
        f" {first} to {last} hosts"
    )


def below(measured: Mapping[str, Outcome], name: str, base: str, sizes: tuple[int, ...]) -> str:
    """By how much less the aggregator receives than in another configuration."""
    parts = []
    for hosts in sizes:
        rows = 1 - received_rows(measured[name], hosts) / received_rows(measured[base], hosts)
        ours, theirs = (measured[n].figure(figure(BYTES, hosts)) or 1.0 for n in (name, base))
        parts.append(f"{hosts}: {rows:.0%} ({1 - ours / theirs:.0%})")
    return f"{name} below {base}, rows (bytes) by hosts: {', '.join(parts)}"


def drawn(sizes: tuple[int, ...]) -> Callable[[Figure, list[Outcome]], None]:
    def draw(figure_: Figure, outcomes: list[Outcome]) -> None:
        """Rows on the left, processor seconds of the aggregator on the right."""
        rows, seconds = figure_.subplots(1, 2)
        figure_.subplots_adjust(left=0.1, right=0.97, top=0.88, bottom=0.24, wspace=0.3)
        measured = [outcome for outcome in outcomes if outcome.figures]
        for outcome, colour in zip(measured, COLOURS, strict=False):
            name = outcome.contender
            received = [received_rows(outcome, n) for n in sizes]
            rows.plot(sizes, received, "o-", color=colour, label=name)
            cpu = [outcome.figure(figure(AGGREGATOR, n)) or 0.0 for n in sizes]
            seconds.plot(sizes, cpu, "o-", color=colour, label=name)
        rows.set_ylabel("rows received by the aggregator")
        rows.set_yscale("log")
        seconds.set_ylabel("processor seconds of the aggregator")
        seconds.set_ylim(bottom=0)
        for axes in (rows, seconds):
            axes.set_xlabel("hosts")
            axes.set_xticks(sizes)
            axes.legend(fontsize=7)

    return draw


FIG8_9: Final = HostsExperiment(
    "fig8-9",
    "suspicious flows: what one aggregator receives from 1 to 4 hosts (paper 2, 6.1)",
    SUSPICIOUS,
    (NAIVE, OPTIMIZED, Configuration("partitioned", FLOW)),
    (
        "paper 2: naive grows linearly to almost 100% of the aggregator's processor at 4 hosts,",
        "optimized is 20 to 22% below it, partitioned is nearly flat, limited by the output",
    ),
)
FIG10_11: Final = HostsExperiment(
    "fig10-11",
    "delays of packets and statistics of subnets, by two sets (paper 2, 6.2)",
    SUBNETS,
    (NAIVE, SUBOPTIMAL, CENTRAL, OPTIMAL),
    (
        "paper 2: below naive, suboptimal 43 to 47% of the processor and 36 to 52% of the network,",
        "optimal 64 to 70% of the network; 95%, 54% and 31% of the processor at 4 hosts",
    ),
    versus=SUBOPTIMAL.name,
)
FIG13_14: Final = HostsExperiment(
    "fig13-14",
    "flows, heavy flows and pairs of them: partial and full compatibility (paper 2, 6.3)",
    FLOW_PAIRS,
    (NAIVE, OPTIMIZED, Configuration("partial", "srcIP, destIP"), Configuration("full", "srcIP")),
    (
        "paper 2: optimized is 23 to 24% below naive and reaches 82% of the processor at 4 hosts,",
        "partial 18.4%, full 8.4%; partial and full are flat, limited by flows and by flow_pairs",
    ),
)
FIG6_10_11: Final = HostsExperiment(
    "fig6-10-11",
    "delays between consecutive packets: a self join (dissertation, 6.6.2)",
    DELAYS,
    (Configuration("agnostic"), Configuration("partitioned", FLOW)),
    (
        "dissertation: agnostic reaches 90% of the processor at 4 hosts; partitioned is almost",
        "flat, limited by the output",
    ),
    versus="agnostic",
)
