"""Plan -> Job: a list of rules decides everything.

In: an optimised Plan and the interfaces it names. Out: a `Job`. Each rule is a function from draft
to draft, in a file of its name; `check_job` comes last, changes nothing, and refuses a Job that is
not sane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.physical.draft import JobDraft
from terascope.physical.job import Job
from terascope.physical.rules.check_job import check_job
from terascope.physical.rules.choose_slices import choose_slices
from terascope.physical.rules.choose_strategies import choose_strategies
from terascope.physical.rules.finish_in_tasks import finish_in_tasks
from terascope.physical.rules.grow_trees import grow_trees
from terascope.physical.rules.host_low_level import host_low_level
from terascope.physical.rules.keep_shared_streams import keep_shared_streams
from terascope.physical.rules.list_operators import list_operators
from terascope.physical.rules.order_outputs import order_outputs
from terascope.physical.rules.own_by_key import own_by_key
from terascope.physical.rules.place_high_parts import place_high_parts
from terascope.physical.rules.read_sources import read_sources
from terascope.physical.rules.send_tuples import send_tuples
from terascope.physical.rules.share_tables import share_tables
from terascope.physical.rules.split_queries import split_queries
from terascope.physical.rules.sub_aggregate_in_partitions import sub_aggregate_in_partitions
from terascope.physical.settings import Destination, sample_limits
from terascope.physical.split.slicing import InForce
from terascope.physical.splits import SPLIT_BYTES
from terascope.physical.statistics.measured import Measured
from terascope.physical.statistics.prospects import Prospect, prospect_of
from terascope.plan.plan import Plan

JobRule: TypeAlias = Callable[[JobDraft], JobDraft]

RULES: Final[tuple[JobRule, ...]] = (
    split_queries,  # each query: a low part next to its source, a high part above it
    read_sources,  # each source is read once, with the columns and splits of all its scans
    host_low_level,  # the tasks that read prefilter, select and group
    choose_slices,  # windows share slices, by cost (paper 0)
    share_tables,  # aggregations with the same keys have one table
    grow_trees,  # aggregations are made of the groups of others (paper 4)
    choose_strategies,  # how low and high level share the work of states (paper 1)
    place_high_parts,  # high parts over merged groups and over windows of slices
    keep_shared_streams,  # a stream with several readers is computed once
    order_outputs,  # the order in which rows are emitted
    own_by_key,  # partitions of a source finish the groups that only they have (paper 2)
    sub_aggregate_in_partitions,  # and sub-aggregates of what they finish (paper 2, 5.2.2)
    finish_in_tasks,  # row pipelines and joins that tasks make themselves
    send_tuples,  # partitions send tuples where that is less work than partial groups
    list_operators,  # every operator with its places and its predicted cost
    check_job,
)
SPLITTING: Final = RULES[: RULES.index(choose_slices) + 1]
"""The rules that split queries into low and high parts and decide about windows."""


def plan_job(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    split_bytes: int = SPLIT_BYTES,
    config: Config | None = None,
    live: bool = False,
    destination: Destination = "frames",
) -> Job:
    """The job that computes every visible stream of a plan. Live sources have no splits yet."""
    return drafted(plan, interfaces, split_bytes, config, live, destination).job()


def drafted(
    plan: Plan,
    interfaces: Mapping[str, Interface],
    split_bytes: int = SPLIT_BYTES,
    config: Config | None = None,
    live: bool = False,
    destination: Destination = "frames",
    in_force: InForce | None = None,
    rules: Sequence[JobRule] = RULES,
) -> JobDraft:
    """The draft of a job after some rules, or all. `in_force`: how a running stream composes its
    windows.
    """
    config = config or Config()
    prospect = None if live else prospect_before(plan, interfaces, config)
    samples = prospect is None or prospect.pays
    draft = JobDraft(
        parameters=dict(plan.values),
        prospect=prospect,
        destination="stream" if live else destination,
        plan=plan,
        interfaces=interfaces,
        config=config,
        split_bytes=None if live else split_bytes,
        measured=Measured(sample_limits(config) if samples else None),
        in_force=in_force,
    )
    for rule in rules:
        draft = rule(draft)
    return draft


def prospect_before(
    plan: Plan, interfaces: Mapping[str, Interface], config: Config
) -> Prospect | None:
    """The possible gain of samples; None where they are always taken, or never."""
    if config.low == "catalyst" or config.share_sample != "cost":
        return None
    if config.share_trees == "operations":
        return None
    return prospect_of(plan, interfaces)
