"""Files that grow: those of a case disappear and come again, little by little, with a clock.

In: the finished files of a case. Out: `Growing`: every `grow` shows some more bytes of a CSV file,
or one more Parquet file; `now_ns` is a time that no tuple is older than which is not there yet,
so that what heartbeats say of silent sources is true.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tests.properties.stream_cases import StreamCase

SECOND: Final = 10**9
CHUNKS: Final = 4
"""In about so many pieces a CSV file is written."""


@dataclass
class Arriving:
    """The files of one interface."""

    folder: Path
    pieces: list[tuple[str, bytes]]
    """What will be appended to which file."""
    times: list[int]
    """Of all tuples."""
    arrived: int = 0
    """Tuples that are there with all their bytes."""

    def grow(self) -> None:
        name, content = self.pieces.pop(0)
        path = self.folder / name
        if path.suffix in (".csv", ".json"):
            header = 1 if path.suffix == ".csv" and not path.exists() else 0
            with path.open("ab") as file:
                file.write(content)
            # A header that is torn counts as none, and as one tuple too many later: never too few.
            self.arrived += content.count(b"\n") - header
        else:
            hidden = path.with_suffix(".hidden")
            hidden.write_bytes(content)
            self.arrived += pq.read_metadata(hidden).num_rows
            hidden.rename(path)

    @property
    def first_missing(self) -> int | None:
        missing = self.times[max(self.arrived, 0) :]
        return min(missing, default=None)


@dataclass
class Growing:
    """All interfaces of a case."""

    interfaces: list[Arriving]
    rng: random.Random
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.end = max(time for one in self.interfaces for time in one.times) + 1

    @classmethod
    def of(cls, case: StreamCase) -> Growing:
        """Takes the files of the case away."""
        rng = random.Random(case.seed)
        return cls([arriving(Path(i.location), rng) for i in case.interfaces.values()], rng)

    @property
    def finished(self) -> bool:
        return not any(one.pieces for one in self.interfaces)

    def grow(self) -> None:
        """One more piece of some interface."""
        self.rng.choice([one for one in self.interfaces if one.pieces]).grow()

    def now_ns(self) -> int:
        missing = [one.first_missing for one in self.interfaces]
        return min((time for time in missing if time is not None), default=self.end) * SECOND


def arriving(folder: Path, rng: random.Random) -> Arriving:
    pieces: list[tuple[str, bytes]] = []
    times: list[int] = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        if path.suffix in (".csv", ".json"):
            pieces += [(path.name, piece) for piece in torn(content, rng)]
            times += times_of(content.decode().splitlines(), path.suffix)
        else:
            pieces.append((path.name, content))
            times += pq.read_table(path).column("ts").to_pylist()
        path.unlink()
    return Arriving(folder, pieces, times)


def times_of(lines: list[str], suffix: str) -> list[int]:
    if suffix == ".json":
        return [json.loads(line)["ts"] for line in lines]
    return [int(line.partition(",")[0]) for line in lines[1:]]


def torn(content: bytes, rng: random.Random) -> Iterable[bytes]:
    # A file of JSON may be empty.
    edges = sorted(rng.randrange(0, len(content) + 1) for _ in range(rng.randrange(0, CHUNKS)))
    for start, end in zip([0, *edges], [*edges, len(content)], strict=True):
        yield content[start:end]
