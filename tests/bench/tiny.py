"""Contenders that do next to nothing, for tests of the harness; they run in real processes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from bench.experiment import Check, Contender, Figures, Outcome, Prepared, Settings, Tell


@dataclass(frozen=True)
class Tiny:
    """Writes its rows, and a line into a diary for everything it was told to do."""

    name: str
    diary: Path
    rows: tuple[int, ...] = (1, 2, 3)
    fails: bool = False
    dies: bool = False
    hoards_mb: int = 0
    parquet: bool = False
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> TinyRunning:
        return TinyRunning(self, cores)


class TinyRunning:
    def __init__(self, contender: Tiny, cores: int) -> None:
        self._contender = contender
        self._cores = cores

    def _note(self, what: str) -> None:
        with self._contender.diary.open("a", encoding="utf-8") as diary:
            diary.write(f"{self._contender.name} {what} {os.getpid()}\n")

    def warm(self) -> None:
        self._note("warm")

    def run(self, output: Path) -> Figures:
        assert not list(output.iterdir()), "the folder is empty"
        if self._contender.fails:
            raise ValueError("no luck today")
        if self._contender.dies:
            os._exit(3)
        self._note("run")
        self._hoard = b""
        self._hoard = b"x" * (self._contender.hoards_mb << 20)
        write_numbers(output, self._contender.rows, self._contender.parquet)
        return {"rows": len(self._contender.rows), "cores": self._cores}

    def close(self) -> None:
        self._note("close")


def write_numbers(output: Path, rows: tuple[int, ...], parquet: bool) -> None:
    if not parquet:  # most tests can do without the seconds of importing Arrow in every process
        (output / "numbers.txt").write_text("\n".join(map(str, rows)), encoding="utf-8")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": pa.array(rows, pa.int64())}), output / "numbers.parquet")


@dataclass
class SameCount:
    """Those with three rows are right."""

    looked: list[str] = field(default_factory=list)

    def look(self, outcome: Outcome, output: Path) -> None:
        self.looked.append(outcome.contender)
        outcome.rows = len((output / "numbers.txt").read_text(encoding="utf-8").splitlines())

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            outcome.checked = outcome.rows == 3


@dataclass(frozen=True)
class TinyExperiment:
    contenders: tuple[Contender, ...]
    check: Check = field(default_factory=SameCount)
    alternating: bool = True
    name: str = "tiny"
    title: str = "nearly nothing"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        tell("nothing to prepare")
        return Prepared(
            self.contenders,
            self.check,
            ("three numbers",),
            absent={"abacus": "has no plug"},
            alternating=self.alternating,
        )
