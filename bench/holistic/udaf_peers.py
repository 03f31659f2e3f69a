"""`udaf-peers`: quantiles and heavy hitters by source, against other engines; cost and accuracy.

End to end: real packets by minute, and skewed traffic with 10,000 groups, from Parquet to Parquet.
Without Spark, on one core: the query with one percentile and one heavy hitter, and STDDEV and
FIRST/LAST for each pair of addresses beside SUM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

from bench.compare import EachItsOwn
from bench.experiment import Check, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.holistic.generated import LENGTHS, Generated
from bench.holistic.gsql_costs import BY_PAIR, gsql_cost, gsql_of
from bench.holistic.levels_shown import measured
from bench.holistic.peer_accuracy import WithinBounds, accuracy_rows
from bench.holistic.peer_engines import (
    ENGINES,
    PACKAGES,
    SPARK_NAME,
    TERASCOPE,
    PeerContender,
    answer_of,
)
from bench.holistic.peer_queries import HITTERS, PERCENTILE, QUESTIONS, TOP
from bench.holistic.replayed import Replayed, about_packets
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKETS: Final = 20_000_000
SMALL: Final = 20_000
REAL, MANY = "real", "10k_groups"
GROUPS: Final = 10_000
INTERVALS: Final = 6
CORE: Final = "terascope_core"
BOTH: Final = "percentile and heavy hitters"
CORE_QUERIES: Final = {
    "sum": gsql_of("SUM(len) AS s"),
    BOTH: gsql_of(f"approx_percentile(len, 95) AS p, heavy_hitters(destIP, len, {TOP}) AS h"),
    "pairs: sum": gsql_of("SUM(len) AS s", BY_PAIR),
    "pairs: stddev": gsql_of("STDDEV(len) AS s", BY_PAIR),
    "pairs: first": gsql_of("FIRST(len) AS f", BY_PAIR),
    "pairs: last": gsql_of("LAST(len) AS l", BY_PAIR),
    "pairs: first, last": gsql_of("FIRST(len) AS f, LAST(len) AS l", BY_PAIR),
}
TARGET_NS: Final = 150
TARGET_TIMES: Final = 5.0
TARGET_OF_SUM: Final = 2.0


@dataclass(frozen=True)
class CoreContender:
    """Our engine without Spark, on one core."""

    path: Path
    name: str = CORE
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def figures(self) -> Figures:
        found: dict[str, float] = {WRONG: 0}
        for name, text in CORE_QUERIES.items():
            cost = gsql_cost(self.path, text)
            found |= {name: cost.total, "rows": cost.groups}
        return found


def conclude(check: WithinBounds, outcomes: list[Outcome]) -> list[RenderableType]:
    names = [answer_of(dataset, question) for dataset in check.datasets for question in QUESTIONS]
    times = new_table("seconds, Parquet to Parquet", ["", *names])
    errors = new_table("mean and largest error, percent of ranks or of the top five", ["", *names])
    for outcome in measured(outcomes):
        if outcome.contender != CORE:
            times.add_row(outcome.contender, *(shown(outcome, n, "{:.2f}") for n in names))
            errors.add_row(outcome.contender, *accuracy_rows(check, outcome.contender, names))
    return [times, errors, *ratios(outcomes), *core_table(outcomes)]


def ratios(outcomes: list[Outcome]) -> list[RenderableType]:
    """Spark's own functions beside ours."""
    known = {o.contender: o for o in measured(outcomes)}
    lines: list[RenderableType] = []
    for question in (PERCENTILE, HITTERS):
        name = answer_of(MANY, question)
        found = [known[c].figure(name) for c in (SPARK_NAME, TERASCOPE) if c in known]
        if len(found) == 2 and found[0] and found[1]:
            times = found[0] / found[1]
            lines.append(f"{name}: Spark takes {times:.1f} times as long (target {TARGET_TIMES:g})")
    return lines


def core_table(outcomes: list[Outcome]) -> list[RenderableType]:
    for outcome in measured(outcomes):
        if outcome.contender == CORE:
            table = new_table(
                "one core, real packets, without decoding", ["", "ns a tuple", "target"]
            )
            pair_sum = outcome.figure("pairs: sum") or 0.0
            for name in CORE_QUERIES:
                limit = TARGET_NS if name == BOTH else TARGET_OF_SUM * pair_sum
                behind = f"{limit:.0f}" if name not in ("sum", "pairs: sum") else ""
                table.add_row(name, shown(outcome, name, "{:.1f}"), behind)
            return [table]
    return []


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    figure.set_size_inches(9, 4.5)
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.1, right=0.97, wspace=0.35)
    there = [o for o in measured(outcomes) if o.contender != CORE]
    for axes, dataset in zip(panels, (REAL, MANY), strict=True):
        height = 0.8 / max(1, len(there))
        for place, outcome in enumerate(there):
            values = [outcome.figure(answer_of(dataset, q)) or 0.0 for q in QUESTIONS]
            rows = [at + place * height for at in range(len(QUESTIONS))]
            axes.barh(rows, values, height, label=outcome.contender)
        axes.set_yticks(range(len(QUESTIONS)), QUESTIONS, fontsize=7)
        axes.invert_yaxis()
        axes.set_title(dataset, fontsize=8)
        axes.set_xlabel("seconds", fontsize=8)
        axes.legend(fontsize=6)


@dataclass(frozen=True)
class UdafPeers:
    name: str = "udaf-peers"
    title: str = "quantiles and heavy hitters by source against other engines"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        replay = Replayed(settings.count(PACKETS))
        many = Generated(GROUPS, LENGTHS, skewed=True, intervals=INTERVALS)
        tell(f"{replay.packets:,} {about_packets()}; {many}")
        datasets: Mapping[str, Path] = {REAL: replay.path(settings), MANY: many.path(settings)}
        small = Replayed(SMALL).path(settings)
        engines = [PeerContender(n, datasets, small, PACKAGES.get(n, ())) for n in ENGINES]
        contenders: tuple[Contender, ...] = (*engines, CoreContender(datasets[REAL]))
        check = WithinBounds(datasets)
        checks: dict[str, Check] = {each.name: check for each in engines}
        checks[CORE] = NothingWrong("")
        about = (
            f"{REAL}: {replay.packets:,} {about_packets()}, by minute and source",
            f"{MANY}: {many}, in each of {INTERVALS} intervals of 10 s",
        )
        return Prepared(
            contenders,
            EachItsOwn(checks),
            about,
            inputs=tuple(datasets.values()),
            conclude=partial(conclude, check),
            draw=draw,
        )


EXPERIMENT = UdafPeers()
