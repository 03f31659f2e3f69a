"""The operators of a Job: listed behind what they read, and refused where they are not sane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.physical.operators import Operator
from terascope.physical.planner import RULES
from terascope.physical.rules.check_job import check_job, mistakes_of
from terascope.physical.settings import Destination
from terascope.pipeline import Bindings, compile_set
from tests.cli.calls import small_trace

ROOT = Path(__file__).parents[2]
TEXT = """
QUERY flows: SELECT tb, srcIP, COUNT(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP;
QUERY top: SELECT tb, srcIP, cnt FROM flows WHERE cnt > 2 ORDER BY cnt DESC LIMIT 3;
QUERY over: SELECT tb, MAX(cnt) AS most FROM flows GROUP BY tb;
QUERY again: SELECT a.tb, a.srcIP FROM flows a JOIN flows b
ON a.tb = b.tb + 1 AND a.srcIP = b.srcIP;
QUERY web: SELECT time, srcIP FROM TCP WHERE destPort = 80;
"""


def operators(destination: Destination, tmp_path: Path) -> tuple[Operator, ...]:
    small_trace(tmp_path / "a.pcap", 100)
    interfaces = {"eth0": Interface("eth0", "pcap", str(tmp_path / "a.pcap"))}
    return compile_set(Source(TEXT), Bindings(interfaces)).job(destination=destination).operators


def by_name(listed: tuple[Operator, ...]) -> dict[str, Operator]:
    return {operator.name: operator for operator in listed}


def test_tasks_finish_what_they_can(tmp_path: Path) -> None:
    found = by_name(operators("files", tmp_path))
    assert found["group flows_low"].places == ("task",)
    assert found["pipeline flows"].inputs == ("merge flows_low",)
    assert found["rank top"].inputs == ("pipeline top",)
    assert found["regroup over"].places == ("task", "merge")
    assert found["leftovers again"].places == ("driver", "merge", "spark")
    assert found["write web"].places == ("task",)
    assert not any("spark" in one.places for one in found.values() if "again" not in one.name)


def test_dataframes_are_left_to_spark(tmp_path: Path) -> None:
    found = by_name(operators("frames", tmp_path))
    assert all(one.places == ("spark",) for name, one in found.items() if name.startswith("write"))
    assert found["relation top"].inputs == ("relation flows",)


def shuffled(listed: tuple[Operator, ...]) -> tuple[Operator, ...]:
    return (*listed[1:], listed[0])


def doubled(listed: tuple[Operator, ...]) -> tuple[Operator, ...]:
    return (*listed, listed[-1])


def without_place(listed: tuple[Operator, ...]) -> tuple[Operator, ...]:
    return (*listed[:-1], replace(listed[-1], places=()))


def placed_before_its_input(listed: tuple[Operator, ...]) -> tuple[Operator, ...]:
    return tuple(
        replace(one, places=("task",)) if one.name == "write again" else one for one in listed
    )


def without_writer(listed: tuple[Operator, ...]) -> tuple[Operator, ...]:
    return tuple(one for one in listed if one.name != "write web")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (shuffled, "which does not come before it"),
        (doubled, "two operators are called"),
        (without_place, "has no place"),
        (placed_before_its_input, "is placed before 'leftovers again'"),
        (without_writer, "nothing reads 'pipeline web'"),
    ],
)
def test_a_job_that_is_not_sane(
    change: Callable[[tuple[Operator, ...]], tuple[Operator, ...]], said: str, tmp_path: Path
) -> None:
    listed = operators("files", tmp_path)
    visible = ["flows", "top", "over", "again", "web"]
    assert list(mistakes_of(listed, visible)) == []
    assert any(said in mistake for mistake in mistakes_of(change(listed), visible))


def test_rules_are_verbs_in_files_of_their_name() -> None:
    folder = ROOT / "terascope" / "physical" / "rules"
    assert RULES[-1] is check_job
    assert all((folder / f"{rule.__name__}.py").exists() for rule in RULES)
