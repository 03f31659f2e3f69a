from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from terascope.spark.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process; two cores, as small as possible."""
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": quick_start,
        "spark.sql.shuffle.partitions": "2",
    }
    session = open_session("local[2]", "terascope-tests", settings)
    yield session
    session.stop()
