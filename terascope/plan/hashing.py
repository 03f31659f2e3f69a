"""Immutable trees that are looked up over and over: each node computes its hash once.

`PlanNode` makes its subclasses such frozen dataclasses; `hashed_once` does it for a single class.
Expressions are keys of dictionaries in planning and, batch by batch, in tasks; without this every
look-up would walk the whole tree. What a node remembers beside its fields is left out when the node
is pickled: it can be derived again, and the hash of a text differs between processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, dataclass_transform

Node = TypeVar("Node")

KNOWN: Final = "_hash"


def hashed_once(cls: type[Node]) -> type[Node]:
    """Make objects of a frozen dataclass remember their hash."""
    computed = cls.__hash__

    def remembered(self: Any) -> int:
        known: int | None = self.__dict__.get(KNOWN)
        if known is None:
            known = self.__dict__[KNOWN] = computed(self)
        return known

    def state(self: Any) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    cls.__hash__ = remembered  # type: ignore[method-assign]
    cls.__getstate__ = state  # type: ignore[method-assign]
    return cls


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class PlanNode:
    """A node of an immutable tree: every subclass is a frozen dataclass that hashes once."""

    def __init_subclass__(cls) -> None:
        hashed_once(dataclass(frozen=True)(cls))
