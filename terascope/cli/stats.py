"""`terascope stats`: how many groups the queries of a set have, from a sample of their sources."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from terascope.cli.binding import Binding, Files, loaded


def stats(
    files: Files,
    binding: Binding,
    tuples: Annotated[
        str | None,
        typer.Option(
            help="So many tuples are counted at most, such as 200k or 1M; 64 Ki by default."
        ),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long a source is read for; 1 by default.", min=0.0)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As one line of JSON.")] = False,
) -> None:
    """Estimate how many groups the queries of a set have, from a sample of their sources.

    For each set of keys: the groups of an epoch with their bounds, which hold for any distribution,
    the exponent of their Zipf-like law, and how many tuples a group has. For each predicate next to
    a source: which share of the tuples passes. A source that is read whole is counted exactly.
    Needs no Spark.
    """
    from terascope.cli.generate import count_of
    from terascope.cli.stats_view import StatsView, documents
    from terascope.display import stdout_console
    from terascope.physical.statistics.sampling import SampleLimits, sample_source

    session = binding.session(
        low="auto",
        sample_tuples=None if tuples is None else count_of(tuples, "--tuples"),
        sample_seconds=seconds,
    )
    job = loaded(session, files).compiled.apart().job()
    limits = SampleLimits(session.config.sample_tuples, session.config.sample_seconds)
    samples = {
        read.name: sample_source(read.low, read.splits, limits)
        for read in job.reads
        if read.low is not None
    }
    found = documents(samples)
    if json:
        typer.echo(jsonlib.dumps({"sources": found}))
    else:
        stdout_console().print(StatsView(found))
