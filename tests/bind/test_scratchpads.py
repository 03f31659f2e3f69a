"""The scratchpad that a declaration gives to a built-in state next to the source."""

from __future__ import annotations

import pytest

from terascope.diagnostic import QueryError, Source
from terascope.functions.partial_states import PartialState
from terascope.physical.split.split_plan import split_plan
from terascope.pipeline import compile_set
from terascope.plan.rel import Aggregate

DECLARED = """
int UDAF char(36) [low_med, high_med] approx_median(int);
vstring UDAF char({size}) low_med(int);
int UDAF char(36) high_med(vstring);
QUERY q: SELECT tb, approx_median(len){strategy} AS m, approx_percentile(len, 95) AS p
FROM TCP GROUP BY time/60 AS tb;
"""


def strategies(size: int, strategy: str = "") -> list[str]:
    """The strategies of the states next to the source."""
    written = f" WITH strategy '{strategy}'" if strategy else ""
    text = DECLARED.format(size=size, strategy=written)
    (low,) = split_plan(compile_set(Source(text, "pads.gsql")).optimized).low
    assert isinstance(low.rel, Aggregate)
    functions = [call.function for _, call in low.rel.aggs]
    return [f.kind_of_state.strategy for f in functions if isinstance(f, PartialState)]


@pytest.mark.parametrize(
    ("size", "expected"), [(2800, "gk_lite"), (4096, "gk_lite(4096)"), (256, "gk_lite(256)")]
)
def test_the_declared_size_is_that_of_the_low_state(size: int, expected: str) -> None:
    assert strategies(size) == [expected], "both calls keep one state"


def test_a_size_that_the_query_writes_wins() -> None:
    assert "gk_heavy(512)" in strategies(4096, "gk_heavy(512)")
    assert "gk_medium(4096)" in strategies(4096, "gk_medium")


def test_a_size_that_is_too_small() -> None:
    with pytest.raises(QueryError, match=r"at least 256 bytes, not the 36 bytes of 'low_med'"):
        strategies(36)
    with pytest.raises(QueryError, match=r"'gk_lite\(36\)' is no strategy of 'approx_quantile'"):
        strategies(4096, "gk_lite(36)")
