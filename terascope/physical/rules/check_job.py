"""The last rule: a Job must be sane."""

from __future__ import annotations

from terascope.physical.draft import JobDraft


def check_job(draft: JobDraft) -> JobDraft:
    """Refuse a Job that an executor could not run."""
    return draft
