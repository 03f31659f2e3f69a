"""A stream that several others use is computed once and kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.physical.job import StreamStage
from terascope.plan.plan import reads


def keep_shared_streams(draft: JobDraft) -> JobDraft:
    """Before: relations above the low level      After: stages, marked where they are kept."""
    rels = {**draft.in_spark, **draft.above}
    counted = Counter(read.stream for rel in rels.values() for read in reads(rel))
    counted.update(stream.name for stream in draft.whole.visible)
    stages = tuple(StreamStage(name, rel, counted[name] > 1) for name, rel in rels.items())
    return replace(draft, streams=stages)
