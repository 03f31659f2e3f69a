"""`explain` says what the queries of a set share, what that costs, and what else could be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.explain import explain, picture
from terascope.functions.registry import Functions
from terascope.functions.user import scalar
from terascope.physical.low_plan import LowAggregate
from terascope.physical.statistics.sampling import SampleLimits
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate
from tests.settings import Changes, config_with

ALL_OF_IT = SampleLimits(tuples=1 << 15, seconds=60.0)
"""However busy the machine is: two plans of a set are then the same."""
WINDOWS = """
QUERY a: SELECT srcIP, COUNT(*) AS n FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP;
QUERY b: SELECT srcIP, COUNT(*) AS n FROM TCP [RANGE 12 SLIDE 9] GROUP BY srcIP;
"""


def test_composed_slices_their_rate_and_the_alternatives() -> None:
    shown = explain(compile_set(Source(WINDOWS, "windows.gsql")), "split")
    assert "slices 6 3x4 6 3x4 6 3 of a period of 45, 0.2667 slices a second" in shown
    assert "sharing pays from" in shown
    for word in ("unshared", "shared paired", "shared paned", "chosen", "(assumed)"):
        assert word in shown


def test_queries_over_the_same_window_share_its_slices() -> None:
    text = (
        "QUERY a: SELECT srcIP, COUNT(*) AS n FROM TCP [RANGE 60 SLIDE 5] GROUP BY srcIP;"
        "QUERY b: SELECT srcIP, MAX(len) AS m FROM TCP [RANGE 60 SLIDE 5] GROUP BY srcIP;"
    )
    shown = explain(compile_set(Source(text, "same.gsql")), "split")
    assert shown.count("FROM a_low)") == 2, "both of one aggregation of slices"
    assert "ON time" not in shown, "no window of tuples"


def test_windows_that_cannot_be_composed_are_put_in_groups() -> None:
    text = (
        "QUERY a: SELECT COUNT(*) AS n FROM TCP [RANGE '1 sec' SLIDE '1 d'];"
        "QUERY b: SELECT COUNT(*) AS n FROM TCP [RANGE 17 SLIDE 86399];"
        "QUERY c: SELECT COUNT(*) AS n FROM TCP [RANGE 100003 SLIDE 86351];"
    )
    shown = explain(compile_set(Source(text, "absurd.gsql")), "split")
    assert "in 3 groups: together they would have up to" in shown
    assert "shared paired impossible" in shown
    assert "(86399) 1 of a period of 86400, those in brackets dropped" in shown


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explained") / "trace.pcap"
    generate(Profile(packets=20_000, seed=3), path)
    return path


def test_a_tree_is_shown_with_both_accountings(capture: Path) -> None:
    keys = ["srcIP, destIP, srcPort, destPort", "srcIP, destIP", "srcIP, destPort", "srcIP"]
    text = "\n".join(
        f"QUERY q{i}: SELECT tb, {k}, COUNT(*) AS n FROM TCP GROUP BY time/3600 AS tb, {k};"
        for i, k in enumerate(keys)
    )
    shown = explain(bound(text, capture), "job")
    assert "tree of q0_low, q1_low, q2_low, q3_low, read from packets" in shown
    assert "hash operations an epoch: flat" in shown
    assert "groups that leave for the exchange" in shown
    assert "chosen: the tree, which saves" in shown
    assert "  srcIP (query)" in shown


def test_windows_of_aggregates_that_do_not_split_share_no_slices() -> None:
    """They read tuples: they are not said to share, and make the slices of others no finer."""
    text = (
        "QUERY a: SELECT srcIP, COUNT(*) AS n FROM TCP [RANGE 18 SLIDE 15] GROUP BY srcIP;"
        "QUERY b: SELECT srcIP, MAX(len) AS n FROM TCP [RANGE 15 SLIDE 15] GROUP BY srcIP;"
        "QUERY c: SELECT srcIP, SUM(tripled(len)) AS m FROM TCP [RANGE 12 SLIDE 9] "
        "GROUP BY srcIP;"
        "QUERY d: SELECT destIP, SUM(tripled(len)) AS m FROM TCP [RANGE 12 SLIDE 9] "
        "GROUP BY destIP;"
    )
    tripled = scalar(name="tripled", takes=("INT",), returns="INT")(lambda n: 3 * n)
    bindings = Bindings(functions=Functions.builtin().extended([tripled]))
    shown = explain(compile_set(Source(text, "above.gsql"), bindings), "split")
    assert "a 18/15: slices 12 3 of a period of 15" in shown
    assert "c 12/9" not in shown
    assert "d 12/9" not in shown


def bound(text: str, capture: Path, trees: Changes | None = None) -> Compiled:
    low = config_with(**trees or {}, share_sample="always", sample_seconds=60.0)
    bindings = Bindings({"eth0": Interface("eth0", "pcap", str(capture))}, config=low)
    return compile_set(Source(text, "set.gsql"), bindings)


def test_windows_have_an_arrow_from_the_slices_they_are_made_of(capture: Path) -> None:
    compiled = bound(WINDOWS, capture)
    shown = picture(compiled, "job")
    names = {box.id: box.name for box in shown.boxes}
    arrows = {(names[source], names[target]) for source, target in shown.arrows}
    made = {o.name: o.windows.stream for o in compiled.job().low if o.windows is not None}
    assert len(made) == 2
    assert {(source, target) for target, source in made.items()} <= arrows


def test_the_memory_of_tables_is_kept_and_told_when_the_flat_plan_wins(capture: Path) -> None:
    budget = 10_000
    text = "".join(
        f"QUERY q{i}: SELECT tb, {k}, COUNT(*) AS n FROM TCP GROUP BY time/3600 AS tb, {k};"
        for i, k in enumerate(["srcIP", "destIP", "srcPort"])
    )
    compiled = bound(text, capture, {"share_trees": "operations", "tree_memory": budget})
    job = compiled.job()
    (decision,) = job.decisions
    assert not decision.used
    low = job.reads[0].low
    assert low is not None
    bounded = [q for q in low.queries if isinstance(q, LowAggregate) and q.name in decision.queries]
    assert [q.table.kind for q in bounded] == ["lru"] * 3
    assert sum(q.table.groups or budget for q in bounded) * 16 < budget
    shown = explain(compiled, "job")
    for query in bounded:
        assert f"lru, eager flush, at most {query.table.groups:,} groups" in shown
