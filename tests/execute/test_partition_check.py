"""Declared partitionings that the data contradict are errors which name the tuples and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import QueryError, Source, SourceError
from terascope.pipeline import Bindings, compile_set
from tests.agreement import Answers, local_answers
from tests.properties.engines import write_table
from tests.properties.partitioned_tables import as_partitions, divided
from tests.properties.random_sets import PROTOCOL, random_rows
from tests.settings import config_with

ONE = "QUERY q: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/10 AS tb, a;"
JOINED = f"""{ONE}
QUERY r: SELECT tb, a, count(*) AS n FROM right.S GROUP BY ts/10 AS tb, a;
QUERY j: SELECT x.tb, x.a, x.n, y.n AS m FROM q x JOIN r y ON x.tb = y.tb AND x.a = y.a;
"""
APART = f"""{ONE}
QUERY r: SELECT tb, a, count(*) AS n FROM right.S GROUP BY ts/10 AS tb, a;
"""
COUNT = 3


def partitions(
    folder: Path, name: str, by: str, order: Sequence[int] = range(COUNT), declared: bool = True,
    said: str = "",
) -> dict[str, Interface]:  # fmt: skip
    """The partitions of a table by a set, in some order; `said`: the set that is declared."""
    parts = divided(random_rows(len(name), 120), by, COUNT)
    paths = [folder / f"{name}-{number}.parquet" for number in range(COUNT)]
    for path, number in zip(paths, order, strict=True):
        write_table(path, parts[number])
    return as_partitions(Interface(name, "parquet", ""), paths, said or by, declared)


def answers(text: str, interfaces: dict[str, Interface]) -> Answers:
    bindings = Bindings(interfaces, config=config_with(kernels="numpy"))
    plan = compile_set(Source(PROTOCOL + text), bindings).optimized
    return local_answers(plan, interfaces, 2)


def test_a_value_in_two_partitions_is_named(tmp_path: Path) -> None:
    interfaces = partitions(tmp_path, "left", "b", said="a")
    said = (
        r"partitions of 'left' are not by a: a tuple in '.*left-\d.parquet' \(partition \d\) and"
        r" one in '.*left-\d.parquet' \(partition \d\) have the same values, a = "
    )
    with pytest.raises(SourceError, match=said):
        answers(ONE, interfaces)


def test_partitions_in_any_order_are_as_declared(tmp_path: Path) -> None:
    expected = answers(ONE, partitions(tmp_path, "left", "a"))
    assert answers(ONE, partitions(tmp_path, "left", "a", order=[2, 0, 1])) == expected


def test_partitions_whose_ranges_are_known_are_in_their_order(tmp_path: Path) -> None:
    interfaces = partitions(tmp_path, "left", "a", order=[2, 0, 1], declared=False)
    said = r"left-\d.parquet' is in partition \d of 'left' and belongs to partition \d: a = "
    with pytest.raises(SourceError, match=said):
        answers(ONE, interfaces)


def test_partitions_of_two_sources_that_meet_must_go_together(tmp_path: Path) -> None:
    left = partitions(tmp_path, "left", "a")
    right = partitions(tmp_path, "right", "a", order=[1, 2, 0])
    said = (
        r"partitions of 'left' by a and those of 'right' by a do not go together: a tuple in"
        r" '.*left-\d.parquet' \(partition \d\) and one in '.*right-\d.parquet' \(partition \d\)"
    )
    with pytest.raises(SourceError, match=said):
        answers(JOINED, {**left, **right})
    assert answers(APART, {**left, **right})["r"].rows


def test_partitions_of_two_sources_that_go_together_are_joined_in_tasks(tmp_path: Path) -> None:
    both = partitions(tmp_path, "left", "a") | partitions(tmp_path, "right", "a")
    assert answers(JOINED, both)["j"].rows


@pytest.mark.parametrize(
    ("by", "said"),
    [("nothing", "nothing"), ("a +", "partitioning set"), ("7", "splits nothing")],
)
def test_a_set_that_makes_no_sense_is_explained(by: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=said):
        answers(ONE, partitions(tmp_path, "left", "a", said=by))


def test_an_empty_partition_has_no_groups(tmp_path: Path) -> None:
    interfaces = partitions(tmp_path, "left", "a")
    expected = answers(ONE, interfaces)
    write_table(tmp_path / "left-3.parquet", [])
    paths = [tmp_path / f"left-{number}.parquet" for number in range(COUNT + 1)]
    more = as_partitions(Interface("left", "parquet", ""), paths, "a", declared=True)
    assert answers(ONE, more) == expected


def test_one_partition_is_a_source_like_any_other(tmp_path: Path) -> None:
    write_table(tmp_path / "left.parquet", random_rows(4, 120))
    whole = Interface("left", "parquet", str(tmp_path / "left.parquet"))
    one = as_partitions(whole, [tmp_path / "left.parquet"], "a", declared=True)
    assert answers(ONE, one) == answers(ONE, {"left": replace(whole, partition=None)})
