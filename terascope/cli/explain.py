"""`terascope explain`: a query set at any stage."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from terascope.cli.binding import (
    ConfigFile,
    Debug,
    Files,
    FunctionFiles,
    Params,
    Sets,
    SourceOptions,
    Sources,
    bound_session,
    loaded,
)


class Stage(StrEnum):
    AST = "ast"
    PLAN = "plan"
    OPTIMIZED = "optimized"
    SPLIT = "split"
    JOB = "job"
    STREAM = "stream"


def stage_named(text: str) -> Stage:
    """Read the name of a stage. `halves`, the former name of `split`, still works."""
    if text not in (*Stage, "halves"):
        names = ", ".join(f"'{stage}'" for stage in Stage)
        raise typer.BadParameter(f"'{text}' is not one of {names}.")
    return Stage.SPLIT if text == "halves" else Stage(text)


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    HTML = "html"


def explain(
    files: Files,
    stage: Annotated[
        Stage,
        typer.Option(
            help="ast: as read; plan: as bound; optimized: after all rules; "
            "split: what runs next to the sources and what above, as GSQL; "
            "job: what will be done; "
            "stream: which slices a stream keeps, what closes them, when rows are let go.",
            parser=stage_named,
            metavar="|".join(Stage),
        ),
    ] = Stage.OPTIMIZED,
    format: Annotated[Format, typer.Option("--format", "-f", help="How to show it.")] = Format.TEXT,
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
    source: Sources = None,
    source_option: SourceOptions = None,
    set_: Sets = None,
    param: Params = None,
    functions: FunctionFiles = None,
    config: ConfigFile = None,
    debug: Debug = False,
) -> None:
    """Show how a query set is understood and how it will be run.

    Behind the operators stands what the analyses found: which columns are ordered, which key closes
    a group-by, which condition bounds a join. Needs no Spark; sources make the job more precise.

        terascope explain flows.gsql -s trace.pcap --analyze
    """
    del debug
    session = bound_session(source, source_option, set_, param, functions, config)
    queries = loaded(session, files)
    if analyze:
        with session:
            queries.check()
            typer.echo(queries.run().explain(format.value), nl=False)
        return
    typer.echo(queries.explain(stage.value, format.value, verbose), nl=False)
