"""`group-counts`: how far estimators of the number of groups are off, for samples of known streams.

Streams: Zipf-like and uniform draws, unique keys, key sets of an epoch of generated flow records,
and of real connections where they are (../shared/data/flows). Samples of 2, 10 and 40 percent. An
estimate that is twice or half the truth is off by the factor 2.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from gzip import decompress
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from bench.estimators import ESTIMATORS
from bench.experiment import Column, Contender, Figures, Outcome, Prepared, Settings, Tell
from bench.queries78 import EPOCH, flow_file
from terascope.sharing.distinct import (
    Hashes,
    Ints,
    attribute_hashes,
    bounds,
    count_groups,
    set_hashes,
)

RECORDS: Final = 10_000_000
DRAWS: Final = 1_000_000
SHARES: Final = (0.02, 0.1, 0.4)
REAL_FLOWS: Final = (
    Path(__file__).resolve().parents[2]
    / "shared"
    / "data"
    / "flows"
    / "rita_zeek_conn_3days.tar.gz"
)
FLOW_KEYS: Final = (
    *("srcIP", "srcPort", "srcIP dstIP", "srcIP dstPort", "srcIP tos", "srcAS dstAS"),
    *("srcIP dstIP srcPort dstPort", "protocol tcp_flags", "srcMask dstMask input output"),
    "dstPort tos tcp_flags",
)
REAL_FIELDS: Final = {"src": 3, "sport": 4, "dst": 5, "dport": 6, "proto": 7, "state": 12}
REAL_KEYS: Final = (
    *("src", "sport", "dport", "src dport", "src dst", "src dst sport dport", "proto state"),
    "dport state",
)

Named: TypeAlias = tuple[str, Hashes]


def drawn_streams(count: int) -> Iterator[Named]:
    random = np.random.default_rng(5)
    for alpha in (0.0, 0.48, 0.67, 0.85, 1.1):
        for groups in (1000, 30_000, 600_000):
            edges = np.cumsum(np.arange(1, groups + 1) ** -alpha)
            values = np.searchsorted(edges / edges[-1], random.random(count))
            yield f"zipf {alpha} of {groups}", attribute_hashes(values, "drawn")
    yield "unique", attribute_hashes(np.arange(count), "unique")
    half = np.where(random.random(count) < 0.5, np.arange(count), -random.integers(1, 100, count))
    yield "half unique", attribute_hashes(half, "half")


def flow_streams(path: Path) -> Iterator[Named]:
    """One epoch in the midst of the file."""
    table = pq.read_table(path)
    epochs = table.column("time").to_numpy() // EPOCH
    rows = np.flatnonzero(epochs == epochs[len(epochs) // 2])
    for keys in FLOW_KEYS:
        vectors = [
            attribute_hashes(table.column(k).to_numpy()[rows].astype(np.int64), k)
            for k in keys.split()
        ]
        yield f"generated {keys}", set_hashes(vectors, len(rows))


def real_streams(path: Path) -> Iterator[Named]:
    """Three days of connections of a host in a public cloud."""
    lines: list[list[str]] = []
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.name.endswith(".log.gz") else None
            if file is not None:
                text = io.StringIO(decompress(file.read()).decode())
                lines += [line.split("\t") for line in text if not line.startswith("#")]
    for keys in REAL_KEYS:
        vectors = []
        for key in keys.split():
            codes: Ints
            _, codes = np.unique([line[REAL_FIELDS[key]] for line in lines], return_inverse=True)
            vectors.append(attribute_hashes(codes, key))
        yield f"real {keys}", set_hashes(vectors, len(lines))


@dataclass(frozen=True)
class Estimator:
    """An estimator, to be asked about all streams."""

    name: str
    flows: Path
    draws: int
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Estimating:
        del cores  # one
        streams = [*drawn_streams(self.draws), *flow_streams(self.flows)]
        if REAL_FLOWS.exists():
            streams += real_streams(REAL_FLOWS)
        return Estimating(self.name, tuple(hashes for _, hashes in streams))


@dataclass(frozen=True)
class Estimating:
    name: str
    streams: tuple[Hashes, ...]

    def warm(self) -> None:
        """Compiles."""
        ESTIMATORS[self.name](count_groups(self.streams[0][:1000]), 10.0)

    def run(self, output: Path) -> Figures:
        del output
        off: dict[float, list[float]] = {share: [] for share in SHARES}
        outside = 0
        for stream in self.streams:
            truth = count_groups(stream).groups
            random = np.random.default_rng(3)
            for share in SHARES:
                found = count_groups(stream[random.random(len(stream)) < share])
                scale = len(stream) / found.tuples
                low, high = bounds(found, scale)
                outside += not low <= truth <= high
                off[share].append(abs(np.log(ESTIMATORS[self.name](found, scale) / truth)))
        figures = {"rows": float(len(self.streams) * len(SHARES)), "outside": float(outside)}
        for share, logs in off.items():
            figures[f"mean {share}"] = float(np.exp(np.mean(logs)))
            figures[f"largest {share}"] = float(np.exp(np.max(logs)))
        return figures

    def close(self) -> None:
        """Nothing is open."""


class WithinBounds:
    """No stream has fewer or more groups than the bounds of its samples say."""

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        outcome.rows = round(outcome.figures[0]["rows"])

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.figures:
                outside = round(outcome.figures[0]["outside"])
                outcome.checked = outside == 0
                outcome.remark = f"{outside} outside of the bounds" if outside else ""


@dataclass(frozen=True)
class GroupCountsExperiment:
    name: str = "group-counts"
    title: str = "by which factor estimates of the number of groups are off"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(RECORDS)
        tell(f"{records:,} flow records in {settings.data}")
        flows = flow_file(settings.data, records, settings.seed)
        draws = settings.count(DRAWS)
        contenders: tuple[Contender, ...] = tuple(Estimator(n, flows, draws) for n in ESTIMATORS)
        columns = tuple(
            Column(f"{word} {share}", f"{word} {share:.0%}", "{:.3f}")
            for share in SHARES
            for word in ("mean", "largest")
        )
        real = "with" if REAL_FLOWS.exists() else "without"
        about = (f"{draws:,} draws, an epoch of {records:,} flow records, {real} real connections",)
        return Prepared(contenders, WithinBounds(), about, columns=columns, runs=1)


EXPERIMENT = GroupCountsExperiment()
