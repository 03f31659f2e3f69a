"""A status for a terminal: a line about the run, a table of sources, a table of queries.

In: a `Status`. Out: something rich prints, at most as high as there is room for. Columns keep their
widths from one status to the next, and rows their places: where not all fit, those that lag most
are shown, in the order of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from terascope.display import plain_table
from terascope.operate import notices
from terascope.operate.causes import Cause, causes, expectation, slow_callback
from terascope.operate.status import OperatorStatus, QueryStatus, RunStatus, SourceStatus, Status
from terascope.streaming.replan.sharing_status import StrategyStatus
from terascope.units import UNKNOWN, plural, readable_bytes, readable_count, readable_seconds

Shown = TypeVar("Shown", SourceStatus, QueryStatus)
StatusColumn: TypeAlias = tuple[str, int, JustifyMethod, Callable[[Shown], Text | str]]
"""A column: its header, its width whatever is in it, its side, and the cell of a row."""
NO_LIMIT = 1_000_000
AROUND = 10
"""Lines that are neither sources, queries nor alarms."""
MOST_ALARMS = 3
MOST_NOTES = 4
MOST_TREES = 2
WIDEST_NAME = 24
STATE_STYLES = {"running": "green", "failed": "bold red", "restarting": "bold yellow"}


@dataclass(frozen=True)
class StatusView:
    """A status, to be printed on a rich console; `height`: lines at most."""

    status: Status
    height: int = NO_LIMIT

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        status = self.status
        trees = [*tree_lines(status), *window_lines(status), *strategy_lines(status)]
        alarms = alarm_lines(status)
        notes = note_lines(status)
        room = max(2, self.height - AROUND - len(alarms) - len(trees) - len(notes))
        for_sources = min(len(status.sources), max(1, room // 3))
        yield run_line(status.run)
        yield second_line(status)
        yield from trees
        yield from alarms
        yield from notes
        yield Text()
        yield from limited(
            status.sources,
            for_sources,
            lambda source: (source.stalled is not None, source.backlog_bytes, source.rate),
            SOURCE_COLUMNS,
        )
        yield Text()
        yield from limited(
            status.queries,
            room - for_sources,
            lambda query: (query.lag_seconds or 0.0, query.rows),
            QUERY_COLUMNS,
        )


def limited(
    given: Sequence[Shown],
    room: int,
    urgency: Callable[[Shown], tuple[float, ...]],
    columns: Sequence[StatusColumn[Shown]],
) -> RenderResult:
    """A table of the most urgent ones, in the order they are given, and how many there are besides.
    Queries that only other queries read are dim.
    """
    shown = given
    if len(given) > room:
        places = sorted(range(len(given)), key=lambda i: urgency(given[i]), reverse=True)
        shown = [given[i] for i in sorted(places[: max(1, room)])]
    widest = min(max((len(one.name) for one in given), default=0), WIDEST_NAME)
    table = plain_table()
    for number, (name, width, justify, _) in enumerate(columns):
        wide = width if number else max(width, widest)
        table.add_column(name, min_width=wide, justify=justify, no_wrap=True)
    for one in shown:
        dim = isinstance(one, QueryStatus) and not one.visible
        table.add_row(*(cell(one) for *_, cell in columns), style="dim" if dim else "")
    yield table
    if len(shown) < len(given):
        yield Text(f"... {len(given) - len(shown):,} more", style="dim")


def counted(number: int) -> Text:
    """A number that is best when it is nought."""
    return Text(readable_count(number), style="yellow" if number else "")


SOURCE_COLUMNS: tuple[StatusColumn[SourceStatus], ...] = (
    ("source", 6, "left", lambda s: Text(s.name, style="red" if s.stalled else "")),
    ("rate/s", 7, "right", lambda s: readable_count(s.rate)),
    ("watermark", 19, "left", lambda s: Text(s.watermark_text or UNKNOWN)),
    ("backlog", 7, "right", lambda s: readable_bytes(s.backlog_bytes)),
    ("late", 7, "right", lambda s: counted(s.late)),
    ("malformed", 9, "right", lambda s: counted(s.malformed)),
)
QUERY_COLUMNS: tuple[StatusColumn[QueryStatus], ...] = (
    ("query", 6, "left", lambda q: Text(q.name)),
    ("rows", 7, "right", lambda q: readable_count(q.rows)),
    ("closed until", 19, "left", lambda q: Text(q.closed_until or q.last_epoch or UNKNOWN)),
    ("lag", 10, "right", lambda q: readable_seconds(q.lag_seconds)),
    ("pending", 7, "right", lambda q: readable_bytes(q.pending_bytes)),
    ("open", 4, "right", lambda q: f"{q.open_slices:,}"),
    ("waits for", 9, "left", lambda q: Text(q.holds[0].input if q.holds else "")),
)


# ---- the run -------------------------------------------------------------------------------------


def run_line(run: RunStatus) -> Text:
    """The name of the set, its state and its age."""
    parts = [(run.set_name, "bold"), (run.state, STATE_STYLES.get(run.state, "yellow"))]
    line = Text("  ", no_wrap=True, overflow="ellipsis").join(
        Text(text, style=style) for text, style in parts
    )
    line.append(f"  up {readable_seconds(max(0.0, run.updated - run.started))}")
    if run.batch >= 0:
        line.append(f"  batch {run.batch:,} in {readable_seconds(run.batch_seconds)}")
    if run.restarts:
        line.append(f"  {plural(run.restarts, 'restart')}", style="yellow")
    return line


def second_line(status: Status) -> Text:
    """The disk space and the memory of the run."""
    run, store = status.run, status.store
    segments = plural(store.segments, "segment")
    memory = readable_bytes(run.driver_memory_bytes)
    workers = readable_bytes(run.worker_memory_bytes)
    return one_line(
        f"store {readable_bytes(store.bytes)} in {segments}, {store.open_slices:,} slices open"
        f"  memory {memory} + {workers} workers",
        "dim",
    )


def tree_lines(status: Status) -> list[Text]:
    """Aggregations next to a source that are made of each other, or have one table."""
    lines = []
    for one in (tree for tree in status.trees if tree.tree or tree.tables):
        line = f"{'tree' if one.tree else 'tables'} of {one.source}: {len(one.queries):,}"
        line += " aggregations"
        if one.tree:
            line += f", {one.intermediate:,} intermediate"
        if one.tables:
            common = sum(map(len, one.tables))
            line += f", {common:,} in {len(one.tables):,} common tables"
        line += f", for {readable_seconds(max(0.0, status.run.updated - one.since))}"
        line += f", to save {one.gain:.0%}"
        if one.probes_per_tuple is not None:
            line += f"; {one.probes_per_tuple:.1f} hash operations a tuple"
        lines.append(line)
    return few_lines(lines, MOST_TREES, "trees", "dim")


def strategy_lines(status: Status) -> list[Text]:
    """The strategies of states that the traffic decides, and the reason for each."""
    lines = [strategy_line(status, one) for one in status.strategies]
    return few_lines(lines, MOST_TREES, "states", "dim")


def strategy_line(status: Status, one: StrategyStatus) -> str:
    line = f"states of {one.query}.{one.state}: {one.strategy or 'no strategy yet'}"
    if one.strategy:
        line += f" for {readable_seconds(max(0.0, status.run.updated - one.since))}"
    return f"{line}: {one.why}"


def window_lines(status: Status) -> list[Text]:
    """Families of windows that could share slices, and what that was planned for."""
    lines = []
    for one in (family for family in status.windows if len(family.queries) > 1):
        keys = f" by {', '.join(one.keys)}" if one.keys else ""
        clusters = plural(len(one.clusters), "cluster")
        age = readable_seconds(max(0.0, status.run.updated - one.since))
        line = f"windows on {one.on}{keys}: {len(one.queries):,} queries in {clusters}"
        line += f" of slices, planned {age} ago for"
        line += f" {one.rate:,.0f} tuples a second ({'measured' if one.measured else 'assumed'})"
        if one.rate_now is not None:
            line += f"; now {one.rate_now:,.0f}"
        if one.retired:
            line += f"; {one.retired:,} earlier still read"
        lines.append(line)
    return few_lines(lines, MOST_TREES, "families of windows", "dim")


def alarm_lines(status: Status) -> list[Text]:
    """Problems that need attention."""
    failed = status.run.last_error if status.run.state != "running" else None
    stalls = [notices.stall_text(s) for s in status.sources if s.stalled is not None]
    unusable = [(s, *file) for s in status.sources for file in s.unusable_files.items()]
    files = [f"{s.name}: '{path}': {why}" for s, path, why in unusable]
    return [
        *([one_line(f"last error: {first_line(failed)}", "bold red")] if failed else ()),
        *few_lines(stalls, MOST_ALARMS, "sources are stalled", "bold red"),
        *few_lines(files, MOST_ALARMS, "files", "bold red"),
    ]


def note_lines(status: Status) -> list[Text]:
    """Facts worth knowing that need no attention."""
    notes = [cause.what for cause in slow_callback(status)]
    notes += [f"{s.name} {notices.replay_text(s)}" for s in status.sources if s.replay]
    notes += [
        f"{s.name} has given nothing for long: {notices.waiting_text(s)}"
        for s in status.sources
        if s.replay and s.left_behind and not s.away
    ]
    notes += [one.advice or f"{one.name}: {one.text}" for one in status.partitions]
    for source in (s for s in status.sources if s.late):
        notes += [notices.late_count(source), f"  {notices.late_remedy(source)}"]
    return few_lines(notes, MOST_NOTES, "lines on sources", "yellow")


def few_lines(lines: list[str], most: int, rest: str, style: str) -> list[Text]:
    """At most so many lines; where there are more, the last one counts the rest."""
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{len(lines) - most + 1:,} more {rest}"]
    return [one_line(line, style) for line in lines]


def one_line(text: str, style: str = "") -> Text:
    """A line that ends at the edge of the terminal."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def operator_table(operators: Sequence[OperatorStatus]) -> Table:
    """The figures of physical operators; those that are zero are left blank."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("operator")
    for word in ("in", "out", "probes", "evicted", "exchanged", "spilled", "time"):
        table.add_column(word, justify="right")
    for one in operators:
        counts = (one.taken, one.given, one.probes, one.evicted)
        sizes = (one.exchanged_bytes, one.spilled_bytes)
        table.add_row(
            one.name,
            *(readable_count(number) if number else "" for number in counts),
            *(readable_bytes(size) if size else "" for size in sizes),
            f"{one.seconds:.3f} s",
        )
    return table


# ---- what holds a query back ---------------------------------------------------------------------


def tell_why(console: Console, status: Status, query: QueryStatus, seen: frozenset[str]) -> None:
    """The causes of one query, then those of the query that holds it back."""
    closed = query.closed_until
    until = "has closed no window yet" if closed is None else f"is closed until {closed}"
    line = Text.assemble((query.name, "bold"), f" {until}")
    if query.lag_seconds is not None:
        line.append(f", {readable_seconds(query.lag_seconds)} behind the present")
    console.print(line)
    for source in (s for s in status.sources if query.name in s.late_queries):
        console.print(Text.assemble(("late: ", "bold"), notices.late_text(source)), soft_wrap=True)
    low = {stream.name for stream in status.low if query.name in stream.queries}
    for states in (one for one in status.strategies if one.query in low):
        console.print(Text(strategy_line(status, states), "dim"), soft_wrap=True)
    found = causes(status, query)
    if not found:
        console.print(expectation(status, query), soft_wrap=True)
        return
    first = found[0]
    if first.input is not None:
        console.print()
        console.print(cause_table(found))
        console.print()
    below = status.query(first.input) if first.kind == "stream" and first.input else None
    if below is not None and below.name not in seen:
        tell_why(console, status, below, seen | {query.name})
        return
    who = f"{query.name}:" if first.input is None else first.input
    console.print(Text.assemble((who, "bold"), f" {first.what}"))
    console.print(Text.assemble(("what to do: ", "bold"), first.advice))


def cause_table(found: tuple[Cause, ...]) -> Table:
    """All inputs that hold back, the earliest watermark first."""
    table = plain_table()
    table.add_column("input", no_wrap=True)
    table.add_column("watermark", no_wrap=True)
    table.add_column("behind", justify="right", no_wrap=True)
    table.add_column("why")
    for cause in found:
        table.add_row(
            Text(cause.input or UNKNOWN),
            Text(cause.watermark or UNKNOWN),
            readable_seconds(cause.behind_seconds),
            Text(cause.what),
        )
    return table
