"""`heartbeat-merge`: figure 4-2 of the dissertation, what a merge holds while a link is silent.

Flows of ten seconds over two busy links and a silent one, which are merged without being told to
(examples/papers/p3-4.8.1-merged-flows.gsql), with heartbeats every 1 to 30 s, and with none.
"""

from __future__ import annotations

from bench.streams.sweep import Sweep

FLOWS = """
QUERY flows:
SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) AS cnt
FROM DataProtocol
GROUP BY time/10 AS tb, protocol, srcIP, destIP, srcPort, destPort;
"""

EXPERIMENT = Sweep(
    name="heartbeat-merge",
    title="what a merge with a silent link holds, by the interval of heartbeats (figure 4-2)",
    gsql=FLOWS,
    sets={},
    intervals=(1, 5, 10, 15, 20, 25, 30),
    quick_intervals=(1, 10),
    seconds=90,
    batch_seconds=1.0,
    printed_at=30,
    printed_mb=420.0,
)
