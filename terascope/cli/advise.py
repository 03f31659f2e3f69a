"""`terascope advise`: which partitioning a query set is computed most cheaply under."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from terascope.cli.binding import FILES, Binding, loaded, pairs
from terascope.cli.command import QUIET, errors, flag, misuse, read_flag, switch, tell_line
from terascope.cli.traffic import count_of
from terascope.units import seconds as read_seconds

if TYPE_CHECKING:
    from terascope.advise.advice import Advice
    from terascope.session import QuerySet

PICTURES = (".svg", ".html", ".dot")


def advise(
    binding: Binding,
    files: list[Path] = FILES,
    into: int = flag("Partitions of each source.", default=8, min=1),
    splitter: str = flag(
        "What the splitter can do: 'masks' (attributes and bit masks of them), or the only"
        " expressions that it has, such as 'srcIP, destIP'. Anything by default.",
        default="",
        metavar="masks|EXPR,...",
    ),
    existing: list[str] | None = flag(
        "A partitioning that exists already: what each query costs under it stands beside the"
        " advice. That of a partitioned source is known. May be repeated.",
        metavar="[INTERFACE=]EXPR,...",
    ),
    weight: list[str] | None = flag(
        "Stored data: how often a query is asked, 1 if not given. The cost of a partitioning is"
        " then the weighted sum over the queries. May be repeated.",
        metavar="QUERY=NUMBER",
    ),
    rotate: str | None = flag(
        "Groups change their partition at every multiple of this time, such as '10 min'."
    ),
    tuples: str | None = flag(
        "So many tuples are measured at most; by default 100k, fewer for hundreds of queries."
    ),
    seconds: float = flag("How long sources are read for.", default=2.0, min=0.0),
    picture: Path | None = flag(
        "Draw where each query runs, by the ending of the name: .svg, .html or .dot.",
        metavar="FILE",
    ),
    layout: Path | None = flag(
        "Write the sources partitioned by the advice, a folder for each.", metavar="DIR"
    ),
    json: bool = switch("As JSON.", "--json"),
    quiet: bool = QUIET,
) -> None:
    """Recommend the partitioning set by which to split the sources of a query set.

    Every partition finishes the queries whose groups and pairs it has whole; only their rows are
    sent. The search looks at the sets that suit any of the queries and at what these have in
    common, with rates and selectivities measured on the beginning of each source, and takes the
    one for which the busiest node receives least. Without --source, rates are assumed. Needs no
    Spark.

    Examples:
        terascope advise flows.gsql --source eth0=pcap:trace.pcap
        terascope advise flows.gsql --source eth0=pcap:trace.pcap --into 16 --splitter masks
        terascope advise flows.gsql --source eth0=pcap:trace.pcap --existing destIP
        terascope advise flows.gsql --source eth0=pcap:trace.pcap --rotate '10 min'
        terascope advise flows.gsql --source flows=parquet:flows --weight talkers=24 --layout parts
        terascope advise flows.gsql --source eth0=pcap:trace.pcap --picture plan.html
        terascope advise flows.gsql --source eth0=pcap:trace.pcap --json | jq '.recommended'
    """
    if picture is not None and picture.suffix not in PICTURES:
        raise misuse("--picture", f"'{picture}' does not end with {', '.join(PICTURES)}")
    session = binding.session()
    queries = loaded(session, files)
    with read_flag("--rotate"):
        period = None if rotate is None else read_seconds(rotate)
    found = queries.advise(
        into=into,
        splitter=splitter,
        existing=named_sets(existing, session.bindings.sources),
        weights=weights_of(weight),
        rotate=period,
        tuples=None if tuples is None else count_of(tuples, "--tuples"),
        seconds=seconds,
    )
    if picture is not None:
        draw(queries, found, picture)
    if layout is not None:
        write(found, layout, quiet)
    if json:
        typer.echo(jsonlib.dumps(found.document(), ensure_ascii=False))
    else:
        from terascope.cli.advise_view import advice_view
        from terascope.display import stdout_console

        stdout_console().print(advice_view(found))


def named_sets(values: list[str] | None, known: Iterable[str]) -> dict[str, str] | str | None:
    """`[INTERFACE=]EXPR,...`, several times; a text alone is the set of every source."""
    if not values:
        return None
    names = set(known)
    found: dict[str, str] = {}
    for text in values:
        name, equals, rest = text.partition("=")
        if equals and name.strip() in names:
            found[name.strip()] = rest.strip()
        elif len(values) > 1:
            raise misuse(
                "--existing", f"'{text}' names no source; known: {', '.join(sorted(names))}"
            )
        else:
            return text
    return found


def weights_of(values: list[str] | None) -> dict[str, float] | None:
    if not values:
        return None
    found: dict[str, float] = {}
    for name, text in pairs("--weight", values, "QUERY=NUMBER"):
        with read_flag("--weight"):
            found[name] = float(text)
        if not 0 <= found[name] < float("inf"):
            raise misuse("--weight", f"'{name}={text}' is no frequency")
    return found


def draw(queries: QuerySet, advice: Advice, path: Path) -> None:
    from terascope.advise.picture import picture_of_advice
    from terascope.diagnostic import OutputError, as_mistake
    from terascope.explain import FORMATS, as_svg_file

    compiled = queries.compiled
    made = picture_of_advice(advice, compiled.optimized, compiled.source.title)
    forms = {".svg": as_svg_file, ".html": FORMATS["html"], ".dot": FORMATS["dot"]}
    with as_mistake(OutputError, f"cannot write '{path}'"):
        path.write_text(forms[path.suffix](made), encoding="utf-8")
    tell_line("drawn", str(path))


def write(advice: Advice, folder: Path, quiet: bool) -> None:
    """Write the sources partitioned by the advice, and say how even the partitions are."""
    from terascope.advise.written import write_partitions
    from terascope.cli.progress import counting

    with counting("splitting", 1, "bytes", quiet) as count:
        made = write_partitions(advice, folder, count)
    for name, splitter in made.items():
        errors().print(f"{folder / name}: {splitter.balance.text}")
        if splitter.balance.advice:
            tell_line("note", splitter.balance.advice)
