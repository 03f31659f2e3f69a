"""`fig2-3-traffic`: packets and groups of each minute, and how packets are distributed over groups.

Figures 2 and 3 of paper 1: a group is a source address in a minute. Of the paper's link 3% of the
groups have 1,000 packets or more, and 92% of all packets are theirs. Streams are the contenders:
the capture with its own times, the same packets at the rate of the paper's link, and generated
packets, skewed and uniform.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.parquet as pq
from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.holistic.generated import Generated
from bench.holistic.replayed import Replayed, about_packets
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKETS: Final = 10_000_000
LARGE: Final = 1_000
"""Packets from which on the paper calls a group large."""
SIZES: Final = tuple(base * 10**power for power in range(7) for base in (1, 2, 5))
PAPER_LARGE: Final = (3.0, 92.0)
"""Percent of the groups that are large, and of the packets in these."""
PAPER_VOLUME: Final = {"packets": 1_110_000, "groups": 1_260}
"""A minute, in the mean."""
MOST_MINUTES: Final = 60
COLOURS: Final = ("#c0392b", "#2c6fbb", "#27803b", "#7f8c9b")


@dataclass(frozen=True)
class TrafficContender:
    name: str
    path: Path
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        table = pq.read_table(self.path, columns=["tb", "srcIP"])
        grouped = table.group_by(["tb", "srcIP"]).aggregate([([], "count_all")])
        minutes = grouped.column("tb").to_numpy()
        sizes = grouped.column("count_all").to_numpy()
        _, places = np.unique(minutes, return_inverse=True)
        packets, groups = np.bincount(places, sizes), np.bincount(places)
        whole = slice(None, -1) if len(packets) > 1 else slice(None)  # the last may be cut short
        found: dict[str, float] = {
            WRONG: abs(table.num_rows - int(sizes.sum())),
            "rows": len(sizes),
            "packets": float(packets[whole].mean()),
            "groups": float(groups[whole].mean()),
            "large groups": 100 * float((sizes >= LARGE).mean()),
            "packets of large": 100 * float(sizes[sizes >= LARGE].sum() / sizes.sum()),
        }
        for size in SIZES:
            found[f"groups up to {size}"] = 100 * float((sizes <= size).mean())
            found[f"packets up to {size}"] = 100 * float(sizes[sizes <= size].sum() / sizes.sum())
        for minute in range(min(len(packets), MOST_MINUTES)):
            found[f"packets in {minute}"] = float(packets[minute])
            found[f"groups in {minute}"] = float(groups[minute])
        return found


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    columns = ("", "packets a minute", "groups a minute", "large groups %", "their packets %")
    table = new_table(f"groups by minute and source; large: {LARGE:,} packets or more", columns)
    volume = (f"{PAPER_VOLUME['packets']:,}", f"{PAPER_VOLUME['groups']:,}")
    table.add_row("paper 1", *volume, *(f"{percent:g}" for percent in PAPER_LARGE))
    for outcome in (o for o in outcomes if o.figures):
        cells = [shown(outcome, name, "{:,.0f}") for name in ("packets", "groups")]
        cells += [shown(outcome, name, "{:.1f}") for name in ("large groups", "packets of large")]
        table.add_row(outcome.contender, *cells)
    return [table]


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    figure.set_size_inches(9, 4.5)
    volume, shares = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.08, right=0.97, wspace=0.25)
    for colour, outcome in zip(COLOURS, (o for o in outcomes if o.figures), strict=False):
        told = outcome.figures[0]
        minutes = [m for m in range(MOST_MINUTES) if f"packets in {m}" in told]
        for what, style in (("packets", "-"), ("groups", ":")):
            label = f"{outcome.contender}: {what}"
            values = [told[f"{what} in {minute}"] for minute in minutes]
            volume.plot(minutes, values, style, color=colour, label=label, linewidth=1)
            values = [told[f"{what} up to {size}"] for size in SIZES]
            shares.plot(SIZES, values, style, color=colour, label=label, linewidth=1)
    shares.plot([LARGE], [100 - PAPER_LARGE[0]], "k^", label="paper: groups", markersize=4)
    shares.plot([LARGE], [100 - PAPER_LARGE[1]], "kv", label="paper: packets", markersize=4)
    volume.set(yscale="log", xlabel="minute", ylabel="packets, groups")
    shares.set(xscale="log", xlabel="packets of a group, at most", ylabel="percent")
    for axes in (volume, shares):
        axes.legend(fontsize=5)


@dataclass(frozen=True)
class Fig23Traffic:
    name: str = "fig2-3-traffic"
    title: str = "packets and groups of each minute, and their cumulative distribution"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        replay = Replayed(settings.count(PACKETS))
        tell(f"{replay.packets:,} {about_packets()}")
        skewed = Generated(10_000, 1_436, skewed=True)
        paths = {
            "as captured": replace(replay, pace="captured").path(settings),
            "at the paper's rate": replay.path(settings),
            "generated, skewed": skewed.path(settings),
            "generated, uniform": replace(skewed, skewed=False).path(settings),
        }
        contenders: tuple[Contender, ...] = tuple(
            TrafficContender(name, path) for name, path in paths.items()
        )
        return Prepared(
            contenders,
            NothingWrong("packets that are in no group"),
            (about_packets(), f"generated: {skewed} and the same uniform, intervals of 10 s"),
            runs=0,
            conclude=tables,
            draw=draw,
        )


EXPERIMENT = Fig23Traffic()
