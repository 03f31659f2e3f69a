"""A Plan: an ordered mapping from stream names to operator trees, leaves first.

Sharing is by name: a tree reads another stream with `Read(name)`. A stream stands after all it
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

from terascope.functions.base import Value
from terascope.plan.rel import PlanMistake, Read, Rel, require, walk
from terascope.types import Type


@dataclass(frozen=True)
class Stream:
    """A named stream of the set."""

    name: str
    rel: Rel
    visible: bool = True
    """Whether its rows are delivered; internal, local and shared streams are not."""
    text: str = field(default="", compare=False)
    """Canonical GSQL of the query, for the manifest."""
    comment: str = field(default="", compare=False)
    liveness: float | None = field(default=None, compare=False)
    """Seconds that its stream waits for a source that is gone; None: it does not say."""

    def over(self, rel: Rel) -> Stream:
        """The stream computed by another relation, or the stream itself by its own."""
        return self if rel is self.rel else replace(self, rel=rel)


@dataclass(frozen=True)
class Parameter:
    name: str
    type: Type
    value: Value


@dataclass(frozen=True)
class Plan:
    streams: tuple[Stream, ...]
    parameters: tuple[Parameter, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, Stream]:
        return {stream.name: stream for stream in self.streams}

    def __post_init__(self) -> None:
        seen: dict[str, Stream] = {}
        for stream in self.streams:
            require(stream.name not in seen, f"stream {stream.name} twice")
            for read in reads(stream.rel):
                require(
                    read.stream in seen, f"{stream.name} reads {read.stream} before it is there"
                )
                have = seen[read.stream].rel.fields
                if read.schema != have:
                    raise PlanMistake(
                        f"{stream.name} reads {read.stream} as {read.schema}, it is {have}"
                    )
            seen[stream.name] = stream

    def of(self, streams: Iterable[Stream]) -> Plan:
        """The plan with other streams, or the plan itself with its own."""
        made = tuple(streams)
        same = len(made) == len(self.streams) and all(map(is_, made, self.streams))
        return self if same else replace(self, streams=made)

    def __getitem__(self, name: str) -> Stream:
        found = self._by_name.get(name)
        if found is None:
            raise PlanMistake(f"no stream {name}")
        return found

    def __iter__(self) -> Iterator[Stream]:
        return iter(self.streams)

    @property
    def visible(self) -> tuple[Stream, ...]:
        return tuple(s for s in self.streams if s.visible)

    @property
    def values(self) -> Mapping[str, Value]:
        return {p.name: p.value for p in self.parameters}


def reads(rel: Rel) -> Iterator[Read]:
    return (r for r in walk(rel) if isinstance(r, Read))
