"""Where an operator of a Job runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

Placement: TypeAlias = Literal["task", "merge", "close", "spark"]
"""Next to the source; after an exchange; when a slice closes; in Catalyst."""
