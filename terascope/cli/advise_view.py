"""Advice on partitioning for a terminal.

In: an `Advice`. Out: a rich group: the recommendation, the candidates, what each query costs under
the first of them, how to set up the splitter, and notes.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from terascope.advise.advice import Advice, JudgedCandidate
from terascope.advise.configuration import hardware_lines
from terascope.display import plain_table
from terascope.units import UNKNOWN, plural, readable_bytes, readable_count

COMPARED = 3
"""Candidates under which the cost of each query is shown."""
ANY = "any set, such as round robin"


def advice_view(advice: Advice) -> Group:
    """Everything, to be printed on a rich console."""
    parts: list[RenderableType] = [*headline(advice), Text(), candidates_table(advice)]
    parts += [Text(), queries_table(advice), Text(), *configuration(advice)]
    parts += [Text(f"note: {note}", style="yellow") for note in advice.notes]
    return Group(*parts)


def bytes_per_second(cost: float) -> str:
    return f"{readable_bytes(cost)}/s" if cost else "0"


def headline(advice: Advice) -> Iterator[Text]:
    best = advice.recommended
    for source, texts in best.sets.items():
        line = Text.assemble((source, "bold"), "  partition by ", (by_text(texts), "bold green"))
        line.append(f" into {advice.wishes.into}")
        yield line
    number = len(advice.queries)
    yield Text(
        f"partitions finish {len(best.finished)} of {plural(number, 'query', 'queries')};"
        f" {cost_text(advice, best)}"
    )
    known = advice.measured
    if known.tuples:
        covered = "" if known.seconds is None else f", {known.seconds:.1f} s of the source"
        yield Text(f"measured on {readable_count(known.tuples)} tuples{covered}", style="dim")


def cost_text(advice: Advice, one: JudgedCandidate) -> str:
    cost = bytes_per_second(one.candidate.cost.largest)
    if advice.wishes.weights is None:
        return f"the busiest node receives {cost}"
    return f"queries move {cost}, each as often as it is asked"


def by_text(texts: list[str]) -> str:
    return ", ".join(texts) or ANY


def candidates_table(advice: Advice) -> Table:
    table = plain_table()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("partitioning set", overflow="fold")
    cost = "busiest node" if advice.wishes.weights is None else "weighted"
    for name in (cost, "all nodes", "finished", "values", "skew"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, one in enumerate(advice.judged, 1):
        is_first = one is advice.recommended
        table.add_row(
            "now" if one is advice.existing else str(number),
            Text(sets_text(one), style="green" if is_first else ""),
            bytes_per_second(one.candidate.cost.largest),
            bytes_per_second(one.candidate.cost.total),
            f"{len(one.finished)}/{len(advice.queries)}",
            *spread_texts(one),
        )
    return table


def sets_text(one: JudgedCandidate) -> str:
    several = len(one.sets) > 1
    return "; ".join(
        f"{source}: {by_text(texts)}" if several else by_text(texts)
        for source, texts in one.sets.items()
    )


def spread_texts(one: JudgedCandidate) -> tuple[str | Text, str | Text]:
    """The fewest values of a source, and the largest skew."""
    if not one.spread:
        return UNKNOWN, UNKNOWN
    values = min(spread.values for spread in one.spread.values())
    skew = max(spread.skew for spread in one.spread.values())
    style = "yellow" if one.has_few_values else ""
    return Text(readable_count(values), style=style), f"{skew:.2f}"


def queries_table(advice: Advice) -> Table:
    shown = advice.candidates[:COMPARED]
    names = [f"moved by {number}" for number in range(1, len(shown) + 1)]
    if advice.existing is not None:
        shown, names = (*shown, advice.existing), [*names, "moved now"]
    table = plain_table()
    table.add_column("query", no_wrap=True)
    table.add_column("runs", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("partial groups", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    best = advice.recommended
    for query in advice.queries:
        central = query in best.reasons
        partial = best.partial[query] if central else None
        differs = partial is not None and partial < best.costs[query]
        table.add_row(
            query,
            Text("central", style="yellow") if central else Text("in partitions", style="green"),
            *(bytes_per_second(one.costs[query]) for one in shown),
            f"<= {bytes_per_second(partial)}" if differs and partial is not None else "",
            best.reasons.get(query, ""),
        )
    return table


def configuration(advice: Advice) -> Iterator[Text]:
    yield Text("to install", style="bold")
    for source, by in advice.recommended.candidate.placement.items():
        yield Text(f"  {advice.commands[source]}")
        for line in hardware_lines(by, advice.wishes.into):
            yield Text(f"  {source} in hardware: {line}", style="dim")
