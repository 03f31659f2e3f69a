"""Killing a run, starting it again, killing it again, until it is done.

In: a seed. Out: `Story`, what was done to one run and whether its rows are right. Everything that
is random follows from the seed, but for where in its work a process is when its time has come.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from bench.crash.rows import Rows, differences
from bench.crash.run import BATCH, FORMS, RUNNING, Form, delivered
from bench.memory import JVM, Process, process_tree
from terascope.streaming.state.crash import POINTS, VARIABLE

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS: Final = 600.0
MOST_KILLS: Final = 4
BATCHES: Final = 4
"""Of a run, at least."""
AGAIN: Final = 0.5
"""How likely a run that was started again is killed again."""
REPLAY: Final = 0.4
"""How likely the newest commit of Spark is lost, too, so that a whole batch is run again."""

Victim: TypeAlias = Literal["driver", "all", "jvm", "worker", "workers", "itself"]
"""The Python process alone; it and all below it; the JVM alone; one of Spark's Python processes;
all of these; whoever comes by a point of terascope.streaming.state.crash.
"""
SURVIVED: Final = ("worker", "workers")
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)


@dataclass
class Story:
    """What happened to one run."""

    seed: int
    victim: Victim
    form: Form
    kills: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Commits of Spark that were taken away, so that a whole batch is run again."""
    starts: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "; ".join(self.wrong) or "every row once"
        kills = ", ".join([*self.kills, *self.lost]) or "nobody killed"
        return f"seed {self.seed}, {self.victim}, {self.form}: {kills}: {verdict}"


class Attempt:
    """The program, once."""

    def __init__(
        self, data: Path, folder: Path, form: Form, environment: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, "-m", "bench.crash.run", str(data), str(folder), form]
        folder.mkdir(parents=True, exist_ok=True)
        known = {key: value for key, value in os.environ.items() if key != VARIABLE}
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**known, "PYTHONPATH": str(ROOT), **(environment or {})},
            )  # fmt: skip
        self.said: list[str] = []
        self.running = threading.Event()
        self._news = threading.Condition()
        self._silent = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.said.append(line.rstrip())
                if line.strip() == RUNNING:
                    self.running.set()
                with self._news:
                    self._news.notify_all()
        self.running.set()
        with self._news:
            self._silent = True
            self._news.notify_all()

    @property
    def batches(self) -> int:
        """How many it has told of."""
        return sum(line.startswith(BATCH) for line in self.said)

    def after(self, batches: int) -> bool:
        """Wait until so many are done; whether they are, for it may be over before."""
        with self._news:
            self._news.wait_for(lambda: self._silent or self.batches >= batches, PATIENCE_SECONDS)
        return self.batches >= batches

    def wait(self, seconds: float) -> bool:
        """Whether it is over within that time; what it has started need not be."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def code(self) -> int:
        """Its exit code; nobody may take far too long.

        Raises:
            TimeoutError: it did.
        """
        if not self.wait(PATIENCE_SECONDS):
            raise TimeoutError(f"not done after {PATIENCE_SECONDS:g} s")
        return self.process.wait()

    def reaches(self, chance: random.Random, seconds: float) -> bool:
        """Wait for a random moment of a random batch; whether it came, for the run may be over
        before. A batch lasts as long as the one before it, and the first one so many seconds.
        """
        if not self.after(chance.randrange(BATCHES)):
            return False
        told = [line for line in self.said if line.startswith(BATCH)]
        if told:
            seconds = float(told[-1].partition(": ")[2].partition(" s")[0])
        return not self.wait(chance.uniform(0, seconds))

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *_: object) -> None:
        """Nobody stays behind; whoever is gone already may have given its number to another."""
        if self.process.poll() is None:
            kill(process_tree(self.process.pid))
            self.process.wait()

    def kill(self, victim: Victim, chance: random.Random) -> str | None:
        """Who was killed; None: there was nobody."""
        tree = process_tree(self.process.pid)
        chosen: Sequence[Process]
        match victim:
            case "driver":
                chosen = tree[:1]
            case "all":
                chosen = tree
            case "jvm":
                chosen = [p for p in tree if p.program == JVM]
            case _:
                below = [p for p in tree[1:] if p.program.startswith("python")]
                chosen = [chance.choice(below)] if below and victim == "worker" else below
        kill(chosen)
        return None if not chosen else f"{victim} after {len(self.said)} lines"


def kill(processes: Sequence[Process]) -> None:
    for process in processes:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it was faster
            continue


def one_run(
    seed: int, victim: Victim, data: Path, folder: Path, wanted: Rows, seconds: float
) -> Story:
    """A run that is killed, started again, and so on until it is done; if it is not, that takes so
    many seconds.
    """
    chance = random.Random(f"{seed} {victim}")
    story = Story(seed, victim, chance.choice(FORMS))
    while True:
        may_kill = len(story.kills) < MOST_KILLS and (not story.kills or chance.random() < AGAIN)
        point = crash_point(chance)
        wish = {VARIABLE: point} if victim == "itself" and may_kill else {}
        story.starts += 1
        with Attempt(data, folder, story.form, wish) as attempt:
            attempt.running.wait(PATIENCE_SECONDS)
            if may_kill and not wish and attempt.reaches(chance, seconds / BATCHES):
                killed = attempt.kill(victim, chance)
                if killed is not None:
                    story.kills.append(killed)
            code = attempt.code()
        if code == 0:
            break
        if wish and code == -signal.SIGKILL:
            story.kills.append(f"at {point}")
        elif not may_kill or victim in SURVIVED:  # a worker's death is nothing a set dies of
            story.wrong.append(f"ended with {code}: {last_words(folder)}")
            return story
        if chance.random() < REPLAY and (lost := lose_commit(folder / "checkpoint")):
            story.lost.append(f"lost commit {lost}")
    story.wrong += [str(one) for one in differences(wanted, delivered(folder, story.form))]
    return story


def crash_point(chance: random.Random) -> str:
    """A point, and the how manieth time it is reached: a manifest once for every query."""
    point = chance.choice(POINTS)
    return f"{point}:{chance.randint(1, 28 if point == 'manifest' else 4)}"


def lose_commit(checkpoint: Path) -> str | None:
    """Remove Spark's note that the newest batch is done; its number."""
    commits = [p for p in (checkpoint / "commits").glob("[0-9]*") if p.name.isdigit()]
    newest = max(commits, key=lambda p: int(p.name), default=None)
    if newest is None:
        return None
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    return newest.name


def last_words(folder: Path) -> str:
    lines = (folder / "log.txt").read_text("utf-8", errors="replace").split("\n")
    return " / ".join([line.strip() for line in lines if line.strip()][-3:])
