"""What a runner finds when it opens a checkpoint and an output; nothing is run here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from terascope.diagnostic import OutputError
from terascope.execute.results.parts import Part
from terascope.physical.stream.plan import StreamPlan
from terascope.session import Session
from terascope.spark.stream.runner import Runner, StreamRun
from terascope.streams import planned_stream
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast("SparkSession", None)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> StreamPlan:
    trace = tmp_path_factory.mktemp("traffic") / "trace.pcap"
    generate(Profile(packets=100, duration=10.0, seed=1, hosts=20), trace)
    with Session() as session:
        session.source(f"eth0=pcap:{trace}")
        queries = session.query("QUERY all: SELECT time, srcIP FROM TCP;")
        return planned_stream(queries.compiled)


def planned_batches(checkpoint: Path, *numbers: int) -> None:
    """As Spark notes them, with what it leaves beside them."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (checkpoint / "offsets" / str(number)).touch()
        (checkpoint / "offsets" / f".{number}.crc").touch()


def delivered_batch(runner: Runner, number: int) -> Path:
    result = runner.results["all"]
    path = result.folder / f"part-{number:032x}.parquet"
    path.touch()
    assert result.deliver(number, [Part("all", path, 1)]) == 1
    return path


def test_rows_of_another_checkpoint_are_refused(plan: StreamPlan, tmp_path: Path) -> None:
    first = Runner(NO_SPARK, plan, StreamRun(tmp_path / "first", tmp_path / "out"))
    rows = delivered_batch(first, 0)
    first.close()
    other = StreamRun(tmp_path / "other", tmp_path / "out")
    orphan = tmp_path / "out" / "all" / f"part-{99:032x}.parquet"
    orphan.touch()
    with pytest.raises(OutputError, match=r"has rows of batch 0, of which .*other' knows nothing"):
        Runner(NO_SPARK, plan, other)
    assert (tmp_path / "out" / "all" / f"part-{99:032x}.parquet").exists(), (
        "it may be somebody's, at work"
    )
    assert rows.exists()


def test_a_batch_that_was_delivered_and_never_done_is_known(
    plan: StreamPlan, tmp_path: Path
) -> None:
    settings = StreamRun(tmp_path / "ck", tmp_path / "out")
    first = Runner(NO_SPARK, plan, settings)
    planned_batches(tmp_path / "ck", 0)
    rows = delivered_batch(first, 0)
    first.close()
    orphan = tmp_path / "out" / "all" / f"part-{99:032x}.parquet"
    orphan.touch()
    again = Runner(NO_SPARK, plan, settings)
    again.close()
    assert again.results["all"].has(0)
    assert rows.exists()
    assert not orphan.exists()
