"""Query sets that are run with and without sharing, as contenders of an experiment.

In: GSQL, a source, and how to share. Out: a contender whose runs are `low_run.run_job`: processor
time, look-ups, groups. Tables that queries share have fewer groups than their own would; that the
answers are the same is for tests to say (tests/physical/test_sharing.py), here all must see the
same tuples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.experiment import Figures, Outcome
from bench.low_run import Work, prepared, run_job
from terascope.config import Config
from terascope.diagnostic import Source
from terascope.physical.job import Job
from terascope.physical.settings import APART
from terascope.pipeline import Bindings, compile_set

MEMORY_BYTES = 4 << 30
TUPLES = "tuples.json"
WAYS: dict[str, dict[str, Any]] = {
    "shared": {"share_sample": "always"},
    "flat": {"share_trees": "never", "share_sample": "always"},
    "fewest operations": {
        "share_trees": "operations",
        "tree_memory": 1 << 40,
        "tree_leaves": "free",
    },
    "nothing shared": {
        "share_windows": "unshared",
        **APART,
    },
}


def planned(text: str, source: str, sharing: Mapping[str, Any]) -> Job:
    """A job whose kernels are compiled."""
    from terascope.connectors.registry import parse_interface

    interface = parse_interface(source)
    config = Config(memory_bytes=MEMORY_BYTES, **sharing)
    bindings = Bindings(interfaces={interface.name: interface}, config=config)
    return prepared(compile_set(Source(text, "set.gsql"), bindings).job())


@dataclass(frozen=True)
class SetContender:
    """One or more sets, each for itself, shared in one way."""

    name: str
    texts: tuple[str, ...]
    source: str
    way: str
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> SetRunning:
        del cores  # one task
        return SetRunning(self)


class SetRunning:
    def __init__(self, contender: SetContender) -> None:
        self._contender = contender
        self._jobs: list[Job] = []

    def warm(self) -> None:
        one = self._contender
        self._jobs = [planned(text, one.source, WAYS[one.way]) for text in one.texts]
        for job in self._jobs:
            run_job(job)

    def run(self, output: Path) -> Figures:
        works = [run_job(job) for job in self._jobs]
        rows = sum(work.rows for work in works)
        seen = sum(work.tuples for work in works)
        (output / TUPLES).write_text(json.dumps({"tuples": seen, "rows": rows}))
        longest = max(works, key=lambda work: work.seconds)
        return figures(works, rows) | {"longest_s": longest.seconds}

    def close(self) -> None:
        self._jobs = []


def figures(works: list[Work], rows: int) -> dict[str, float]:
    seconds = sum(work.seconds for work in works)
    tuples = sum(work.tuples for work in works)
    probes = sum(work.probes for work in works)
    return {
        "rows": rows,
        "cpu_s": seconds,
        "probes_millions": probes / 1e6,
        "ns_per_tuple": 1e9 * seconds / max(1, tuples),
    }


@dataclass
class SameNumber:
    """The same number of tuples, however they were shared."""

    alike: dict[str, str]
    """Contender -> what it answers."""
    found: dict[str, int] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        told = json.loads((output / TUPLES).read_text())
        self.found[outcome.contender] = told["tuples"]
        outcome.rows = told["rows"]

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            mine = self.found.get(outcome.contender)
            if mine is None:
                continue
            same = [n for n, what in self.alike.items() if what == self.alike[outcome.contender]]
            others = {self.found[n] for n in same if n in self.found}
            outcome.checked = others == {mine}
            if not outcome.checked:
                outcome.remark = f"tuples differ: {sorted(others)}"
