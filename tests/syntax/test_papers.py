"""The GSQL that the five papers print, its slips corrected, parses and round-trips."""

from __future__ import annotations

import pytest

from terascope.diagnostic import QueryError, Source
from terascope.syntax.ast import QueryStatement, Script, With
from terascope.syntax.parser import parse
from terascope.syntax.printer import print_script

PAPER_0 = """
SELECT SrcIP, count(*) FROM Snort S [RANGE '18' SLIDE '15'] GROUP BY S.SrcIP;
SELECT count(*) FROM Snort S [RANGE '18 sec' SLIDE '15 sec'];
WITH Spwsub as (SELECT count(*) as cnt FROM Snort [SLICES '3'])
(SELECT sum(cnt) FROM Spwsub [RANGE '18' SLIDE '15']);
WITH SpairSub as (SELECT count(*) as cnt FROM Snort [SLICES '12 sec','3 sec'])
(SELECT sum(cnt) FROM SpairSub [RANGE '18 sec' SLIDE '15 sec'])
"""

PAPER_1 = """
int UDAF char(36) approx_median(int)
int UDAF char(36) [low_approx_med, high_approx_med]
    approx_median(int)
vstring UDAF char(2800) low_approx_med(int)
int UDAF char(36) high_approx_med(vstring)
int EXTR percentile_fcn approx_quantile percentile(int; int)
SELECT tb, sourceIP, median(length) FROM UDP
GROUP BY time/60 as tb, sourceIP
"""

PAPER_2 = """
PROTOCOL PKT(time increasing, srcIP, destIP, len);
SELECT time,srcIP,destIP,srcPort,destPort,
       COUNT(*) ,SUM(len) , MIN(timestamp),MAX(timestamp)
FROM TCP
GROUP BY time,srcIP,destIP,srcPort,destPort;
SELECT time, PKT1.srcIP, PKT1.destIP,
       PKT1.len + PKT2.len
FROM PKT1 JOIN PKT2
WHERE PKT1.time = PKT2.time and
       PKT1.srcIP = PKT2.srcIP and
       PKT1.destIP = PKT2.destIP
Query flows:
SELECT tb,srcIP,destIP,COUNT(*) as cnt
FROM TCP
GROUP BY time/60 as tb,srcIP,destIP
Query heavy_flows:
SELECT tb,srcIP,max(cnt) as max_cnt
FROM flows
GROUP BY tb, srcIP
Query flow_pairs:
SELECT S1.tb, S1.srcIP,
       S1.max_cnt,S2.max_cnt
FROM heavy_flows S1, heavy_flows S2
WHERE S1.srcIP = S2.srcIP and S1.tb
       = S2.tb+1
Query suspicious:
SELECT tb, srcIP, destIP, srcPort,
       destPort, OR_AGGR(flags) as orflag,
       COUNT(*), SUM(len)
FROM TCP
GROUP BY time as tb, srcIP, destIP,
srcPort, destPort
HAVING OR_AGGR(flags) = #PATTERN#
Query outer:
SELECT S.a, R.b
FROM STREAM1 AS S LEFT OUTER JOIN STREAM2 as R
WHERE STREAM1.ts = STREAM2.ts and STREAM1.var11 = STREAM2.var21;
"""

PAPER_3 = r"""
SELECT tb, srcIP, dstIP, sum_of_dups(seq)
FROM TCP
GROUP BY time/60 as tb, srcIP, dstIP
CLOSING_WHEN Or_aggr(FYN) = TRUE or count(*) = 0;
MERGE R.timestamp : S.timestamp

FROM interface1.TCP R, interface2.TCP S;
SELECT tb*60, destIP, dest_port,
       str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\.\.: ]*')
       as hostheader
FROM TCP
WHERE ipversion=4 and offset=0 and protocol=6 and
       str_match_start[TCP_data, 'GET'];
SELECT tb, srcIP, count(*) from TCP
GROUP BY time/60 as tb, srcIP
Query flow1:
SELECT tb, protocol, srcIP, destIP,
       srcPort, destPort, count(*) as cnt
FROM [main0_and_control].DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP,
       srcPort, destPort
Query flow2:
SELECT tb, protocol, srcIP, destIP,
       srcPort, destPort, count(*) as cnt
FROM main1.DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP,
       srcPort, destPort
Query full_flow:
SELECT flow1.tb, flow1.protocol, flow1.srcIP,
       flow1.destIP, flow1.srcPort, flow1.destPort,
       flow1.cnt, flow2.cnt
OUTER_JOIN FROM flow1, flow2
WHERE flow1.srcIP=flow2.srcIP and
flow1.destIP=flow2.destIP and
flow1.srcPort=flow2.srcPort and flow1.tb = flow2.tb
Query dup_ratio:
SELECT tb, sum(dup_cnt) / sum(full_cnt)
FROM dup_and_all_count
GROUP BY tb;
Query syn_ack_delay:
SELECT S.tb, S.srcIP, S.destIP, S.srcPort, S.destPort,
(A.timestamp - S.timestamp) as rtt
FROM tcp_syn S JOIN tcp_syn_ack A
WHERE S.srcIP = A.destIP and S.destIP = A.srcIP and
S.srcPort = A.destPort and S.destPort = A.srcPort and
S.tb = A.tb and S.timestamp <= A.timestamp and
(S.sequence_number + 1) = A.ack_number
Query matched_syn_count:
SELECT tb, count(*)
FROM tcp_syn S JOIN tcp_syn_ack A
WHERE S.srcIP = A.destIP and S.destIP = A.srcIP
      and S.srcPort = A.destPort
      and S.destPort = A.srcPort and S.tb = A.tb
      and (S.timestamp <= A.timestamp)
      and (S.sequence_number + 1) = A.ack_number
GROUP BY time/60 as tb
Query matched_syn_ratio:
SELECT A.tb, M.cnt / A.cnt as ratio
FROM all_syn_count A OUTER_JOIN matched_syn_count M
WHERE A.tb = M.tb
Query delays:
SELECT S1.tb, S1.srcIP, S1.destIP, S1.srcPort,
      S1.destPort, (S2.timestamp-S1.timestamp) as delay
FROM TCP as S1, TCP as S2
WHERE S1.tb=S2.tb and S1.srcIP=S2.srcIP
      and S1.destIP=S2.destIP and
      (S1.seq_number+1)=S2.seq_number and
      (S2.timestamp - S1.timestamp) > 1000
"""

PAPER_4 = """
select srcIP, dstIP, SUM(bytes)
from stream
group by srcIP, dstIP
every 15 minutes
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [(PAPER_0, 4), (PAPER_1, 6), (PAPER_2, 8), (PAPER_3, 12), (PAPER_4, 1)],
    ids=["paper 0", "paper 1", "paper 2", "paper 3", "paper 4"],
)
def test_printed_queries(text: str, count: int) -> None:
    script: Script = parse(Source(text))
    assert len(script.statements) == count
    assert parse(Source(print_script(script))) == script


def test_both_rewritings_of_paper_0_are_with_queries() -> None:
    paned, paired = parse(Source(PAPER_0)).statements[2:]
    for each in (paned, paired):
        assert isinstance(each, QueryStatement)
        assert isinstance(each.query, With)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "SELECT Istream( S.a, count(*) ) FROM S [Rows 100], R [Rows 100] "
            "WHERE S.srcIP = R.destIP GROUP BY S.srcIP",
            "unsupported-language",
        ),
        (
            "for(t=start_time; t < start_time + 60; t++)\n WindowIs(S, t-9, t)",
            "unsupported-language",
        ),
        ("SELECT tb FROM DataProtocol GROUP BYtime/10 as tb, protocol", "syntax"),
        ("SELECT a FROM TCP WHERE protocol=6 str_match_start[TCP_data, 'GET']", "syntax"),
        ("SELECT t FROM hostnames_low WHERE", "syntax"),
    ],
)
def test_what_the_papers_print_but_gsql_is_not(text: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(Source(text))
    assert set(caught.value.codes) == {code}
