"""`terascope explain`: a query set at any stage."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, cast, get_args

import typer

from terascope.cli.binding import Binding, Files, loaded

Stage: TypeAlias = Literal["ast", "plan", "optimized", "split", "job", "stream"]
Format: TypeAlias = Literal["text", "json", "dot", "html"]
STAGES: tuple[Stage, ...] = get_args(Stage)


def stage_named(text: str) -> Stage:
    """Read the name of a stage. `halves`, the former name of `split`, still works."""
    found = next((stage for stage in STAGES if stage == text), None)
    if found is None and text != "halves":
        names = ", ".join(f"'{stage}'" for stage in STAGES)
        raise typer.BadParameter(f"'{text}' is not one of {names}.")
    return found or "split"


def explain(
    files: Files,
    binding: Binding,
    stage: Annotated[
        str,
        typer.Option(
            help="ast: as read; plan: as bound; optimized: after all rules; "
            "split: what runs next to the sources and what above, as GSQL; "
            "job: what will be done; "
            "stream: which slices a stream keeps, what closes them, when rows are emitted.",
            parser=stage_named,
            metavar="|".join(STAGES),
        ),
    ] = "optimized",
    format: Annotated[Format, typer.Option("--format", "-f", help="How to show it.")] = "text",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also list what each rule changed (optimized).")
    ] = False,
    analyze: Annotated[
        bool,
        typer.Option(
            "--analyze",
            help="Run the set, keep its rows to itself, and show the job with what every operator"
            " did: tuples in and out, probes, evictions, bytes, time.",
        ),
    ] = False,
) -> None:
    """Show how a query set is understood and how it will be run.

    Behind the operators stands what the analyses found: which columns are ordered, which key closes
    a group-by, which condition bounds a join. Needs no Spark; sources make the job more precise.

        terascope explain flows.gsql -s trace.pcap --analyze
    """
    session = binding.session()
    queries = loaded(session, files)
    if analyze:
        with session:
            queries.check()
            typer.echo(queries.run().explain(format), nl=False)
        return
    typer.echo(queries.explain(cast(Stage, stage), format, verbose), nl=False)
