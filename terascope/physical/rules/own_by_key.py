"""Partitions of a source own the groups whose keys determine the partition."""

from __future__ import annotations

from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.physical.ownership import key_ownership


def own_by_key(draft: JobDraft) -> JobDraft:
    """Before: partial groups of all tasks meet in the exchange      After: groups whose keys
    determine the partition are complete in the task that reads it (paper 2, 5.2).
    """
    names = {one.name for read in draft.reads if read.low is not None for one in read.interfaces}
    interfaces = {name: draft.interfaces[name] for name in names}
    owned = key_ownership(interfaces, draft.sets, draft.trees)
    if owned is not None and draft.config.combine_on_hosts == "auto":
        owned = replace(owned, combined=owned.several_on_a_host)
    return replace(draft, ownership=owned)
