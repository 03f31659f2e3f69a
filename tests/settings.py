"""Settings for tests: a Config whose values are not checked, with memory that every machine has."""

from __future__ import annotations

from typing import Any, TypeAlias

from terascope.config import Config

Changes: TypeAlias = dict[str, Any]
"""Some settings, by name."""


def config_with(**changes: Any) -> Config:
    return Config(memory_bytes=1 << 30).model_copy(update=changes)
