"""The order of the test files: the longest first, so that all processes end at about the same time.

In: tests/durations.json, the seconds of each test file, recorded earlier. Out: the files in falling
order of these seconds. A process of pytest-xdist takes the next file whenever it is done with one
(`--dist=loadfile`): a file's fixtures are set up once, and its kernels compiled once.

    make durations        # runs all tests and writes the seconds of each file down

Seconds are those of the clock, since some tests wait for processes they have killed: record them on
a quiet machine.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parent
RECORDED: Final = ROOT / "durations.json"
OUTPUT: Final = "seconds_of_files"
"""The key under which a process of xdist sends its seconds to the one that started it."""
UNKNOWN: Final = 5.0
"""Seconds of a file that was not recorded yet."""


def longest_first(items: list[pytest.Item], recorded: Mapping[str, float]) -> None:
    """Order the tests of different files; those of one file stay as they are."""
    files = {file_of(item): place for place, item in enumerate(items)}

    def place(item: pytest.Item) -> tuple[float, int]:
        file = file_of(item)
        return -recorded.get(file, UNKNOWN), files[file]

    items.sort(key=place)


def file_of(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()


def load_recorded() -> dict[str, float]:
    recorded: dict[str, float] = json.loads(RECORDED.read_text("utf-8"))
    return recorded


class Recorder:
    """Sums the seconds of each test file; the process that was started by hand writes
    them down.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = perf_counter()
        try:
            return (yield)
        finally:
            self._seconds[file_of(item)] += perf_counter() - before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for file, seconds in node.workeroutput[OUTPUT].items():
            self._seconds[file] += seconds

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[OUTPUT] = dict(self._seconds)
            return
        falling = sorted(self._seconds.items(), key=lambda pair: -pair[1])
        known = {file: round(seconds, 1) for file, seconds in falling}
        RECORDED.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
