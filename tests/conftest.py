"""What all tests share: one Spark session per process, and the option that rewrites golden files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite the sections of tests/golden with what comes out now; then read the diff",
    )


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process; two cores, as small as possible."""
    from terascope.spark.session import open_session

    session = open_session("local[2]", "terascope-tests", {"spark.driver.memory": "1g"})
    yield session
    session.stop()
