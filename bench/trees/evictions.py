"""`fig3-evictions`: what is pushed out of a table before its epoch is over (paper 4, figure 3).

Predicted and measured, for tables of 1% to 100% of the groups of an epoch: the paper's lemmas 6.1
(Zipf, perfect LFU) and 7.1 (uniform), Che's approximation for LRU and our models of direct-mapped
and second-chance tables, which all know but the number of groups and an exponent; and the working
set of the tuples themselves (`SampledStatistics.evicted`). Measured are the tables of the low
level. Streams: independent draws, an epoch of generated flow records, a day of real connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import RenderableType

from bench.experiment import Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.trees.asked import WRONG, Asked, NothingWrong, new_table, shown
from bench.trees.eviction_rates import eviction_rate, working_set_evictions
from bench.trees.streams import (
    EPOCH_RECORDS,
    NO_REAL,
    Column,
    Stream,
    has_stream,
    stream_of,
    zipf_draws,
)
from terascope.functions.slots import COUNT
from terascope.kernels.columns.arrays import Rows
from terascope.kernels.tables.bounded_tables import BoundedTable
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import POLICIES, Policy
from terascope.sharing.curves import Curve, curve, in_use
from terascope.sharing.distinct import attribute_hashes
from terascope.sharing.statistics import SampledStatistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPE: Final = Shape(1, (COUNT,), with_epoch=True)
PARTS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
"""Places of the table, of the number of groups."""
DRAWN: Final = {"zipf 0.85": 0.85, "zipf 0.67": 0.67, "zipf 0.48": 0.48, "uniform": 0.0}
DRAWN_VALUES: Final = 50_000
FROM_STREAMS: Final = {
    "generated srcIP": ("generated", "srcIP"),
    "generated srcIP dstIP": ("generated", "srcIP dstIP"),
    "generated 4-tuples": ("generated", "srcIP dstIP srcPort dstPort"),
    "real src": ("real", "src"),
    "real dstPort": ("real", "dstPort"),
    "real src dstPort": ("real", "src dstPort"),
}
LEMMAS: Final = ("lemma 6.1", "lemma 7.1")
WORKING_SET: Final = "working set"
KEY: Final = frozenset({"key"})
COLOURS: Final = {"lru": "#c0392b", "second_chance": "#2c7fb8", "direct_mapped": "#41ab5d"}


@dataclass(frozen=True)
class Evicting:
    """The groups of one epoch, as they come."""

    name: str
    records: int
    seed: int
    stream: Stream | None = None
    keys: str = ""
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Asked:
        del cores
        return Asked(self.figures)

    def codes(self) -> Column:
        """The group of each tuple, as a number."""
        if self.stream is None:
            chance = np.random.default_rng([self.seed, len(self.name)])
            return zipf_draws(DRAWN_VALUES, DRAWN[self.name], self.records, chance)
        columns = self.stream.epoch(1)
        stacked = np.stack([columns[key] for key in self.keys.split()])
        _, found = np.unique(stacked, axis=1, return_inverse=True)
        return np.asarray(found.reshape(-1).astype(np.int64))

    def figures(self) -> Figures:
        codes = self.codes()
        count = len(codes)
        places = np.arange(count) / count
        known = SampledStatistics(
            {"key": attribute_hashes(codes, "key")}, count, float(count), places=places
        )
        groups, skew = known.groups(KEY), known.exponent(KEY)
        found = {WRONG: 0.0, "rows": float(count), "groups": groups, "exponent": skew}
        models = {policy: curve(groups, skew, count, policy) for policy in POLICIES}
        for part in PARTS:
            buckets = max(1, round(part * groups))
            found[rate("lemma 6.1", part)] = eviction_rate(buckets, groups, skew, "lfu")
            found[rate("lemma 7.1", part)] = eviction_rate(buckets, groups, skew, "uniform")
            found[rate(WORKING_SET, part)] = working_set_evictions(known, KEY, buckets) / count
            for policy in POLICIES:
                held = in_use(buckets, groups, policy)
                found[rate(predicted(policy), part)] = early(models[policy], buckets, count, held)
                evicted, tuples = through(codes, policy, buckets)
                found[rate(policy, part)] = evicted / count
                found[WRONG] += tuples != count
        return found


def early(model: Curve, buckets: int, count: int, held: float) -> float:
    """Of a tuple: what leaves before the end, if so many groups are held then."""
    return max(0.0, model.out(buckets, count) - held) / count


def through(codes: Column, policy: Policy, buckets: int) -> tuple[int, int]:
    """One epoch through a table: groups that left early, and the tuples in all that left."""
    left: list[int] = []

    def take(rows: Rows) -> None:
        left.append(int(rows[:, SHAPE.slot(0)].sum()))

    table = BoundedTable(SHAPE, policy, buckets, "eager", take)
    rows = np.arange(len(codes), dtype=np.int32)
    table.add(np.zeros(len(codes), np.int64), rows, [codes.astype(np.int32)], [], [])
    table.flush()
    return table.counters.evictions, sum(left)


def predicted(policy: Policy) -> str:
    return f"{policy} predicted"


def rate(what: str, part: float) -> str:
    return f"{what} {part:g}"


def off(outcome: Outcome, what: str, policy: Policy) -> float:
    """The mean distance of a prediction from what was measured, in evictions of a tuple."""
    pairs = [(outcome.figure(rate(what, p)), outcome.figure(rate(policy, p))) for p in PARTS]
    return float(np.mean([abs(a - b) for a, b in pairs if a is not None and b is not None]))


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    measured = [o for o in outcomes if o.figures]
    return [*(rates_table(o) for o in measured), distances_table(measured)]


def rates_table(outcome: Outcome) -> RenderableType:
    groups, skew = shown(outcome, "groups", "{:,.0f}"), shown(outcome, "exponent", "{:.2f}")
    columns = ["places/groups", *LEMMAS, WORKING_SET]
    for policy in POLICIES:
        columns += [predicted(policy), "measured"]
    table = new_table(
        f"{outcome.contender}: evicted of a tuple, {groups} groups, exponent {skew}", columns
    )
    for part in PARTS:
        names = [*LEMMAS, WORKING_SET]
        for policy in POLICIES:
            names += [predicted(policy), policy]
        cells = [shown(outcome, rate(name, part), "{:.3f}") for name in names]
        table.add_row(f"{part:.0%}", *cells)
    return table


def distances_table(outcomes: list[Outcome]) -> RenderableType:
    lru = [*LEMMAS, WORKING_SET, predicted("lru")]
    others: list[Policy] = [policy for policy in POLICIES if policy != "lru"]
    table = new_table(
        "mean distance of predictions from the tables; those before the last two from LRU",
        ["stream", *lru, *map(predicted, others)],
    )
    for outcome in outcomes:
        asked: list[tuple[str, Policy]] = [
            *((what, "lru") for what in lru),
            *((predicted(p), p) for p in others),
        ]
        cells = [f"{off(outcome, what, policy):.3f}" for what, policy in asked]
        table.add_row(outcome.contender, *cells)
    return table


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    measured = [o for o in outcomes if o.figures]
    lines = max(1, -(-len(measured) // 4))
    figure.set_size_inches(13, 3.4 * lines)
    figure.subplots_adjust(
        left=0.05, right=0.98, top=1 - 0.22 / lines, bottom=0.28 / lines, hspace=0.35, wspace=0.22
    )
    panels = figure.subplots(lines, 4, squeeze=False).reshape(-1)
    for axes in panels[len(measured) :]:
        axes.set_visible(False)
    for axes, outcome in zip(panels, measured, strict=False):
        for policy in POLICIES:
            colour = COLOURS[policy]
            seen = [outcome.figure(rate(policy, part)) or 0 for part in PARTS]
            said = [outcome.figure(rate(predicted(policy), part)) or 0 for part in PARTS]
            axes.plot(PARTS, seen, "o", color=colour, markersize=3, label=f"{policy}, measured")
            axes.plot(PARTS, said, "-", color=colour, linewidth=1, label="predicted")
        for lemma, style in zip(LEMMAS, ("k:", "k--"), strict=True):
            said = [outcome.figure(rate(lemma, part)) or 0 for part in PARTS]
            axes.plot(PARTS, said, style, linewidth=0.8, label=lemma)
        working = [outcome.figure(rate(WORKING_SET, part)) or 0 for part in PARTS]
        axes.plot(PARTS, working, "-.", color="#999999", linewidth=0.8, label=WORKING_SET)
        axes.set(xlabel="places / groups", ylabel="evicted of a tuple", ylim=(0, 1.02))
        skew = outcome.figure("exponent") or 0.0
        axes.set_title(f"{outcome.contender}, exponent {skew:.2f}", fontsize=8)
    if measured:
        panels[0].legend(fontsize=5)


@dataclass(frozen=True)
class Fig3Evictions:
    name: str = "fig3-evictions"
    title: str = "predicted and measured evictions over the size of the table"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(EPOCH_RECORDS)
        contenders: list[Contender] = [Evicting(name, records, settings.seed) for name in DRAWN]
        absent: dict[str, str] = {}
        for name, (source, keys) in FROM_STREAMS.items():
            if has_stream(source):
                stream = stream_of(source, settings)
                contenders.append(Evicting(name, stream.records, settings.seed, stream, keys))
            else:
                absent[name] = NO_REAL
        tell(f"epochs of {records:,} tuples; a day of real connections where they are")
        about = (f"{records:,} tuples, {DRAWN_VALUES:,} values where they are drawn",)
        return Prepared(
            tuple(contenders),
            NothingWrong("tables lost or doubled tuples"),
            about,
            absent=absent,
            alternating=False,
            runs=0,
            conclude=tables,
            draw=draw,
        )


EXPERIMENT = Fig3Evictions()
