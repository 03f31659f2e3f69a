"""What can go wrong around a running stream, told in one line that says what to do."""

from __future__ import annotations


class StreamError(Exception):
    """A run, its status or its results are not to be had; the message says why."""
