"""Each query gets a low part, which runs next to its source, and a high part (3.4.1)."""

from __future__ import annotations

from dataclasses import replace

from terascope.physical.draft import JobDraft
from terascope.physical.split.split_plan import split_plan


def split_queries(draft: JobDraft) -> JobDraft:
    """Before: a Plan      After: its low-level streams, and queries over these."""
    asked, settings = draft.asked, draft.asked.settings
    split = split_plan(
        asked.plan, settings.host, settings.costs, asked.is_live, settings.sharing.windows,
        tumbling_apart=not asked.samples, in_force=asked.in_force, decided=draft.decided,
    )  # fmt: skip
    return replace(draft, made=split)
