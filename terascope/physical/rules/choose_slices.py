"""Windows share slices where a sample of the traffic shows that this is cheaper (paper 0)."""

from __future__ import annotations

from dataclasses import replace

from terascope.connectors.arrival import is_arrival
from terascope.diagnostic import SourceError
from terascope.physical.draft import JobDraft
from terascope.physical.job import SourceRead
from terascope.physical.rules.host_low_level import host_low_level
from terascope.physical.rules.read_sources import read_sources
from terascope.physical.rules.split_queries import split_queries
from terascope.physical.splits import SPLIT_BYTES


def choose_slices(draft: JobDraft) -> JobDraft:
    """Before: slices for an assumed rate      After: slices for the rate of a sample."""
    slicing = draft.split.slicing
    by_cost = draft.config.share_windows == "cost"
    if not draft.is_native or not by_cost or not slicing.has_choices:
        return draft
    sampled = [with_splits(read, draft) for read in draft.reads]
    known = {
        family: draft.measured.traffic(family, slicing, draft.whole, sampled)
        for family in slicing.asked
        if slicing.is_open(family)
    }
    if not any(known.values()):
        return draft
    decided = slicing.knowing(known.get)
    if decided.decides_as(slicing):
        return replace(draft, made=replace(draft.split, slicing=decided))
    again = replace(draft, decided=decided)
    for rule in (split_queries, read_sources, host_low_level):
        again = rule(again)
    return again


def with_splits(read: SourceRead, draft: JobDraft) -> SourceRead:
    """A read with splits that can be sampled. For a live source these are the files that exist;
    there may be none yet, and the splits have no arrival times.
    """
    if not draft.is_live or any(is_arrival(column.name) for column in read.columns):
        return read
    try:
        splits = draft.splits_of(read.interfaces, read.edge, SPLIT_BYTES)
    except SourceError:  # the run will say so, if it is still so then
        return read
    return replace(read, splits=tuple(splits))
