"""The queries of the papers, split: the same rows, and what the papers say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.physical.split.host import COMPILED_HOST
from terascope.physical.split.split_plan import SplitPlan, split_plan
from terascope.pipeline import Compiled, compile_set
from terascope.plan.rel import Aggregate, Project
from terascope.reference.interpreter import evaluate
from tests.agreement import assert_same_answers, delivered
from tests.examples.papers import EXAMPLES, Example, title
from tests.reference.connector_sources import ConnectorSources


def compiled(example: Example, traffic: Path) -> Compiled:
    return compile_set(example.source, example.bindings(traffic))


def split_of(name: str, traffic: Path) -> SplitPlan:
    example = next(e for e in EXAMPLES if title(e) == name)
    return split_plan(compiled(example, traffic).optimized)


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_splits_give_the_same_rows(example: Example, traffic: Path) -> None:
    found = compiled(example, traffic)
    sources = ConnectorSources(found.bindings.interfaces)
    split = split_plan(found.optimized, COMPILED_HOST).plan
    expected = delivered(found.optimized, evaluate(found.optimized, sources))
    assert_same_answers(expected, delivered(split, evaluate(split, sources)))


def test_the_printed_split_is_the_one_we_make(traffic: Path) -> None:
    """3.4.1 prints hostnames_low; ours of the whole query is the same stream."""
    split = split_of("p3-3.4.1-hostnames", traffic)
    (low,) = split.low
    assert isinstance(low.rel, Project)
    assert set(split.readers(low.name)) == {"hostnames", "hostnames_high"}


def test_a_whole_query_and_its_sub_aggregate_share_the_low_level(traffic: Path) -> None:
    """Paper 2, 5.2.2 prints tcp_count whole, and as sub- and super-aggregate."""
    split = split_of("p2-5.2.2-sub-and-super-aggregate", traffic)
    assert [type(low.rel) for low in split.low] == [Aggregate]
