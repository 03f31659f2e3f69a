"""The layout of a partitioned source on disk: the manifest `partitions.json` of its folder.

In: a folder. Out: a `Layout`: the partitioning set, the ranges of hashes, and the partitions with
their paths, hosts and sizes. `terascope split` writes it beside the partitions.

After a re-split other ranges of hashes hold from a point in time on: each of these is a generation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from terascope.diagnostic import SourceError, reason_of
from terascope.files import sync

MANIFEST: Final = "partitions.json"
VERSION: Final = 1
ROUND_ROBIN: Final = "round-robin"
"""The word for partitions that no set determines: tuples are dealt out in turn."""
CLOCK: Final = "time"
"""The column whose values say which generation a tuple belongs to, in seconds."""


@dataclass(frozen=True)
class StoredPartition:
    """One partition of a source."""

    path: str
    """Relative to the folder."""
    host: str = ""
    """The host that holds it; empty: any."""
    tuples: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Generation:
    """The ranges of hashes from a time on."""

    bounds: tuple[int, ...]
    """The end of the range of each partition."""
    from_time: int | None = None
    """The first second of it; None: the beginning."""


@dataclass(frozen=True)
class Layout:
    """How a source is partitioned."""

    by: str
    """The partitioning set, as text; empty: tuples are dealt out in turn (round robin), so that no
    partition owns a group."""
    kind: str
    """The kind of source that the partitions are."""
    partitions: tuple[StoredPartition, ...]
    generations: tuple[Generation, ...]
    edge: int = 0
    """Ranges may change where the time in seconds, divided by this, does; 0: they do not change."""
    types: tuple[str, ...] = ()
    """The types of the values that were hashed (`placing.hashed_types`)."""

    @property
    def full_set(self) -> str:
        """The partitioning set that holds for all tuples: where ranges change in the course of
        time, the partition of a tuple follows from the values of the set and the slice of time
        together.
        """
        return f"{self.by}, {CLOCK}/{self.edge}" if self.by and self.edge else self.by

    @property
    def bounds(self) -> tuple[int, ...]:
        """The ranges of hashes that hold now."""
        return self.generations[-1].bounds

    def to_json(self) -> dict[str, Any]:
        generations = [
            {"from": one.from_time, "bounds": [f"{bound:#x}" for bound in one.bounds]}
            for one in self.generations
        ]
        return {
            "version": VERSION,
            "by": self.by,
            "kind": self.kind,
            "partitions": [asdict(one) for one in self.partitions],
            "generations": generations,
            "edge": self.edge,
            "types": list(self.types),
        }

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Layout:
        """Raises:
        KeyError, TypeError, ValueError: it is no layout.
        """
        if told["version"] != VERSION:
            raise ValueError(f"version {told['version']} is unknown, this program reads {VERSION}")
        generations = tuple(
            Generation(tuple(int(bound, 16) for bound in one["bounds"]), one["from"])
            for one in told["generations"]
        )
        partitions = tuple(StoredPartition(**one) for one in told["partitions"])
        if not partitions or any(len(one.bounds) != len(partitions) for one in generations):
            raise ValueError("a partition has no range of hashes")
        edge = told.get("edge", 0)
        if len(generations) > 1 and not edge:
            raise ValueError("the ranges of hashes change, and no edge is stated")
        types = tuple(map(str, told.get("types", ())))
        return Layout(told["by"], told["kind"], partitions, generations, edge, types)


def read_layout(folder: Path) -> Layout | None:
    """The layout of a folder; None: it has no manifest.

    Raises:
        SourceError: the manifest cannot be read.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return Layout.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise SourceError(f"cannot read '{path}': {reason_of(problem)}") from problem
    except (KeyError, TypeError, ValueError) as problem:
        raise SourceError(f"'{path}' is no manifest of partitions: {problem}") from problem


def write_layout(folder: Path, layout: Layout) -> None:
    """Put the manifest in place as a whole."""
    path = folder / MANIFEST
    draft = path.with_name(path.name + ".new")
    draft.write_text(json.dumps(layout.to_json(), indent=1), encoding="utf-8")
    sync(draft)
    draft.replace(path)
