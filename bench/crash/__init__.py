"""`crash`: a stream whose processes are killed, again and again, and whose rows are counted.

For each seed a stream is started as a process of its own. At a random moment somebody is killed
(`kill -9`): the Python process, everything, the JVM, a worker; or the process kills itself at a
point where that would hurt most. It is started again from its checkpoint, perhaps killed again,
until it is done. Every row of every query must be there once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from bench.crash.killing import ROOT, VICTIMS, Attempt, Story, Victim, one_run
from bench.crash.queries import make_data
from bench.crash.rows import Rows, load_rows
from bench.crash.run import say
from bench.experiment import (
    BenchError,
    Column,
    Contender,
    Figures,
    Outcome,
    Prepared,
    Running,
    Settings,
    Tell,
)

STORIES = "stories.jsonl"


@dataclass(frozen=True)
class Killed:
    """One kind of victim, and the seeds of its runs."""

    victim: Victim
    seeds: tuple[int, ...]
    data: Path
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.victim

    def start(self, cores: int) -> Running:
        del cores  # who lives and who dies does not depend on them
        return Killing(self)


class Killing:
    """The runs of one victim, one after the other."""

    def __init__(self, killed: Killed) -> None:
        self._killed = killed
        self._wanted: Rows = load_rows(killed.data / "rows.json")
        self._seconds = float((killed.data / "seconds.txt").read_text("utf-8"))

    def warm(self) -> None:
        return None

    def run(self, output: Path) -> Figures:
        stories = []
        for seed in self._killed.seeds:
            folder = output / str(seed)
            story = one_run(
                seed, self._killed.victim, self._killed.data, folder, self._wanted, self._seconds
            )
            stories.append(story)
            say(str(story))
            with (output / STORIES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(story)) + "\n")
            if not story.wrong:
                shutil.rmtree(folder)
        return {
            "runs": len(stories),
            "kills": sum(len(story.kills) for story in stories),
            "wrong": sum(bool(story.wrong) for story in stories),
        }

    def close(self) -> None:
        return None


@dataclass
class EveryRowOnce:
    """Reads the stories of all victims."""

    stories: dict[str, list[Story]] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        lines = (output / STORIES).read_text("utf-8").splitlines()
        known: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.stories[outcome.contender] = [Story(**one) for one in known]

    def judge(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            told = self.stories.get(outcome.contender, [])
            wrong = [story for story in told if story.wrong]
            outcome.checked = any(story.kills for story in told) and not wrong
            if wrong:
                outcome.remark = str(wrong[0])

    def conclude(self, outcomes: list[Outcome]) -> list[RenderableType]:
        """All that went wrong; or that nothing did."""
        del outcomes
        told = [story for stories in self.stories.values() for story in stories]
        wrong = [story for story in told if story.wrong]
        kills = sum(len(story.kills) for story in told)
        lost = sum(len(story.lost) for story in told)
        good = (
            f"{len(told) - len(wrong)} of {len(told)} runs, {kills} times killed and {lost} times"
            " without their last commit, have every row once"
        )
        return [good, *(str(story) for story in wrong)]


@dataclass(frozen=True)
class Crash:
    name: str = "crash"
    title: str = "streams that are killed and go on: every row is there once"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        data = settings.data / "crash"
        make_data(data)
        if not (data / "seconds.txt").exists():
            tell("the rows of a batch, and how long a stream takes that nobody kills")
            prepare_runs(data)
        first = settings.seed
        seeds = range(first, first + settings.seeds)
        contenders: tuple[Contender, ...] = tuple(
            Killed(victim, tuple(seeds[place :: len(VICTIMS)]), data)
            for place, victim in enumerate(VICTIMS)
        )
        check = EveryRowOnce()
        return Prepared(
            contenders,
            check,
            (f"{settings.seeds} runs, each killed at least once unless it is faster",),
            columns=(Column("runs", "runs"), Column("kills", "kills"), Column("wrong", "wrong")),
            alternating=False,
            runs=0,
            conclude=check.conclude,
        )


def prepare_runs(data: Path) -> None:
    """`rows.json`: what a batch gives; `seconds.txt`: how long a stream takes once it has begun."""
    command = [sys.executable, "-m", "bench.crash.run", str(data), str(data / "rows.json"), "batch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the batch failed: {done.stderr.strip().splitlines()[-1:]}")
    folder = data / "calm"
    shutil.rmtree(folder, ignore_errors=True)
    with Attempt(data, folder, "csv") as calm:
        calm.running.wait()
        began = time.monotonic()
        if calm.code():
            raise BenchError(f"a stream that nobody killed failed; see {folder / 'log.txt'}")
    (data / "seconds.txt").write_text(str(time.monotonic() - began), "utf-8")
    shutil.rmtree(folder)


EXPERIMENT = Crash()
