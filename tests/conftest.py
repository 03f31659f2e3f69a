"""What all tests share: their order, one Spark session per process, and `--bless` to rewrite golden
files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.balance import Recorder, load_recorded, longest_first
from tests.settings import SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""Many small queries: code that is compiled well pays only in long runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the sections of tests/golden with what comes out now; then read the diff",
    )
    parser.addoption(
        "--record-durations",
        action="store_true",
        help="write the seconds of each test file to tests/durations.json",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-durations"):
        config.pluginmanager.register(Recorder(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first; tests of the benches only where `-m` names them, long tests whose
    subject other tests have, too, only in `make soak`.
    """
    left_out = [] if "bench" in config.option.markexpr else ["bench"]
    left_out += [] if SOAK else ["soak"]
    later = {item for item in items if any(map(item.get_closest_marker, left_out))}
    config.hook.pytest_deselected(items=[item for item in items if item in later])
    items[:] = [item for item in items if item not in later]
    longest_first(items, load_recorded())


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs are entered in a folder of the tests, not in that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process; two cores, as small as possible."""
    from terascope.spark.session import open_session
    from tests.agreement import INTERPRETED

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.sql.shuffle.partitions": "2",
        **INTERPRETED,
    }
    session = open_session("local[2]", "terascope-tests", settings)
    yield session
    session.stop()
