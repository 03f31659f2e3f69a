"""What all tests share: one Spark session per process, and `--bless` to rewrite golden files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The Spark tests of a file stay together; those of other files may run in another process,
    with a session of its own. In one process they would take longer than all other tests.
    """
    for item in items:
        group = item.get_closest_marker("xdist_group")
        if group is not None and group.args == ("spark",):
            item.add_marker(pytest.mark.xdist_group(f"spark {item.path.name}"), append=False)


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

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.sql.shuffle.partitions": "2",
    }
    session = open_session("local[2]", "terascope-tests", settings)
    yield session
    session.stop()
