"""Splits that follow a source, and die at a chosen moment.

Run as a program it splits what is there and kills itself, as kill -9 would, when it reaches a point
for the N-th time: `python followed_splits.py KIND:LOCATION BY COUNT DIR POINT:N`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from terascope.connectors.live import Links
from terascope.connectors.registry import parse_interface
from terascope.partitioning.sets import parse_set
from terascope.splitting import follow as follow_module
from terascope.splitting import outputs, tables
from terascope.splitting.follow import FollowedSplit, follow, read_plan
from terascope.splitting.rule import SplitRule
from terascope.splitting.splitter import SourceSplitter, SplitSettings


class Died(BaseException):
    """The process is gone: nothing that stands behind runs."""


def die() -> None:
    raise Died


def settings_for(
    source: str, by: str | None, count: int, folder: Path, edge: int = 0
) -> SplitSettings:
    interface = parse_interface(source)
    plan = read_plan(folder)
    columns = interface.columns if plan is None else plan.columns
    rule = SplitRule.even(None if by is None else parse_set(by, columns), count)
    return SplitSettings(interface, columns, rule, folder, edge=edge)


def split_on(settings: SplitSettings) -> FollowedSplit:
    """Split everything that is there now."""
    made = FollowedSplit(settings)
    follow(made, lambda seconds: seconds > 0)  # asked to stop when there is nothing to do
    return made


POINTS: Final = ("planned", "committed", "half written", "written", "published", "forced", "listed")
"""The points, in about the order in which a batch passes them."""


@contextmanager
def dying(point: str, times: int, death: Callable[[], None] = die) -> Iterator[None]:
    """Die when a point is reached for the N-th time."""
    reached = 0

    def here() -> None:
        nonlocal reached
        reached += 1
        if reached == times:
            death()

    def after(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            found = function(*args, **more)
            here()
            return found

        return call

    def half_written(file: int, content: memoryview, place: int) -> Iterator[int]:
        done = os.pwrite(file, content[: len(content) // 2], place)
        here()
        yield done
        yield os.pwrite(file, content[done:], place + done)

    places: dict[str, list[tuple[object, str, Callable[..., Any]]]] = {
        "planned": [(follow_module, "write_plan", after(follow_module.write_plan))],
        "committed": [(Links, "commit", after(Links.commit))],
        "half written": [
            (outputs, "put_at", half_written),
            (tables, "put_at", half_written),
        ],
        "written": [(outputs.Outputs, "_write", after(outputs.Outputs._write))],
        "published": [(tables.AppendedFile, "publish", after(tables.AppendedFile.publish))],
        "forced": [(outputs.Outputs, "force", after(outputs.Outputs.force))],
        "listed": [
            (
                SourceSplitter,
                "write_layout",
                after(SourceSplitter.write_layout),
            )
        ],
    }
    with ExitStack() as stack:
        for owner, name, replacement in places[point]:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield


def main(source: str, by: str, count: str, folder: str, point: str) -> None:
    name, _, times = point.rpartition(":")
    with dying(name, int(times), lambda: os.kill(os.getpid(), signal.SIGKILL)):
        split_on(settings_for(source, by, int(count), Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
