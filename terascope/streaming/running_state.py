"""The stored groups of a running aggregate that are alive between two micro-batches."""

from __future__ import annotations

from typing import Final

from terascope.plan.rel import Field, Running
from terascope.types import Type

ALIVE: Final = "#alive"
"""The column with the state of a group."""
ALIVE_STREAM: Final = ".alive"
"""Behind the key of a stream: the stored stream of its groups that are alive."""


def state_fields(rel: Running) -> tuple[Field, ...]:
    """The columns of groups that are alive."""
    groups = tuple(Field(name, expr.type) for name, expr in rel.keys[1:])
    return (*groups, Field(ALIVE, Type.BINARY))


def state_stream(key: str) -> str:
    """The stored stream of the groups alive of a running aggregate."""
    return key + ALIVE_STREAM
