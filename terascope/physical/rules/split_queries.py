"""Each query gets a low part, which runs next to its source, and a high part (3.4.1)."""

from __future__ import annotations

from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.physical.settings import costs_of, host_of
from terascope.physical.split.split_plan import split_plan


def split_queries(draft: JobDraft) -> JobDraft:
    """Before: a Plan      After: its low-level streams, and queries over these."""
    asked, config = draft.asked, draft.asked.config
    split = split_plan(
        asked.plan, host_of(config), costs_of(config), asked.is_live, config.share_windows,
        tumbling_apart=not asked.samples, in_force=asked.in_force, decided=draft.decided,
    )  # fmt: skip
    return replace(draft, made=split)
