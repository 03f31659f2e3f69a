"""The query sets of paper 2, section 6, and of the dissertation, 6.6.2, over the trace.

Ours: a mask 0xFFFF stands for a subnet, 0xFFFFFFF0; a delay of 1000 ms is 1000000000 of our
timestamps; TCP has no tb, a helper stream has the minute. See docs/papers.md.
"""

from __future__ import annotations

from typing import Final

from bench.hosts.traffic import PATTERN, PROTOCOL

SUSPICIOUS: Final = f"""{PROTOCOL}
QUERY suspicious:
SELECT tb, srcIP, destIP, srcPort, destPort, OR_AGGR(flags) AS orflag, COUNT(*) AS packets,
       SUM(len) AS bytes
FROM trace.TCP
GROUP BY time AS tb, srcIP, destIP, srcPort, destPort
HAVING OR_AGGR(flags) = {PATTERN};
"""
"""6.1: flows with flags that no TCP flow has, by the second."""

DELAYS: Final = f"""{PROTOCOL}
DEFINE {{ query_name 'packets'; visibility 'internal'; }}
SELECT time/60 AS tb, timestamp, srcIP, destIP, srcPort, destPort, seq_number FROM trace.TCP;

QUERY delays:
SELECT S1.tb, S1.srcIP, S1.destIP, S1.srcPort, S1.destPort, S2.timestamp - S1.timestamp AS delay
FROM packets AS S1 JOIN packets AS S2
WHERE S1.tb = S2.tb AND S1.srcIP = S2.srcIP AND S1.destIP = S2.destIP
  AND S1.srcPort = S2.srcPort AND S1.destPort = S2.destPort
  AND S1.seq_number + 1 = S2.seq_number AND S2.timestamp - S1.timestamp > 1000000000;
"""
"""Dissertation 6.6.2: long delays between consecutive packets of a TCP session."""

SUBNETS: Final = f"""{DELAYS}
QUERY subnets:
SELECT tb, srcNet, destIP, COUNT(*) AS packets, SUM(len) AS bytes, MAX(len) AS longest
FROM trace.TCP
GROUP BY time/60 AS tb, srcIP & 0xFFFFFFF0 AS srcNet, destIP;
"""
"""6.2: the same, and statistics of the packets from subnets to hosts."""

FLOW_PAIRS: Final = f"""{PROTOCOL}
DEFINE {{ query_name 'flows'; visibility 'internal'; }}
SELECT tb, srcIP, destIP, COUNT(*) AS cnt
FROM trace.TCP
GROUP BY time/60 AS tb, srcIP, destIP;

DEFINE {{ query_name 'heavy_flows'; visibility 'internal'; }}
SELECT tb, srcIP, MAX(cnt) AS max_cnt
FROM flows
GROUP BY tb, srcIP;

QUERY flow_pairs:
SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt AS other_cnt
FROM heavy_flows S1 JOIN heavy_flows S2
WHERE S1.srcIP = S2.srcIP AND S1.tb = S2.tb + 1;
"""
"""6.3: aggregation over aggregation, and a join of two minutes."""
