"""What must not be done again and again: collecting what stays, compiling what is the same."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import functions as F

from terascope.diagnostic import SourceError
from terascope.spark import mistakes
from terascope.spark.catalyst.frame import changing
from terascope.spark.mistakes import MarkedMistake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_stays_is_set_aside_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(mistakes, "_done", 0)
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))
    after = []
    for _ in range(9):
        with mistakes.working():
            pass
        after.append(len(done) // 2)
    assert after == [1, 2, 2, 3, 3, 3, 3, 4, 4]
    assert done[:2] == ["collected", "frozen"], "what is garbage is gone before"


def test_a_mistake_leaves_marked() -> None:
    with pytest.raises(MarkedMistake, match="no such file"), mistakes.working():
        raise SourceError("no such file")


@pytest.mark.spark
def test_another_bound_is_no_other_code(spark: SparkSession) -> None:
    jvm = cast(Any, spark)._jvm
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    rows = spark.range(0, 1000, 1, 2).select((F.col("id") * 3).alias("c0"))

    def between(low: int, high: int) -> int | None:
        due = (F.col("c0") >= changing(low)) & (F.col("c0") < changing(high))
        counted = rows.filter(due).groupBy(F.col("c0") % 2).count()
        found: int | None = counted.agg(F.sum("count")).collect()[0][0]
        return found

    assert between(30, 60) == 10
    before = compiled.getCount()
    assert before, "Spark generates code here"
    assert between(-7, 3000) == 1000
    assert between(2**62, 2**63 - 1) is None
    assert compiled.getCount() == before
