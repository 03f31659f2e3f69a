"""`cache`: the fixed-size tables of the low level, and what papers 1 and 4 say about them.

Contenders are the three policies. What is timed is one stream of Zipf-like groups, in ten epochs,
through a table of 1 MiB. Before that, while they warm up, each of them answers the papers'
questions (sizes.py, gaps.py, chains.py, evictions.py); report.py sets their figures beside ours.
Partials of the timed stream are checked to add up to the same groups for every policy.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np
import numpy.typing as npt

from bench.cache import chains, evictions, gaps, report, sizes
from bench.cache.streams import BATCH, Tuples, zipf_tuples
from bench.experiment import Column, Figures, Outcome, Prepared, Settings, Tell
from terascope.functions.slots import COUNT, SUM_INT
from terascope.kernels.columns.arrays import Rows
from terascope.kernels.tables.bounded_tables import BoundedTable, capacity_for
from terascope.kernels.tables.slots import Shape
from terascope.kernels.tables.table_policies import POLICIES, Policy

SHAPE = Shape(1, (COUNT, SUM_INT), with_epoch=True)
TUPLES = 10_000_000
GROUPS, EXPONENT, EPOCHS = 100_000, 0.85, 10
TABLE_BYTES = 1 << 20
ANSWER = "sums.json"


@dataclass(frozen=True)
class Effort:
    """How long the papers' questions are looked at; less of it gives rougher answers."""

    per_group: int
    edge_tuples: int
    crossings: int
    fillings: int
    zipf_tuples: int

    @classmethod
    def at(cls, scale: float) -> Effort:
        return cls(
            per_group=max(4, round(20 * scale)),
            edge_tuples=max(5_000, round(50_000 * scale)),
            crossings=max(2, round(5 * scale)),
            fillings=max(3, round(200 * scale)),
            zipf_tuples=max(1_000_000, round(4_000_000 * scale)),
        )


def stream(count: int, seed: int) -> tuple[Tuples, Rows]:
    """The tuples of the timed part, and their epochs."""
    return zipf_tuples(GROUPS, EXPONENT, count, seed), np.arange(count) * EPOCHS // count


def weights(epochs: Rows, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.uint64]:
    """A number for each group, so that weighted sums over partials are those over tuples."""
    mixed = (epochs.astype(np.uint64) << np.uint64(32)) + codes.astype(np.uint64)
    mixed = (mixed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xD6E8FEB86659FD93)


def weighted(weight: npt.NDArray[np.uint64], *columns: Rows) -> list[int]:
    return [int((weight * column.astype(np.uint64)).sum()) for column in columns]


@dataclass(frozen=True)
class PolicyContender:
    """A table of one policy."""

    policy: Policy
    tuples: int
    effort: Effort
    seed: int
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.policy

    def start(self, cores: int) -> PolicyRunning:
        del cores  # a table belongs to one
        return PolicyRunning(self)


class PolicyRunning:
    def __init__(self, contender: PolicyContender) -> None:
        self._contender = contender
        self._tuples, self._epochs = stream(contender.tuples, contender.seed)
        self._papers: dict[str, float] = {}

    def warm(self) -> None:
        """Compiles the table, and answers the papers' questions."""
        self._papers = papers_figures(self._contender)

    def run(self, output: Path) -> Figures:
        partials: list[Rows] = []
        capacity = capacity_for(SHAPE, TABLE_BYTES, self._contender.policy)
        table = BoundedTable(
            SHAPE,
            self._contender.policy,
            capacity,
            "lazy",
            lambda rows: partials.append(rows.copy()),
        )
        began = process_time()
        self._feed(table)
        seconds = process_time() - began
        rows = np.concatenate(partials)
        codes = (rows[:, SHAPE.first_word] >> 32).astype(np.int32)
        sums = weighted(weights(rows[:, 1], codes), rows[:, SHAPE.slot(0)], rows[:, SHAPE.slot(1)])
        (output / ANSWER).write_text(json.dumps({"rows": len(rows), "sums": sums}))
        count = len(self._tuples)
        return {
            "rows": len(rows),
            "ns_per_tuple": 1e9 * seconds / count,
            "evicted_percent": 100 * table.counters.evictions / count,
            "places": capacity,
            **self._papers,
        }

    def _feed(self, table: BoundedTable) -> None:
        rows = np.arange(BATCH, dtype=np.int32)
        mask = np.ones(BATCH, np.uint8)
        epochs = self._epochs
        for first, batch in zip(range(0, len(epochs), BATCH), self._tuples.batches(), strict=True):
            some = rows[: len(batch)]
            table.add(epochs[first:], some, [batch.groups], [batch.values], [mask])
        table.flush()

    def close(self) -> None:
        pass


def papers_figures(contender: PolicyContender) -> dict[str, float]:
    """By the names under which report.py looks for them."""
    policy, effort, seed = contender.policy, contender.effort, contender.seed
    found: dict[str, float] = {}
    for groups in sizes.PAPER:
        found[report.smallest(groups)] = sizes.smallest_table(
            policy, groups, effort.per_group, seed
        )
    for case in gaps.PAPER:
        for flush in gaps.FLUSHES:
            tuples = min(case.groups, effort.edge_tuples)
            edge = gaps.cross(policy, flush, case, tuples, effort.crossings, seed)
            found[report.gap(flush, case.groups)] = edge.longest_us
            found[report.at_once(flush, case.groups)] = edge.most_at_once
    for exponent in evictions.EXPONENTS:
        shares = evictions.zipf_evictions(policy, exponent, effort.zipf_tuples, seed)
        for part, share in shares.items():
            found[report.evicted(exponent, part)] = share
    if policy == "lru":
        for buckets in chains.BUCKETS:
            lengths = chains.chains(buckets, effort.fillings, seed)
            found[report.longest_chain(buckets)] = lengths.longest
            found[report.mean_chain(buckets)] = lengths.mean
    return found


@dataclass
class SameGroups:
    """The partials of every contender add up to the groups of the stream."""

    tuples: int
    seed: int
    seen: dict[str, list[int]] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        told = json.loads((output / ANSWER).read_text())
        outcome.rows = told["rows"]
        self.seen[outcome.contender] = told["sums"]

    def judge(self, outcomes: list[Outcome]) -> None:
        tuples, epochs = stream(self.tuples, self.seed)
        ones = np.ones(len(tuples), np.int64)
        expected = weighted(weights(epochs, tuples.groups), ones, tuples.values)
        for outcome in outcomes:
            if outcome.contender in self.seen:
                outcome.checked = self.seen[outcome.contender] == expected
                if not outcome.checked:
                    outcome.remark = "its partials do not add up to the groups"


@dataclass(frozen=True)
class Cache:
    name: str = "cache"
    title: str = "tables of fixed size: direct-mapped, second chance, chained with LRU"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        count = settings.count(TUPLES)
        tell(f"{count:,} tuples, {GROUPS:,} groups; the papers' tables are made before the runs")
        effort = Effort.at(settings.scale)
        return Prepared(
            contenders=tuple(
                PolicyContender(policy, count, effort, settings.seed) for policy in POLICIES
            ),
            check=SameGroups(count, settings.seed),
            about=(
                f"timed: {count:,} tuples, {GROUPS:,} groups with Zipf exponent {EXPONENT},"
                f" {EPOCHS} epochs, a table of {TABLE_BYTES >> 10} KiB, lazy flush",
            ),
            columns=(
                Column("ns_per_tuple", "CPU ns/tuple", "{:.1f}"),
                Column("evicted_percent", "evicted %", "{:.1f}"),
                Column("places", "places"),
            ),
            conclude=report.tables,
            draw=report.draw,
        )


EXPERIMENT = Cache()
