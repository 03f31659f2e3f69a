"""Fields with the accessor `get_system_time`: every source has them, in every engine of a batch."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.arrival import ARRIVAL_OPTION
from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import QueryError, Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from tests.agreement import WITHOUT_COMPILING, assert_same_answers, delivered
from tests.connectors.packet_bytes import Frame, ethernet, ipv4, pcap, tcp
from tests.execute.low_engine import answers, low_rows
from tests.properties.declared_orders import declared_orders
from tests.reference.connector_sources import ConnectorSources

SECOND = 10**9


def source(kind: str, folder: Path) -> Interface:
    """Two tuples whose len is 1 and 2, whatever else they have."""
    path = folder / f"f.{kind}"
    if kind == "csv":
        path.write_text("len,time\n1,5\n2,6\n")
    elif kind == "json":
        path.write_text('{"len": 1, "time": 5}\n{"len": 2, "time": 6}\n')
    elif kind == "parquet":
        pq.write_table(pa.table({"len": [1, 2], "time": [5, 6]}), path)
    else:
        frame = ethernet(ipv4(tcp(payload=b"x")))
        path.write_bytes(pcap([Frame(frame, 5, 0), Frame(frame, 6, 0)]))
    return parse_interface(f"f={kind}:{path}")


def compiled(text: str, *interfaces: Interface) -> Compiled:
    low = WITHOUT_COMPILING
    return compile_set(Source(text), Bindings({i.name: i for i in interfaces}, config=low))


def mistakes(text: str, *interfaces: Interface) -> list[str]:
    with pytest.raises(QueryError) as raised:
        compiled(text, *interfaces)
    return [d.code for d in raised.value.diagnostics]


CAME = "uint came get_system_time (increasing); ullong ms get_system_time (clock(ms));"
PACKETS = f"PROTOCOL P (PKT) {{ {CAME} }};"
TABLE = f"PROTOCOL P {{ uint len get_len; uint time get_time; {CAME} }};"
QUERIES = """
QUERY counts: SELECT tb, COUNT(*) AS n, SUM(len) AS total FROM P GROUP BY came/10 AS tb;
QUERY listed: SELECT came, ms, time FROM P WHERE came > 1000;
QUERY nothing: SELECT came FROM P WHERE came < 1000;
QUERY windows: SELECT COUNT(*) AS n, wend FROM P EVERY 1 minute;
QUERY only: SELECT tb, COUNT(*) AS n FROM P GROUP BY ms/1000 AS tb;
"""


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "pcap"])
def test_a_batch_has_the_time_at_which_it_was_planned(kind: str, tmp_path: Path) -> None:
    interface = source(kind, tmp_path)
    declared = PACKETS if kind == "pcap" else TABLE
    before = time.time_ns()
    set_ = compiled(declared + QUERIES, interface)
    job = set_.job()
    (read,) = job.reads
    assert before <= read.arrival_ns <= time.time_ns()
    assert {dict(s.options)[ARRIVAL_OPTION] for s in read.splits} == {str(read.arrival_ns)}
    sources = ConnectorSources(set_.bindings.interfaces, read.arrival_ns)
    seconds, ms = read.arrival_ns // SECOND, read.arrival_ns // 10**6
    expected = delivered(set_.optimized, evaluate(set_.optimized, sources))
    assert expected["counts"].rows[0][:2] == (seconds // 10, 2)
    assert [row[:3] for row in expected["listed"].rows] == [(seconds, ms, 5), (seconds, ms, 6)]
    assert expected["nothing"].rows == []
    assert expected["only"].rows == [(ms // 1000, 2)]
    assert sum(row[0] for row in expected["windows"].rows) == 2
    found, _ = low_rows(job, 2, tmp_path)
    above = answers(job, found, set_.optimized, sources)
    assert_same_answers(expected, delivered(set_.optimized, above))


def test_an_arrival_field_is_what_its_declaration_says(tmp_path: Path) -> None:
    interface = source("csv", tmp_path)

    def said(field: str) -> list[str]:
        return mistakes(f"PROTOCOL P {{ uint len get_len; {field}; }}; SELECT x FROM P", interface)

    assert said("string x get_system_time") == ["wrong-type"]
    assert said("float x get_system_time (increasing)") == ["wrong-type"]
    assert said("uint x get_system_time (clock(ms))") == ["wrong-type"]
    assert said("uint x get_system_time (strictly_increasing)") == ["bad-property"]
    assert said("uint x get_system_time (decreasing)") == ["bad-property"]
    unordered = "PROTOCOL P { uint len get_len; uint x get_system_time; };"
    assert mistakes(unordered + "SELECT x, COUNT(*) FROM P GROUP BY x", interface) == [
        "unbounded-group-by"
    ]


def test_a_source_needs_the_other_fields_only(tmp_path: Path) -> None:
    interface = source("csv", tmp_path)
    alone = "PROTOCOL P { uint x get_system_time (increasing); };"
    assert compiled(alone + "SELECT x, COUNT(*) AS n FROM P GROUP BY x", interface).warnings == ()
    absent = "PROTOCOL P { uint absent get_absent; uint x get_system_time (increasing); };"
    assert mistakes(absent + "SELECT x FROM f.P", interface) == ["missing-column"]
    # It is no column of the file, even where the file has one of that name.
    set_ = compiled("PROTOCOL P { uint time get_system_time; }; SELECT time FROM f.P", interface)
    sources = ConnectorSources(set_.bindings.interfaces, 77 * SECOND)
    (answer,) = delivered(set_.optimized, evaluate(set_.optimized, sources)).values()
    assert answer.rows == [(77,), (77,)]


def test_a_merge_by_another_clock_emits_no_order_of_arrival(tmp_path: Path) -> None:
    a, b = source("csv", tmp_path), parse_interface(f"g=csv:{tmp_path / 'f.csv'}")
    declared = """PROTOCOL P { uint len get_len; uint time get_time (increasing, clock(s));
    uint came get_system_time (increasing); };"""
    text = """
    QUERY merged: MERGE x.time : y.time FROM f.P x, g.P y;
    QUERY both: SELECT time, came FROM P;
    QUERY one: SELECT time, came FROM f.P;
    QUERY counts: SELECT tb, COUNT(*) AS n FROM merged GROUP BY came/60 AS tb;
    """
    orders = declared_orders(compiled(declared + text, a, b))
    assert {name: set(known) - {"#ts"} for name, known in orders.items()} == {
        "merged": {"time"},
        "both": {"time"},
        "one": {"time", "came"},
        "counts": {"tb"},
    }
