"""Runs an experiment: data, one process for each contender, runs in turn, answers compared.

In: an experiment and how to run it. Out: a `Report`. The rules of a run: every contender is warmed
on little data, then has one full run that does not count, then its counted runs, contender by
contender in turn, so that whatever else the machine does hits all alike. A contender whose first
full run takes longer than `patience` is not run again: that one counts. Experiments that watch a
stream for a time may ask for a single run, which counts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.experiment import (
    BenchError,
    Contender,
    Experiment,
    Outcome,
    Prepared,
    Settings,
    Tell,
)
from bench.machine import header, missing
from bench.worker import ContenderFailed, Worker

READ_BYTES = 16 << 20
RUNS = 3


@dataclass(frozen=True)
class Rules:
    """How often contenders are run, and which."""

    runs: int | None = None
    """None: as many as the experiment thinks fit."""
    patience: float = 60.0
    only: tuple[str, ...] = ()
    keep: bool = False
    """Leave the files the contenders wrote in the folder of the work."""


@dataclass(frozen=True)
class Report:
    """An experiment that was run."""

    experiment: str
    title: str
    scale: float
    header: list[str]
    prepared: Prepared
    outcomes: list[Outcome]
    absent: dict[str, str] = field(default_factory=dict)


def run_experiment(
    experiment: Experiment, settings: Settings, rules: Rules, work: Path, tell: Tell
) -> Report:
    """Prepare, measure, compare.

    Raises:
        BenchError: the data cannot be made, or nobody can take part.
    """
    prepared = experiment.prepare(settings, tell)
    contenders, absent = taking_part(prepared, rules.only)
    began = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    about = [*header(settings.cores), f"{began}, scale {settings.scale:g}, seed {settings.seed}"]
    read_once(prepared.inputs)
    folder = work / experiment.name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        asked = (rules.runs, prepared.runs, 1 if settings.quick else RUNS)
        runs = next(number for number in asked if number is not None)
        bench = Bench(prepared, settings.cores, rules, runs, folder, tell)
        groups = [contenders] if prepared.alternating else [[c] for c in contenders]
        for group in groups:
            bench.measure(group)
        outcomes = [bench.outcomes[c.name] for c in contenders]
        prepared.check.judge(outcomes)
    finally:
        if not rules.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return Report(
        experiment.name, experiment.title, settings.scale, about, prepared, outcomes, absent
    )


def taking_part(
    prepared: Prepared, only: Collection[str]
) -> tuple[list[Contender], dict[str, str]]:
    """Those asked for whose packages are there; the others with the reason.

    Raises:
        BenchError: a name that nobody has, or nobody is left.
    """
    known = [c.name for c in prepared.contenders] + list(prepared.absent)
    for name in only:
        if name not in known:
            raise BenchError(f"no contender '{name}'; there are {', '.join(known)}")
    absent = {n: why for n, why in prepared.absent.items() if not only or n in only}
    chosen = []
    for contender in prepared.contenders:
        if only and contender.name not in only:
            continue
        lacking = missing(contender.needs)
        if lacking:
            absent[contender.name] = f"not installed: {', '.join(lacking)}"
        else:
            chosen.append(contender)
    if not chosen:
        reasons = "; ".join(f"{name}: {why}" for name, why in absent.items())
        raise BenchError(f"no contender can take part ({reasons})")
    return chosen, absent


class Bench:
    """The measuring of one experiment."""

    def __init__(
        self, prepared: Prepared, cores: int, rules: Rules, runs: int, folder: Path, tell: Tell
    ) -> None:
        self._prepared = prepared
        self._cores = cores
        self._rules = rules
        self._folder = folder
        self._tell = tell
        self._runs = runs
        self.outcomes: dict[str, Outcome] = {}

    def measure(self, contenders: list[Contender]) -> None:
        """These contenders in turn, until each has its runs."""
        with ExitStack() as opened:
            playing: dict[str, Worker] = {}
            for contender in contenders:
                self.outcomes[contender.name] = Outcome(contender.name)
                with self._failing(contender.name, playing):
                    self._tell(f"{contender.name}: starting")
                    worker = Worker(contender, self._cores, self._folder / contender.name)
                    opened.callback(worker.close)
                    playing[contender.name] = worker
                    worker.warm()
            for number in range(self._runs + 1):
                for name in list(playing):
                    with self._failing(name, playing):
                        if self._turn(playing[name], number):
                            del playing[name]

    def _turn(self, worker: Worker, number: int) -> bool:
        """One run; whether the contender is finished."""
        name = worker.contender.name
        outcome = self.outcomes[name]
        measured = worker.run()
        impatient = number == 0 and measured.seconds > self._rules.patience
        counted = number > 0 or impatient or self._runs == 0
        if counted:
            outcome.seconds.append(measured.seconds)
            outcome.figures.append(measured.figures)
            outcome.peak_mb = larger(outcome.peak_mb, measured.peak_mb)
            outcome.worker_mb = larger(outcome.worker_mb, measured.worker_mb)
            if len(outcome.seconds) == 1:
                self._prepared.check.look(outcome, worker.output)
        if not self._rules.keep:
            worker.discard()  # or the next one would pay for bringing them to the disk
        what = f"run {number}" if number else "run that is counted at once" if counted else "warm"
        self._tell(f"{name}: {what}, {measured.seconds:.2f} s")
        return impatient or number == self._runs

    @contextmanager
    def _failing(self, name: str, playing: dict[str, Worker]) -> Iterator[None]:
        """A contender that fails leaves; the others go on."""
        try:
            yield
        except (ContenderFailed, BenchError) as problem:
            self.outcomes[name].remark = f"failed: {problem}"
            self._tell(f"{name}: failed: {problem}")
            playing.pop(name, None)


def larger(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None


def read_once(files: Collection[Path]) -> None:
    """Everybody reads from memory."""
    room = bytearray(READ_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(room):
                pass


def made_once(path: Path, make: Callable[[Path], object]) -> Path:
    """A file or folder of data: made beside its place and moved there when it is complete."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".part-{path.name}")
        if part.is_dir():
            shutil.rmtree(part)
        part.unlink(missing_ok=True)
        make(part)
        part.replace(path)
    return path
