"""Partitions of a source own the groups whose keys determine the partition.

In: a draft whose sources are partitioned. Out: the draft with its `KeyOwnership`, or without one:
on one host a task may as well read a range of time of all partitions, which owns the epochs in it.
Groups that no partition has whole need no exchange then, those that one has would not need it
either way. So partitions are read by time where most aggregations are central.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from terascope.connectors.base import interface_of
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.ownership import KeyOwnership, key_ownership, usable_bounds
from terascope.physical.splits import by_time
from terascope.plan.rel import Aggregate, Join, Rel, Running, walk

MOST_CENTRAL: Final = 1
"""Partitions are read by time if so many aggregations are central for each one that is not."""


def own_by_key(draft: JobDraft) -> JobDraft:
    """Before: partial groups of all tasks meet in the exchange      After: groups whose keys
    determine the partition are complete in the task that reads it (paper 2, 5.2).
    """
    names = {one.name for read in draft.reads if read.low is not None for one in read.interfaces}
    interfaces = {name: draft.interfaces[name] for name in names}
    owned = key_ownership(interfaces, draft.sets, draft.trees)
    if owned is None or is_read_by_time(draft, owned):
        return replace(draft, ownership=None)
    if draft.config.combine_on_hosts == "auto":
        owned = replace(owned, combined=owned.several_on_a_host)
    return replace(draft, ownership=owned)


def is_read_by_time(draft: JobDraft, owned: KeyOwnership) -> bool:
    """Whether tasks had better read ranges of time. A declared partitioning is always read by
    partition, since reading is what checks it; so is one whose partitions are on named hosts.
    """
    low = [output.name for output in draft.low if output.groups is not None]
    above = [name for name, rel in draft.streams.items() if any(map(is_work, walk(rel)))]
    kept = sum(name in owned.kept for name in (*low, *above))
    central = sum(name not in owned.kept for name in low)
    if draft.is_live or owned.host_count or central <= MOST_CENTRAL * kept:
        return False
    return all(has_ranges(draft, read) for read in draft.reads if read.low is not None)


def is_work(rel: Rel) -> bool:
    """Whether an operator above the low level would need an exchange."""
    return isinstance(rel, Aggregate | Running | Join)


def has_ranges(draft: JobDraft, read: SourceRead) -> bool:
    """Whether the partitions of a read have ranges of time, and cannot be wrong ones."""
    checked = all(
        one.partition is not None
        and (
            not one.partition.by or usable_bounds(one.partition, draft.sets[interface_of(one.name)])
        )
        for one in read.interfaces
    )
    return checked and read.edge is not None and len(by_time(read.splits, read.edge)) > 1
