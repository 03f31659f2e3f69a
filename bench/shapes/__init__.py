"""`shapes`: how time grows with the shape of the data and of the set.

Contenders are the axes (axes.py): the number of epochs, packets, groups, queries, columns, list
values, slices, files and seconds of silence, each at three sizes. What is measured is processor
time without Spark. An axis is right when time grows with a power of at most 1.15 of its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.experiment import Column, Figures, Outcome, Prepared, Settings, Tell
from bench.shapes.axes import AXES, MOST_POWER, measured, power
from bench.shapes.captures import missing

RUNS = 3


@dataclass(frozen=True)
class AxisContender:
    """One axis, in a process of its own."""

    name: str
    folder: Path
    sizes: tuple[int, ...]
    runs: int = RUNS
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> AxisRunning:
        del cores  # the work of one process
        return AxisRunning(self)


@dataclass(frozen=True)
class AxisRunning:
    of: AxisContender

    def warm(self) -> None:
        """Every size is run once before it counts."""

    def run(self, output: Path) -> Figures:
        del output
        axis = next(axis for axis in AXES if axis.name == self.of.name)
        seconds = measured(axis, self.of.sizes, self.of.folder, self.of.runs)
        figures = dict(zip(("small", "middle", "large"), seconds, strict=True))
        return {**figures, "power": power(self.of.sizes, seconds)}

    def close(self) -> None:
        pass


class Powers:
    """No axis grows faster than it may."""

    def look(self, outcome: Outcome, output: Path) -> None:
        del output
        found = outcome.figure("power")
        outcome.checked = found is not None and found <= MOST_POWER
        if not outcome.checked:
            outcome.remark = f"time grows with a power above {MOST_POWER}"

    def judge(self, outcomes: list[Outcome]) -> None:
        """Each has been judged by itself."""


class Shapes:
    name = "shapes"
    title = "time against the number of epochs, groups, queries, files, columns, and idle time"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        del tell
        reason = missing()
        taking = [axis for axis in AXES if not (axis.real and reason)]
        contenders = [
            AxisContender(
                axis.name,
                settings.data / "shapes" / axis.name.replace(" ", "-"),
                axis.small if settings.quick else axis.sizes,
            )
            for axis in taking
        ]
        return Prepared(
            contenders=tuple(contenders),
            check=Powers(),
            about=tuple(f"{axis.name}: {axis.sizes}" for axis in taking),
            absent={axis.name: reason for axis in AXES if axis.real and reason},
            columns=(
                Column("small", "small s", "{:.3f}"),
                Column("middle", "middle s", "{:.3f}"),
                Column("large", "large s", "{:.3f}"),
                Column("power", "power", "{:.2f}"),
            ),
            runs=0,
            alternating=False,
        )


EXPERIMENT = Shapes()
