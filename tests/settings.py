"""Settings for tests: a Config whose values are not checked, with memory that every machine has."""

from __future__ import annotations

import os
from typing import Any, Final, TypeAlias

from terascope.config import Config

Changes: TypeAlias = dict[str, Any]
"""Some settings, by name."""
SOAK: Final = "TERASCOPE_SOAK" in os.environ
"""Whether `make soak` runs: all cases, where `make test` takes some of each kind."""


def config_with(**changes: Any) -> Config:
    return Config(memory_bytes=1 << 30).model_copy(update=changes)
