"""What an experiment is: data, and the contenders that are measured on it.

To add one: a module with an object of the form of `Experiment`, and its name in bench/registry.py.

    class MyExperiment:
        name, title = "mine", "what it shows, in one line"
        def prepare(self, settings, tell): ...make the data, or find it in settings.data...
            return Prepared(contenders=(Mine("a"), Mine("b")), check=all_rows_equal)

A contender is data that can be pickled; `start` is called in a process of its own, and `run` is
what is timed:

    @dataclass(frozen=True)
    class Mine:
        name: str
        needs: tuple[str, ...] = ()
        def start(self, cores): return MyRunning(...)

    class MyRunning:
        def warm(self): ...                       # not timed
        def run(self, output): return {"rows": 1} # timed; figures for the table
        def close(self): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Protocol

from rich.console import RenderableType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Figures = Mapping[str, float]
"""What a run says about itself, beside its time: "rows" and whatever the experiment defines."""

Tell = Callable[[str], None]
"""Progress, a line at a time."""


DATA_VERSION = 1
"""Counted up when experiments or generators make other data of the same name."""


class BenchError(Exception):
    """An experiment that cannot be run: one clear line."""


@dataclass(frozen=True)
class Settings:
    """How an experiment is to be run."""

    scale: float = 1.0
    seed: int = 1
    cores: int = 2
    data: Path = Path("bench-data")
    """Folder for data that are made once for each scale and seed."""
    quick: bool = False
    """The shortest form that still shows something: fewer points, shorter streams."""
    minutes: float | None = None
    """How long experiments last that watch a stream; None: as long as they think fit."""
    seeds: int = 50
    """How many random runs, for an experiment that has such."""

    def count(self, at_scale_one: int) -> int:
        """So many records, packets, ... at this scale."""
        return max(1, round(at_scale_one * self.scale))


class Running(Protocol):
    """A contender in its process, ready to be run again and again."""

    def warm(self) -> None:
        """Do once, on little data, what a first run would do once; not timed."""
        ...

    def run(self, output: Path) -> Figures:
        """The measured work; results, if any, are files in `output`, an empty folder."""
        ...

    def close(self) -> None: ...


class Contender(Protocol):
    """What is measured. Pure data: it travels to a process of its own."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Packages without which it is left out."""
        ...

    def start(self, cores: int) -> Running:
        """Called in that process; whatever is imported here stays there."""
        ...


@dataclass
class Outcome:
    """What was measured of one contender."""

    contender: str
    seconds: list[float] = field(default_factory=list)
    figures: list[Figures] = field(default_factory=list)
    """One for each counted run, as `seconds`."""
    peak_mb: float | None = None
    """Of all its processes together, in counted runs."""
    worker_mb: float | None = None
    """Of the largest process below the contender's own that is no JVM: a worker of Spark."""
    rows: int | None = None
    checked: bool = False
    remark: str = ""
    """Why it was left out or failed, or in what its answers differ."""
    series: Mapping[str, list[float]] = field(default_factory=dict)
    """What was seen over time in the first counted run, if anything was."""

    @property
    def median(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    def figure(self, name: str) -> float | None:
        """The median of a figure over the runs."""
        found = [figures[name] for figures in self.figures if name in figures]
        return median(found) if found else None


class Check(Protocol):
    """Compares the results of contenders with one another, or with something known."""

    def look(self, outcome: Outcome, output: Path) -> None:
        """Called after the first counted run of each contender, before its files are removed."""
        ...

    def judge(self, outcomes: list[Outcome]) -> None:
        """Called at the end: sets `checked`, and `remark` where something differs."""
        ...


@dataclass(frozen=True)
class Column:
    """A further column of the table: a figure of the runs."""

    figure: str
    title: str
    form: str = "{:,.0f}"


@dataclass(frozen=True)
class Prepared:
    """An experiment with its data, ready to be run."""

    contenders: tuple[Contender, ...]
    check: Check
    about: tuple[str, ...] = ()
    """Lines about the data, for the header."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Contenders that cannot take part, and why."""
    columns: tuple[Column, ...] = ()
    inputs: tuple[Path, ...] = ()
    """Files that are read once before the runs, so that all contenders find them in memory."""
    runs: int | None = None
    """Counted runs, unless the user asks for others; None: three. 0: a single one, and no full run
    before it that does not count, for runs that take as long as a stream does."""
    alternating: bool = True
    """Whether contenders take turns; otherwise one is finished, and its process ended, before the
    next begins: for a sweep over sizes, where memory is the question."""
    conclude: Callable[[list[Outcome]], list[RenderableType]] | None = None
    """Lines or tables of rich below the table, from what was measured."""
    draw: Callable[[Figure, list[Outcome]], None] | None = None
    """The picture; by default a bar for each contender."""


class Experiment(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What it shows, in one line."""
        ...

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        """Make the data, unless they are there, and say who competes.

        Raises:
            BenchError: it cannot be run here.
        """
        ...
