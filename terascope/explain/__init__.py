"""A query set at any stage, for people and programs.

In: a compiled set. Out: text, JSON, Graphviz or HTML. Needs neither Spark nor, before the Job, any
source. Reading order: model, from_script, from_plan, from_job, from_distributed, from_stream, then
the to_ modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from terascope.explain.from_distributed import picture_of_partitions
from terascope.explain.from_job import picture_of_job
from terascope.explain.from_plan import picture_of_plan, picture_of_split, rule_steps
from terascope.explain.from_script import picture_of_script
from terascope.explain.from_stream import picture_of_stream
from terascope.explain.model import Picture, as_json
from terascope.explain.to_dot import as_dot
from terascope.explain.to_html import as_html
from terascope.explain.to_svg import as_svg, as_svg_file
from terascope.explain.to_text import as_text
from terascope.physical.job import Job
from terascope.physical.operators import Measures
from terascope.physical.split.split_plan import SplitPlan
from terascope.pipeline import Compiled

__all__ = [
    "FORMATS",
    "STAGES",
    "Format",
    "Picture",
    "Stage",
    "as_svg",
    "as_svg_file",
    "explain",
    "picture",
]

Stage: TypeAlias = Literal["ast", "plan", "optimized", "split", "job", "partitions", "stream"]
Format: TypeAlias = Literal["text", "json", "dot", "html"]
STAGES: tuple[Stage, ...] = get_args(Stage)
FORMATS: Mapping[Format, Callable[[Picture], str]] = {
    "text": as_text,
    "json": as_json,
    "dot": as_dot,
    "html": as_html,
}


def explain(
    compiled: Compiled, stage: Stage = "optimized", format: Format = "text", verbose: bool = False
) -> str:
    """A stage of a query set as text. `verbose` adds what each rule of the optimiser did.

    Raises:
        SourceError: the Job is asked for, and a source it reads is missing.
    """
    if stage not in STAGES:
        raise ValueError(f"no stage '{stage}'; stages are {', '.join(STAGES)}")
    if format not in FORMATS:
        raise ValueError(f"no format '{format}'; formats are {', '.join(FORMATS)}")
    return FORMATS[format](picture(compiled, stage, verbose))


def explain_run(
    compiled: Compiled, ran: tuple[Job, SplitPlan], measures: Measures, format: Format = "text"
) -> str:
    """The job of a run, with what its operators did."""
    return FORMATS[format](picture_of_job(compiled, ran, measures))


def picture(compiled: Compiled, stage: Stage = "optimized", verbose: bool = False) -> Picture:
    """The same as data."""
    title = compiled.source.title
    match stage:
        case "ast":
            return picture_of_script(compiled.script, title)
        case "plan":
            return picture_of_plan(compiled.plan, stage, title)
        case "optimized":
            found = picture_of_plan(compiled.optimized, stage, title)
            return replace(found, rules=rule_steps(compiled.plan)) if verbose else found
        case "split":
            return picture_of_split(compiled.split(), title)
        case "job":
            return picture_of_job(compiled)
        case "partitions":
            return picture_of_partitions(compiled)
        case "stream":
            return picture_of_stream(compiled)
