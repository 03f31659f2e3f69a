"""The tables of `cache` with the papers' figures beside ours, and their picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table

from bench.cache import chains, evictions, gaps, sizes
from bench.experiment import Outcome
from terascope.kernels.tables.bounded_tables import Flush

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"direct_mapped": "#7f8c9b", "second_chance": "#2c6fbb", "lru": "#c0392b"}


# ---- names of figures ----------------------------------------------------------------------------


def smallest(groups: int) -> str:
    return f"smallest_{groups}"


def gap(flush: Flush, groups: int) -> str:
    return f"gap_us_{flush}_{groups}"


def at_once(flush: Flush, groups: int) -> str:
    return f"at_once_{flush}_{groups}"


def evicted(exponent: float, part: float) -> str:
    return f"evicted_{exponent}_{part}"


def longest_chain(buckets: int) -> str:
    return f"longest_chain_{buckets}"


def mean_chain(buckets: int) -> str:
    return f"mean_chain_{buckets}"


# ---- tables --------------------------------------------------------------------------------------


def tables(outcomes: list[Outcome]) -> list[RenderableType]:
    measured = [o for o in outcomes if o.seconds]
    shown: list[RenderableType] = [
        sizes_table(measured),
        gaps_table(measured),
        evictions_table(measured),
    ]
    chained = [o for o in measured if o.figure(mean_chain(chains.BUCKETS[0])) is not None]
    return [*shown, *(chains_table(o) for o in chained)]


def new_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def shown(outcome: Outcome, name: str, form: str = "{:,.0f}") -> str:
    value = outcome.figure(name)
    return "" if value is None else form.format(value)


def sizes_table(outcomes: list[Outcome]) -> Table:
    columns = ["groups"]
    for outcome in outcomes:
        columns += [outcome.contender, "paper 1"] if outcome.contender != "lru" else ["lru"]
    table = new_table("smallest table that evicts at most 1% (paper 1: loses no packet)", columns)
    for groups, paper in sizes.PAPER.items():
        cells = [f"{groups:,}"]
        for outcome in outcomes:
            cells.append(shown(outcome, smallest(groups)))
            cells += [f"{size:,}" for policy, size in paper.items() if policy == outcome.contender]
        table.add_row(*cells)
    return table


def gaps_table(outcomes: list[Outcome]) -> Table:
    columns = ["groups", "queries", "policy", "eager us", "lazy us"]
    columns += ["eager at once", "lazy at once", "paper 1: lost % eager", "lazy"]
    table = new_table(
        f"longest gap between two tuples at an epoch's end, {gaps.PLACES_PER_GROUP} places a group",
        columns,
    )
    for case in gaps.PAPER:
        for outcome in outcomes:
            lost = outcome.contender == "second_chance"  # the policy the paper measured
            table.add_row(
                f"{case.groups:,}",
                str(case.queries),
                outcome.contender,
                *(shown(outcome, gap(flush, case.groups)) for flush in gaps.FLUSHES),
                *(shown(outcome, at_once(flush, case.groups)) for flush in gaps.FLUSHES),
                f"{case.eager_loss}" if lost else "",
                f"{case.lazy_loss}" if lost else "",
            )
    return table


def evictions_table(outcomes: list[Outcome]) -> Table:
    columns = ["exponent", "places/groups", *(o.contender for o in outcomes)]
    table = new_table(
        f"evicted partials per tuple, {evictions.GROUPS:,} Zipf-like groups",
        [*columns, "perfect LFU", "paper 4, lemma 6.1"],
    )
    for exponent in evictions.EXPONENTS:
        for part in evictions.PARTS:
            table.add_row(
                str(exponent),
                f"{part:.0%}",
                *(shown(o, evicted(exponent, part), "{:.3f}") for o in outcomes),
                f"{evictions.perfect_lfu(exponent, part):.3f}",
                f"{evictions.lemma(exponent, part):.3f}",
            )
    return table


def chains_table(outcome: Outcome) -> Table:
    least, most = chains.PAPER_LONGEST
    table = new_table(
        "chains of b groups in b buckets",
        ["b", "longest", "mean", "paper 4: longest", "mean"],
    )
    for buckets in chains.BUCKETS:
        table.add_row(
            f"{buckets:,}",
            shown(outcome, longest_chain(buckets), "{:.2f}"),
            shown(outcome, mean_chain(buckets), "{:.3f}"),
            f"{least} to {most}",
            f"{chains.PAPER_MEAN}",
        )
    return table


# ---- picture -------------------------------------------------------------------------------------


def draw(figure: Figure, outcomes: list[Outcome]) -> None:
    figure.set_size_inches(10, 8)
    figure.subplots_adjust(left=0.08, right=0.97, top=0.92, bottom=0.12, hspace=0.35, wspace=0.38)
    measured = [o for o in outcomes if o.seconds]
    panels = figure.subplots(2, 2)
    draw_sizes(panels[0, 0], measured)
    draw_gaps(panels[0, 1], measured)
    draw_evictions(panels[1, 0], measured)
    draw_chains(panels[1, 1], measured)


def draw_sizes(axes: Axes, outcomes: list[Outcome]) -> None:
    groups = list(sizes.PAPER)
    for outcome in outcomes:
        colour = COLOURS[outcome.contender]
        ours = [outcome.figure(smallest(g)) or 0 for g in groups]
        axes.plot(groups, ours, "o-", color=colour, label=outcome.contender)
        paper = [
            (g, s) for g in groups for p, s in sizes.PAPER[g].items() if p == outcome.contender
        ]
        if paper:
            axes.plot(*zip(*paper, strict=True), "x:", color=colour, label="as paper 1 has it")
    axes.set(xscale="log", yscale="log", xlabel="active groups", ylabel="smallest table, places")
    axes.set_xticks(groups, [f"{g:,}" for g in groups])
    axes.set_xticks([], minor=True)
    axes.legend(fontsize=6)


def draw_gaps(axes: Axes, outcomes: list[Outcome]) -> None:
    names, place = [], 0
    for case in gaps.PAPER:
        for outcome in outcomes:
            for flush in gaps.FLUSHES:
                value = outcome.figure(gap(flush, case.groups)) or 0
                colour = COLOURS[outcome.contender]
                axes.barh(place, value, color=colour, alpha=1 if flush == "eager" else 0.5)
                names.append(f"{case.groups:,} {outcome.contender} {flush}")
                place += 1
    axes.set_yticks(range(len(names)), names, fontsize=5)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="longest gap at an epoch's end, us")


def draw_evictions(axes: Axes, outcomes: list[Outcome]) -> None:
    exponent = evictions.EXPONENTS[0]
    parts = list(evictions.PARTS)
    for outcome in outcomes:
        shares = [outcome.figure(evicted(exponent, part)) or 0 for part in parts]
        axes.plot(parts, shares, "o-", color=COLOURS[outcome.contender], label=outcome.contender)
    perfect = [evictions.perfect_lfu(exponent, part) for part in parts]
    lemma = [evictions.lemma(exponent, part) for part in parts]
    axes.plot(parts, perfect, "k-", label="perfect LFU")
    axes.plot(parts, lemma, "k:", label="lemma 6.1")
    axes.set(xlabel="places / groups", ylabel=f"evicted per tuple, exponent {exponent}")
    axes.legend(fontsize=6)


def draw_chains(axes: Axes, outcomes: list[Outcome]) -> None:
    buckets = list(chains.BUCKETS)
    for outcome in outcomes:
        longest = [outcome.figure(longest_chain(b)) or 0 for b in buckets]
        mean = [outcome.figure(mean_chain(b)) or 0 for b in buckets]
        if any(longest):
            axes.plot(buckets, longest, "o-", color=COLOURS["lru"], label="longest chain")
            axes.plot(buckets, mean, "s-", color=COLOURS["second_chance"], label="mean chain")
    axes.axhspan(*chains.PAPER_LONGEST, alpha=0.15, color="black", label="longest in paper 4")
    axes.axhline(chains.PAPER_MEAN, linestyle=":", color="black", label="mean in paper 4")
    axes.set(xlabel="buckets and groups", ylim=(0, 10))
    axes.legend(fontsize=6)
