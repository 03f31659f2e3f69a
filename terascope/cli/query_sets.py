"""The commands that look at a query set without running it: `terascope check | fmt | explain |
stats`. None of them needs Spark.
"""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import typer
from rich.text import Text

from terascope.cli.binding import FILES, Binding, loaded, read_set
from terascope.cli.command import argument, errors, flag, misuse, switch, tell
from terascope.cli.traffic import count_of
from terascope.diagnostic import QueryError
from terascope.units import plural

if TYPE_CHECKING:
    from terascope.session import Session

Stage: TypeAlias = Literal["ast", "plan", "optimized", "split", "job", "partitions", "stream"]
Format: TypeAlias = Literal["text", "json", "dot", "html"]
STAGES: Final = "ast|plan|optimized|split|job|partitions|stream"


def check(
    binding: Binding,
    files: list[Path] | None = argument(
        "The query set, in one file or several; - is stdin.", "FILE.gsql...", None
    ),
) -> None:
    """Look for mistakes in a query set, and list its queries with their columns.

    Needs neither Spark nor a source. With --source, that the sources are there and have the columns
    is checked, too. With --functions and without a query set, the laws of the aggregates in these
    files are tried on random values: merged in any order they must give what the whole gives.

    Examples:
        terascope check flows.gsql
        terascope check --functions my_functions.py
        terascope check flows.gsql --source eth0=pcap:trace.pcap --param threshold=100
        cat flows.gsql | terascope check -
    """
    from terascope.display import stdout_console
    from terascope.explain import picture

    session = binding.session()
    if not files:
        check_functions(session)
        return
    queries = loaded(session, files)
    queries.check()
    boxes = [b for b in picture(queries.compiled, "plan").boxes if b.kind == "stream"]
    visible = sum("internal" not in box.marks for box in boxes)
    typer.echo(f"ok: {plural(visible, 'query', 'queries')} in {queries.source.name}")
    width = max((len(box.name) for box in boxes), default=0)
    console = stdout_console()
    for box in boxes:
        style = "dim" if "internal" in box.marks else "bold"
        columns = ", ".join(map(str, box.columns))
        console.print(
            Text.assemble("  ", (f"{box.name:<{width}}", style), "  ", columns), soft_wrap=True
        )


def check_functions(session: Session) -> None:
    """Try the laws of the session's own aggregates, and print an outcome for each."""
    from terascope.functions.laws import law_outcomes

    functions = session.bindings.functions
    own = [each for each in functions.aggregates.values() if each.user_defined]
    if not own:
        raise misuse("--functions", "give a query set, or a file with aggregates of your own")
    found = [outcome for aggregate in own for outcome in law_outcomes(aggregate)]
    widths = [max(len(getattr(o, key)) for o in found) for key in ("function", "law", "verdict")]
    for o in found:
        columns = zip((o.function, o.law, o.verdict), widths, strict=True)
        typer.echo("  ".join([*(f"{text:<{width}}" for text, width in columns), o.detail]).rstrip())
    if any(o.verdict == "failed" for o in found):
        raise typer.Exit(1)


def fmt(
    files: list[Path] = argument("Query sets; - is stdin.", "FILE.gsql..."),
    write: bool = switch("Change the files instead of printing.", "--write", "-w"),
    check: bool = switch("Only say which files are not formatted; exit 1 if any.", "--check"),
) -> None:
    """Print query sets as canonical GSQL: keywords in capitals, a clause a line, comments kept.

    Examples:
        terascope fmt flows.gsql
        terascope fmt --write queries/*.gsql
        terascope fmt --check queries/*.gsql
    """
    from terascope.syntax.format import format_source

    if write and check:
        raise misuse("--write", "give one of --write and --check")
    failed = False
    for file in files:
        source = read_set(file)
        try:
            text = format_source(source)
        except QueryError as mistake:
            tell(mistake)
            failed = True
            continue
        if check:
            if text != source.text:
                errors().print(f"{source.name}: not formatted")
                failed = True
        elif write and str(file) != "-":
            if text != source.text:
                replace_text(file, text)
                errors().print(f"{source.name}: formatted")
        else:
            typer.echo(text, nl=False)
    if failed:
        raise typer.Exit(1)


def replace_text(file: Path, text: str) -> None:
    """The file is complete at any moment, and keeps its rights."""
    beside = file.with_name(f".{file.name}.fmt")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.chmod(file.stat().st_mode)
        beside.replace(file.resolve())
    finally:
        beside.unlink(missing_ok=True)


def explain(
    binding: Binding,
    files: list[Path] = FILES,
    stage: Stage = flag(
        "ast: as read; plan: as bound; optimized: after all rules; "
        "split: what runs next to the sources and what above, as GSQL; "
        "job: what will be done; "
        "partitions: what runs in every partition of a source, on every host, at the centre; "
        "stream: which slices a stream keeps, what closes them, when rows are emitted.",
        default="optimized",
        metavar=STAGES,
    ),
    format: Format = flag("How to show it.", "--format", "-f", default="text"),
    verbose: bool = switch("Also list what each rule changed (optimized).", "--verbose", "-v"),
    analyze: bool = switch(
        "Run the set, keep its rows to itself, and show the job with what every operator"
        " did: tuples in and out, probes, evictions, bytes, time.",
        "--analyze",
    ),
) -> None:
    """Show how a query set is understood and how it will be run.

    Behind the operators stands what the analyses found: which columns are ordered, which key closes
    a group-by, which condition bounds a join. Needs no Spark; sources make the job more precise.

        terascope explain flows.gsql -s trace.pcap --analyze

    Examples:
        terascope explain flows.gsql
        terascope explain flows.gsql --stage split
        terascope explain flows.gsql --stage job --source pcap:trace.pcap
        terascope explain flows.gsql --format dot | dot -Tsvg > flows.svg
        terascope explain flows.gsql --format html > flows.html
    """
    session = binding.session()
    queries = loaded(session, files)
    if analyze:
        with session:
            queries.check()
            typer.echo(queries.run().explain(format), nl=False)
        return
    typer.echo(queries.explain(stage, format, verbose), nl=False)


def stats(
    binding: Binding,
    files: list[Path] = FILES,
    tuples: str | None = flag(
        "So many tuples are counted at most, such as 200k or 1M; 64 Ki by default."
    ),
    seconds: float | None = flag("How long a source is read for; 1 by default.", min=0.0),
    json: bool = switch("As one line of JSON.", "--json"),
) -> None:
    """Estimate how many groups the queries of a set have, from a sample of their sources.

    For each set of keys: the groups of an epoch with their bounds, which hold for any distribution,
    the exponent of their Zipf-like law, and how many tuples a group has. For each predicate next to
    a source: which share of the tuples passes. A source that is read whole is counted exactly.
    Needs no Spark.

    Examples:
        terascope stats flows.gsql --source eth0=pcap:trace.pcap
        terascope stats flows.gsql --source flows=parquet:flows.parquet --tuples 1M --seconds 10
        terascope stats flows.gsql --source pcap:trace.pcap --json | jq '.sources[].keys'
    """
    from terascope.cli.stats_view import document, stats_view
    from terascope.display import stdout_console
    from terascope.physical.statistics.sampling import SampleLimits, sample_source

    session = binding.session(
        low="auto",
        sample_tuples=None if tuples is None else count_of(tuples, "--tuples"),
        sample_seconds=seconds,
    )
    job = loaded(session, files).compiled.apart().job()
    limits = SampleLimits(session.config.sample_tuples, session.config.sample_seconds)
    found = [
        document(read.name, sample_source(read.low, read.splits, limits))
        for read in job.reads
        if read.low is not None
    ]
    if json:
        typer.echo(jsonlib.dumps({"sources": found}))
    else:
        stdout_console().print(stats_view(found))
