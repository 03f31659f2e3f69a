"""Reading tasks run the low-level streams of their source, where the source allows it.

In: a draft with reads. Out: reads with a `LowPlan` each. Spark runs the low-level streams of
sources whose tuples are Spark's already (DataFrames), and all low-level streams where the settings
say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.diagnostic import SourceError
from terascope.optimize.driver import apply_below
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.rules.low_planner import low_plan, scanned
from terascope.plan.plan import Stream
from terascope.plan.rel import Rel, Scan


def host_low_level(draft: JobDraft) -> JobDraft:
    """Before: reads of tuples      After: reads whose tasks prefilter, select and group."""
    config = draft.config
    if not draft.is_native:
        return draft
    bound = [interface for read in draft.reads for interface in read.interfaces]
    refused = [interface for interface in bound if not interface.hosts_low_level]
    if config.low == "native" and refused:
        raise SourceError(not_native(refused))
    hosting = {i.name for i in bound if i.hosts_low_level}
    lower = draft.split.low
    hosted = tuple(on_interfaces(lower, hosting))
    others = {i.name for i in refused}
    in_spark = {stream.name: stream.rel for stream in on_interfaces(lower, others)}
    found = tuple(native_read(read, hosted, config) for read in draft.reads)
    return replace(draft, reads=found, hosted=hosted, in_spark=in_spark)


def not_native(refused: Iterable[Interface]) -> str:
    named = ", ".join(f"'{interface.name}' is {interface.noun}" for interface in refused)
    return (
        f"the low level cannot be native: {named}, whose tuples stay in Spark; set low to auto,"
        " which is native for all other sources, or to catalyst"
    )


def on_interfaces(streams: Iterable[Stream], names: set[str]) -> Iterator[Stream]:
    """The low-level streams with tuples of these interfaces, restricted to them."""

    def restricted(rel: Rel) -> Rel | None:
        if not isinstance(rel, Scan) or names.issuperset(rel.interfaces):
            return None
        return replace(rel, interfaces=tuple(n for n in rel.interfaces if n in names))

    for stream in streams:
        if names.intersection(scanned(stream.rel).interfaces):
            yield stream.over(apply_below(stream.rel, restricted))


def native_read(read: SourceRead, streams: Sequence[Stream], config: Config) -> SourceRead:
    """A read whose tasks run the low-level streams themselves, where its interfaces allow that."""
    if not all(interface.hosts_low_level for interface in read.interfaces):
        return read
    names = {i.name for i in read.interfaces}
    ours = [s for s in streams if names & set(scanned(s.rel).interfaces)]
    return replace(read, low=low_plan(ours, read, config), predicate=None)
