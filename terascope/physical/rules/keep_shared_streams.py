"""A stream that several others use is computed once and kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.plan.plan import reads


def keep_shared_streams(draft: JobDraft) -> JobDraft:
    """Before: streams above the low level      After: the same, and those that are kept."""
    rels = {**draft.in_spark, **draft.streams}
    counted = Counter(read.stream for rel in rels.values() for read in reads(rel))
    counted.update(stream.name for stream in draft.whole.visible)
    return replace(draft, streams=rels, kept=frozenset(n for n in rels if counted[n] > 1))
