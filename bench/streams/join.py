"""`heartbeat-join`: figure 4-4 of the dissertation, what a join holds while a link is silent.

Flows of ten seconds on two sets of interfaces, one of them with the silent link, joined
(examples/papers/p3-4.8.2-flow-join.gsql), with heartbeats every 1 to 60 s, and with none.
"""

from __future__ import annotations

from bench.streams.sweep import Sweep

JOINED = """
QUERY flow1:
SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) AS cnt
FROM [main0_and_control].DataProtocol
GROUP BY time/10 AS tb, protocol, srcIP, destIP, srcPort, destPort;

QUERY flow2:
SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) AS cnt
FROM main1.DataProtocol
GROUP BY time/10 AS tb, protocol, srcIP, destIP, srcPort, destPort;

QUERY full_flow:
SELECT flow1.tb, flow1.protocol, flow1.srcIP, flow1.destIP, flow1.srcPort, flow1.destPort,
       flow1.cnt AS cnt1, flow2.cnt AS cnt2
OUTER_JOIN FROM flow1, flow2
WHERE flow1.srcIP = flow2.srcIP AND flow1.destIP = flow2.destIP
      AND flow1.srcPort = flow2.srcPort AND flow1.destPort = flow2.destPort
      AND flow1.protocol = flow2.protocol AND flow1.tb = flow2.tb;
"""

EXPERIMENT = Sweep(
    name="heartbeat-join",
    title="what an outer join with a silent link holds, by the interval of heartbeats (figure 4-4)",
    gsql=JOINED,
    sets={"main0_and_control": ("main0", "control")},
    intervals=(1, 10, 20, 30, 40, 50, 60),
    quick_intervals=(1, 10),
    seconds=180,
    batch_seconds=2.0,
    printed_at=60,
    printed_mb=520.0,
)
