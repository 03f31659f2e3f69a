"""GSQL over real captures: the plan as written, optimised and in DuckDB gives the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from tests.oracle.agreement import agreed
from tests.oracle.compare import assert_same_rows
from tests.reference.connector_sources import ConnectorSources

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

QUERIES = """
QUERY flows:
SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes, OR_AGGR(flags) AS flags
FROM TCP GROUP BY time/10 AS tb, srcIP, destIP;

QUERY heavy:
SELECT tb, srcIP, max(cnt) AS most FROM flows GROUP BY tb, srcIP HAVING SUM(bytes) > 500;

QUERY growth:
SELECT S1.tb, S1.srcIP, S1.cnt AS now, S2.cnt AS before
FROM flows S1 LEFT JOIN flows S2 ON S1.tb = S2.tb + 1 AND S1.srcIP = S2.srcIP
AND S1.destIP = S2.destIP;

QUERY sliding:
SELECT srcIP & 0xFFFFFF00 AS net, COUNT(*) AS cnt, median(len) AS middle, FIRST(ttl) AS hops
FROM PKT [RANGE '18 sec' SLIDE '15 sec'] GROUP BY srcIP & 0xFFFFFF00;

QUERY talkers:
SELECT tb, srcIP, SUM(len) AS bytes FROM PKT GROUP BY time/5 AS tb, srcIP
ORDER BY SUM(len) DESC LIMIT 3;

QUERY levels:
SELECT tb, protocol, ipversion, COUNT(*) AS cnt FROM PKT
GROUP BY time/60 AS tb, CUBE(protocol, ipversion);
"""


def compiled(capture: str) -> Compiled:
    path = DATA / capture
    if not path.exists():
        pytest.skip(f"no capture at shared/data/{capture}")
    interfaces = {"eth0": parse_interface(f"eth0=pcap:{path}")}
    return compile_set(Source(QUERIES, "captures.gsql"), Bindings(interfaces))


@pytest.mark.parametrize(
    "capture", ["edge/mercury_pppoe_qinq.pcap", "edge/zeek_tcp_truncated-header.pcap"]
)
def test_rows_agree(capture: str) -> None:
    query_set = compiled(capture)
    sources = ConnectorSources(query_set.bindings.interfaces)
    written = agreed(query_set.plan, sources)
    optimized = evaluate(query_set.optimized, sources)
    for stream in query_set.plan.visible:
        rows = written[stream.name].visible()
        again = optimized[stream.name].visible()
        assert_same_rows(rows.tuples, again.tuples, rows.fields)
    assert len(written["flows"]) > 0
