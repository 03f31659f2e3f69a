"""`shapes`: how time grows with the shape of the data and of the set.

Contenders are the axes (axes.py): the number of epochs, packets, groups, queries, columns, list
values, slices, files, micro-batches and seconds of silence, each at three sizes. What is measured
is processor time: of a batch in one process without Spark, and of a stream with all processes of
Spark. An axis is right when time grows with a power of at most 1.15 of its size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.experiment import Column, Figures, Outcome, Prepared, Settings, Tell
from bench.shapes.axes import AXES, MOST_POWER, Axis, measured, power
from bench.shapes.captures import missing

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

RUNS = 3
STREAM_RUNS = 1


@dataclass(frozen=True)
class AxisContender:
    """One axis, in a process of its own."""

    name: str
    folder: Path
    sizes: tuple[int, ...]
    runs: int = RUNS
    needs: tuple[str, ...] = ()

    @property
    def axis(self) -> Axis:
        return next(axis for axis in AXES if axis.name == self.name)

    def start(self, cores: int) -> AxisRunning:
        """A batch has one process, whatever the cores."""
        if not self.axis.is_stream:
            return AxisRunning(self, None)
        from terascope.spark.session import open_session, stream_settings

        master = f"local[{cores}]"
        return AxisRunning(self, open_session(master, settings=stream_settings(master)))


@dataclass(frozen=True)
class AxisRunning:
    of: AxisContender
    spark: SparkSession | None

    def warm(self) -> None:
        """Every size is run once before it counts."""

    def run(self, output: Path) -> Figures:
        del output
        seconds = measured(self.of.axis, self.of.sizes, self.of.folder, self.of.runs, self.spark)
        figures = dict(zip(("small", "middle", "large"), seconds, strict=True))
        return {**figures, "power": power(self.of.sizes, seconds)}

    def close(self) -> None:
        if self.spark is not None:
            self.spark.stop()


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
                settings.data / "shapes" / re.sub(r"\W+", "-", axis.name),
                axis.small if settings.quick else axis.sizes,
                STREAM_RUNS if axis.is_stream else RUNS,
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
