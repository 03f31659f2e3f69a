"""When a set that failed is started again, and when that would be of no use."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

import terascope.running as running_sets
from terascope.diagnostic import SparkLost
from terascope.operate.reporting import Reporter
from terascope.operate.source_report import RunFacts
from terascope.operate.status import RunStatus
from terascope.running import RunningSet

if TYPE_CHECKING:
    from terascope.spark.stream.runner import Runner
    from terascope.streaming.heartbeat import BatchReport


class Failing:
    """A runner that fails so many times, and then is over."""

    def __init__(self, failures: int, has_spark: bool, foreign: bool = False) -> None:
        """`foreign`: Spark is gone, and was not started here."""
        self.failures, self.has_spark, self.foreign = failures, has_spark, foreign
        self.starts = self.closed = 0
        self.ended = False
        self.pipeline = SimpleNamespace(state=SimpleNamespace(batch=-1))
        self.plan = None

    def make(self, watch: Callable[[BatchReport], None]) -> Runner:
        return cast("Runner", self)

    def prepare(self, tell: object) -> None:
        return None

    def start(self) -> None:
        self.starts += 1

    def wait(self, seconds: float) -> bool:
        if self.starts <= self.failures:
            raise RuntimeError("no more")
        return True

    def stop(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed += 1

    def abandon(self) -> None:
        self.close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_sets, "FIRST_WAIT", 0.0)


def supervised(runner: Failing, said: list[str] | None = None) -> RunningSet:
    facts = RunFacts(RunStatus(1, 0.0, "set.gsql", "state", None))
    reporter = SimpleNamespace(follow=lambda plan, state: None, facts=facts)
    lines = [] if said is None else said
    lost = SparkLost("not ours") if runner.foreign else None
    return RunningSet(
        runner.make, cast(Reporter, reporter), lines.append, lost=lambda: lost
    ).start()


def test_a_set_that_fails_is_started_again() -> None:
    runner = Failing(failures=3, has_spark=True)
    assert supervised(runner).wait(60)
    assert runner.starts == runner.closed == 4


def test_not_for_ever() -> None:
    runner = Failing(failures=100, has_spark=True)
    with pytest.raises(RuntimeError, match="no more"):
        supervised(runner).wait(60)
    assert runner.starts == running_sets.MOST_RESTARTS + 1


def test_nor_without_a_spark_to_run_on() -> None:
    runner = Failing(failures=100, has_spark=False, foreign=True)
    with pytest.raises(SparkLost, match="not ours"):
        supervised(runner).wait(60)
    assert runner.starts == runner.closed == 1


def test_a_jvm_that_is_gone_is_named() -> None:
    said: list[str] = []
    runner = Failing(failures=1, has_spark=False)
    assert supervised(runner, said).wait(60)
    assert runner.starts == 2
    assert "Spark's JVM has ended" in said[0]
