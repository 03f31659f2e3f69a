"""Advice as a whole: what is recommended, what the user says, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.advise.advice import Advice
from terascope.advise.configuration import hardware_lines, masked_fields
from terascope.advise.picture import picture_of_advice
from terascope.connectors.base import Column
from terascope.diagnostic import QueryError
from terascope.partitioning.sets import parse_set
from terascope.session import QuerySet, Session
from terascope.types import Type
from tests.partitioning.query_sets import FLOW_PAIRS

PROTOCOL = "PROTOCOL F (time UINT increasing clock(s), a UINT, b UINT, one UINT);\n"
BOTH = (
    PROTOCOL
    + """
QUERY x: SELECT tb, a, b, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, a, b;
QUERY y: SELECT tb, a, one, MAX(b) AS m FROM f.F GROUP BY time/60 AS tb, a, one;
"""
)


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advice") / "f.parquet"
    numbers = range(6000)
    rows = {
        "time": [n // 50 for n in numbers],
        "a": [n * 7919 % 101 for n in numbers],
        "b": [n * 104729 % 4 for n in numbers],
        "one": [1 for _ in numbers],
    }
    pq.write_table(pa.table(rows), path)
    return path


def loaded(text: str, flows: Path | None = None) -> QuerySet:
    session = Session()
    if flows is not None:
        session.source(f"f=parquet:{flows}")
    return session.query(text)


def advised(text: str, flows: Path | None = None, **wishes: Any) -> Advice:
    return loaded(text, flows).advise(**wishes)


def refused(text: str, flows: Path | None = None, **wishes: Any) -> QueryError:
    with pytest.raises(QueryError) as caught:
        advised(text, flows, **wishes)
    return caught.value


def test_the_recommended_set_finishes_the_queries(flows: Path) -> None:
    advice = advised(BOTH, flows)
    assert advice.recommended.sets == {"f": ["a"]}
    assert advice.recommended.finished == ("x", "y")
    assert advice.recommended.spread["f"].values == 101
    assert advice.recommended.spread["f"].skew < 2.0
    assert advice.candidates[0] is advice.recommended
    assert advice.measured.tuples == 6000
    assert not advice.notes


def test_a_set_with_fewer_values_than_partitions_comes_last(flows: Path) -> None:
    text = (
        PROTOCOL
        + """
    QUERY x: SELECT tb, one, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, one;
    QUERY y: SELECT tb, one, COUNT(*) AS n FROM f.F WHERE b = 1 GROUP BY time/60 AS tb, one;
    QUERY z: SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, a;
    """
    )
    advice = advised(text, flows, into=8)
    assert [one.sets["f"] for one in advice.candidates] == [["a"], ["one"]]
    assert advice.candidates[1].has_few_values
    assert advice.candidates[1].candidate.cost < advice.recommended.candidate.cost
    assert advised(text, flows, into=1).recommended.sets == {"f": ["one"]}


def test_where_all_sets_have_few_values_the_user_is_told(flows: Path) -> None:
    text = PROTOCOL + "QUERY x: SELECT tb, b, SUM(a) AS n FROM f.F GROUP BY time/60 AS tb, b;"
    advice = advised(text, flows, into=8)
    assert advice.recommended.sets == {"f": ["b"]}
    assert any("fewer values than 8 partitions" in note for note in advice.notes)


def test_an_existing_partitioning_stands_beside(flows: Path) -> None:
    advice = advised(BOTH, flows, existing="b")
    assert advice.recommended.sets == {"f": ["a"]}
    assert advice.existing is not None
    assert advice.existing.finished == ("x",)
    assert advice.existing.reasons == {"y": "its keys do not determine b"}
    assert advice.existing.costs["y"] > advice.recommended.costs["y"]


def test_the_partitioning_of_a_partitioned_source_is_known(flows: Path, tmp_path: Path) -> None:
    table = pq.read_table(flows)
    for number in (0, 1):
        odd = pa.array([n % 4 // 2 == number for n in table.column("b").to_pylist()])
        pq.write_table(table.filter(odd), tmp_path / f"p{number}.parquet")
    session = Session()
    session.source(f"f=parquet:{tmp_path}", partitioned_by="b")
    advice = session.query(BOTH).advise()
    assert advice.existing is not None
    assert advice.existing.sets == {"f": ["b"]}
    assert advice.recommended.sets == {"f": ["a"]}
    assert advice.measured.tuples == 6000


def test_weights(flows: Path) -> None:
    text = (
        PROTOCOL
        + """
    QUERY x: SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, a;
    QUERY y: SELECT tb, b, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, b;
    """
    )
    assert advised(text, flows, into=2, weights={"x": 5.0}).recommended.sets == {"f": ["a"]}
    assert advised(text, flows, into=2, weights={"y": 5.0}).recommended.sets == {"f": ["b"]}
    wrong = refused(text, flows, weights={"z": 1.0})
    assert wrong.codes == ("unknown-query",)
    assert wrong.diagnostics[0].help == "queries are x, y"


# ---- rotation ------------------------------------------------------------------------------------


def test_rotation_adds_the_clock(flows: Path) -> None:
    advice = advised(BOTH, flows, rotate=600.0)
    assert advice.recommended.sets == {"f": ["a", "time DIV 600"]}
    assert advice.recommended.finished == ("x", "y")


@pytest.mark.parametrize(
    ("query", "seconds", "note"),
    [
        ("SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/900 AS tb, a", 600.0, "one period"),
        (
            "SELECT a, COUNT(*) AS n FROM f.F [RANGE '60 sec' SLIDE '10 sec'] GROUP BY a",
            600.0, "windows slide",
        ),
        (
            "SELECT tb, a, COUNT(*) AS n FROM f.F GROUP BY time/60 AS tb, a CLOSING_WHEN n > 9",
            600.0, "live across epochs",
        ),
    ],
)  # fmt: skip
def test_rotation_is_refused(flows: Path, query: str, seconds: float, note: str) -> None:
    wrong = refused(f"{PROTOCOL}QUERY q: {query};", flows, rotate=seconds)
    assert wrong.codes == ("bad-rotation",)
    assert note in wrong.diagnostics[0].notes[0]
    assert "'q'" in wrong.diagnostics[0].message


def test_a_join_of_epochs_forbids_rotation() -> None:
    wrong = refused(FLOW_PAIRS, rotate=600.0)
    assert wrong.codes == ("bad-rotation",)
    assert "'flow_pairs'" in wrong.diagnostics[0].message


def test_rotation_needs_a_clock() -> None:
    text = """
    PROTOCOL G (seq UINT increasing, a UINT);
    QUERY q: SELECT s, a, COUNT(*) AS n FROM g.G GROUP BY seq/60 AS s, a;
    """
    assert refused(text, rotate=600.0).codes == ("no-clock",)


# ---- refusals ------------------------------------------------------------------------------------


def test_nothing_to_advise_on() -> None:
    assert refused("-- nothing").codes == ("no-queries",)


def test_where_nothing_can_be_partitioned_each_query_has_its_reason() -> None:
    text = """
    QUERY all: SELECT time, COUNT(*) AS n FROM TCP GROUP BY time;
    QUERY most: SELECT tb, MAX(n) AS m FROM all GROUP BY time/60 AS tb;
    """
    wrong = refused(text)
    assert wrong.codes == ("no-partitioning",)
    assert wrong.diagnostics[0].notes == (
        "all: its keys are all temporal", "most: its keys are all temporal",
    )  # fmt: skip


def test_a_splitter_that_suits_no_query() -> None:
    text = "SELECT time, srcIP, MAX(destPort) AS m FROM TCP GROUP BY time, srcIP;"
    wrong = refused(text, splitter="destPort")
    assert wrong.codes == ("no-partitioning",)
    assert "that the splitter can do (destPort)" in wrong.diagnostics[0].message


def test_mistakes_in_sets_show_their_place() -> None:
    assert refused(FLOW_PAIRS, existing="nothing").codes == ("unknown-column",)
    assert refused(FLOW_PAIRS, splitter="srcIP +").codes == ("syntax",)


# ---- what comes out ------------------------------------------------------------------------------


def test_the_document(flows: Path) -> None:
    document = advised(BOTH, flows, existing="b").document()
    assert list(document) == ["recommended", "candidates", "queries"]
    (recommended,) = document["recommended"]
    assert (recommended["source"], recommended["set"]) == ("f", ["a"])
    assert recommended["cost"] == document["candidates"][0]["cost"] > 0
    assert [one["existing"] for one in document["candidates"]][-1] is True
    y = document["queries"]["y"]
    assert y["in_partitions"] is True
    assert y["reason"] is None
    assert len(y["candidates"]) == len(document["candidates"])
    assert y["candidates"][-1]["reason"] == "its keys do not determine b"


def test_the_picture_marks_where_queries_run(flows: Path) -> None:
    queries = loaded(BOTH.replace("a, one", "b, one").replace("MAX(b)", "MAX(a)"), flows)
    advice = queries.advise(into=2, splitter="a")
    picture = picture_of_advice(advice, queries.compiled.optimized, "set")
    marks = {box.name: box.marks for box in picture.boxes}
    assert "in partitions" in marks["x"]
    assert "central" in marks["y"]
    assert dict(next(box for box in picture.boxes if box.name == "f").facts)["split by"] == "a"


COLUMNS = [
    Column("time", Type.UINT), Column("srcIP", Type.IP), Column("destIP", Type.IP),
    Column("destPort", Type.UINT), Column("n", Type.ULLONG),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("srcIP", ["srcIP all bits"]),
        ("srcIP & 0xFFFFFFF0, destIP", ["srcIP mask 255.255.255.240", "destIP all bits"]),
        ("destPort & 0xFF0", ["destPort mask 0xFF0"]),
        ("destPort / 16", ["destPort mask 0xFFFFFFF0"]),
        ("prefix(srcIP, 24, 64)", ["srcIP mask /24 (IPv6: /64)"]),
        ("destPort & 0xA5", ["destPort mask 0xA5"]),
        ("destPort / 10", None),
        ("srcIP, destPort + n", None),
    ],
)
def test_fields_and_masks_for_hardware(text: str, fields: list[str] | None) -> None:
    found = masked_fields(parse_set(text, COLUMNS))
    assert (None if found is None else [str(one) for one in found]) == fields
    lines = hardware_lines(parse_set(text, COLUMNS), 4)
    assert lines[0].startswith("no hardware" if fields is None else "hash over: ")


def test_of_equally_good_sets_the_even_one_comes_first(tmp_path: Path) -> None:
    """Both keys cost the same and make a set of one column; most tuples have one value of `a`."""
    path = tmp_path / "f.parquet"
    numbers = range(6000)
    rows = {
        "time": [n // 50 for n in numbers],
        "a": [n * 7919 % 101 if n % 2 else 7 for n in numbers],
        "b": [n * 7919 % 101 for n in numbers],
        "one": [1 for _ in numbers],
    }
    pq.write_table(pa.table(rows), path)
    text = PROTOCOL + "".join(
        f"QUERY {key}{n}: SELECT tb, {key}, COUNT(*) AS n FROM f.F GROUP BY time/6000 AS tb, {key};"
        for n in range(2)
        for key in "ab"
    )
    made = advised(text, path)
    best, second = made.candidates[:2]
    assert [best.sets, second.sets] == [{"f": ["b"]}, {"f": ["a"]}]
    assert best.candidate.quality == second.candidate.quality
    assert best.spread["f"].skew < second.spread["f"].skew
