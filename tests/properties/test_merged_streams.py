"""Merges of streams: nothing is lost, and the merge field is delivered in the order it is said to
have, whether it rises or falls.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from terascope.analysis.order import plan_orders
from terascope.analysis.slopes import Ordered
from terascope.diagnostic import Source
from terascope.functions.base import Trend
from terascope.pipeline import compile_set
from tests.properties.plain_streams import limited_to
from tests.properties.stream_cases import StreamCase, make_stream_case, protocol
from tests.properties.stream_results import assert_delivered, rows_of
from tests.properties.stream_runs import CaseRuns

ROWS = 60
MERGES = """
PROTOCOL C (down INT decreasing clock(s), a INT, b INT);
QUERY falling: MERGE R.down : T.down FROM left.D R, right.D T;
QUERY slack: MERGE R.down : T.down SLACK 3 FROM left.D R, right.D T;
QUERY parts: MERGE R.d : T.d
FROM (SELECT down AS d, a FROM left.D WHERE a > 0) R, (SELECT down AS d, b FROM right.D) T;
QUERY of_set: SELECT down, a FROM [both].C WHERE b > -10;
QUERY rising: MERGE R.up : T.up
FROM (SELECT -down AS up, a FROM left.D) R, (SELECT ts - 5000 AS up, b FROM right.S) T;
QUERY groups: SELECT tb, COUNT(*) AS n, FIRST(b) AS f, LAST(a) AS l FROM falling
GROUP BY down/9 AS tb;
QUERY of_groups: MERGE R.tb : T.tb FROM groups R, groups T;
"""


def merging_case(seed: int, folder: Path) -> StreamCase:
    """Merges over the files of a random case, streamed as that case is."""
    case = make_stream_case(seed, folder, 1, ROWS)
    band = (
        0
        if "banded" not in case.text
        else int(case.text.split("banded_increasing(")[1].split(")")[0])
    )
    declared = protocol(band)
    merges = MERGES.replace("INT decreasing clock", f"INT banded_decreasing({band}) clock")
    source = Source(declared + merges, str(folder / "merges.gsql"))
    return replace(case, compiled=compile_set(source, case.compiled.bindings))


@pytest.mark.parametrize("seed", range(10), ids=lambda s: f"merge-seed-{s}")
def test_a_merge_loses_nothing_and_delivers_in_order(seed: int, tmp_path: Path) -> None:
    case = merging_case(seed, tmp_path / "in")
    expected = case.expected()
    with limited_to(case.portion):
        trace = CaseRuns(case, tmp_path).replay()
    assert trace.late == 0
    assert_delivered(expected, tmp_path / "out", case)
    orders = plan_orders(case.compiled.optimized)
    for stream in case.compiled.optimized.visible:
        rows = rows_of(tmp_path / "out" / stream.name)
        assert len(rows) > 2
        names = [field.name for field in stream.rel.visible]
        known = {n: o for n, o in orders[stream.name].items() if n in names}
        assert known, f"{stream.name} has an ordered column"
        for name, order in known.items():
            values = [row[names.index(name)] for row in rows]
            assert in_order(values, order), f"{stream.name}.{name} is not {order}: {values}"


def in_order(values: list[object], order: Ordered) -> bool:
    """Whether no value falls behind an earlier one by more than the band."""
    sign = 1 if order.slope.trend is Trend.INCREASING else -1
    moved = [sign * value for value in values if isinstance(value, int)]
    highest = [max(moved[: place + 1]) for place in range(len(moved))]
    return all(top - order.slope.band <= value for top, value in zip(highest, moved, strict=True))
