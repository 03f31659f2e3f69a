"""Each query gets a low part, which runs next to its source, and a high part (3.4.1)."""

from __future__ import annotations

from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.physical.settings import costs_of, host_of
from terascope.physical.split.split_plan import split_plan


def split_queries(draft: JobDraft) -> JobDraft:
    """Before: a Plan      After: its low-level streams, and queries over these."""
    config, prospect = draft.config, draft.prospect
    split = split_plan(
        draft.plan,
        host_of(config),
        costs_of(config),
        draft.is_live,
        config.share_windows,
        tumbling_apart=prospect is not None and not prospect.pays,
        in_force=draft.in_force,
        decided=draft.decided,
    )
    return replace(draft, made=split)
