"""One GSQL text for every construct of the language, used by several tests."""

from __future__ import annotations

from terascope.diagnostic import Source
from terascope.syntax.ast import Expr, Item, QueryStatement, Select
from terascope.syntax.parser import parse

STATEMENTS = (
    # names, aliases, projections
    "SELECT a FROM TCP",
    "select a, b as c from TCP;",
    "SELECT * FROM TCP",
    "SELECT S.*, R.a FROM A S, B R WHERE S.ts = R.ts",
    "SELECT DISTINCT srcIP FROM TCP GROUP BY time/60 AS tb",
    "SELECT time, timestamp, offset, window, interface, protocol, id, length, bytes FROM TCP",
    "SELECT range, slide, slices, every, left, right, full, inner, outer FROM x",
    "SELECT key, data, first, last FROM x",
    "SELECT end, div, query, define, param, fields, watchlist, udaf, extr, asc, desc, limit FROM x",
    "SELECT S.select, S.order, `from` FROM A S",
    "SELECT FIN, SYN, RST, PSH, ACK, URG, FYN, TCP_data, ip FROM TCP",
    "SELECT closing, cleaning, grouping, sets FROM x",
    # sources
    "SELECT a FROM eth0.TCP",
    "SELECT a FROM [main].TCP",
    "SELECT a FROM [main0_and_control].DataProtocol AS d",
    "SELECT a FROM lib/query",
    "SELECT a FROM lib/more/query q",
    "SELECT a FROM (SELECT b AS a FROM TCP) AS s",
    "SELECT a FROM ((SELECT b AS a FROM TCP)) s",
    "SELECT a FROM (MERGE R.ts : S.ts FROM A R, B S) m",
    # windows
    "SELECT count(*) FROM Snort S [RANGE '18 sec' SLIDE '15 sec']",
    "SELECT count(*) FROM Snort [SLICES '12 sec','3 sec']",
    "SELECT count(*) FROM Snort [SLICES '3']",
    "SELECT count(*) FROM Snort [RANGE '18']",
    "SELECT count(*) FROM Snort [RANGE 1.5 hours SLIDE 15 ON timestamp]",
    "SELECT count(*) FROM Snort AS x [SLICES 12 sec, 3 sec ON ts]",
    "SELECT srcIP, SUM(bytes) FROM stream GROUP BY srcIP EVERY 15 minutes",
    "SELECT count(*) FROM stream EVERY '500 ms'",
    "WITH SpairSub as (SELECT count(*) as cnt FROM Snort [SLICES '12 sec','3 sec']) "
    "(SELECT sum(cnt) FROM SpairSub [RANGE '18 sec' SLIDE '15 sec'])",
    "WITH a AS (SELECT x FROM t), b AS (SELECT y FROM a) SELECT y FROM b",
    "(SELECT a FROM TCP)",
    # clauses
    "SELECT tb, count(*) AS c FROM TCP WHERE len > 40 GROUP BY time/60 AS tb HAVING count(*) > 5",
    "SELECT tb, count(*) AS c FROM TCP GROUP BY time/60 AS tb ORDER BY c DESC, tb ASC LIMIT 10",
    "SELECT tb FROM TCP GROUP BY time/60 AS tb LIMIT 3 HAVING count(*) > 5",
    "SELECT tb, sum_of_dups(seq) FROM TCP GROUP BY time/60 AS tb "
    "CLOSING_WHEN Or_aggr(FYN) = TRUE OR count(*) = 0",
    "SELECT tb FROM TCP GROUP BY time/60 AS tb CLOSING WHEN count(*) = 0",
    "SELECT tb, srcIP, sum(len) FROM TCP WHERE ssample(len, 100) = TRUE "
    "GROUP BY time/60 AS tb, srcIP, uts SUPERGROUP BY tb HAVING ssfinal(sum(len)) = TRUE "
    "CLEANING_WHEN ssdo_clean(count_distinct$(*)) = TRUE CLEANING_BY ssclean(sum(len)) = TRUE",
    "SELECT tb, srcIP FROM TCP GROUP BY time/60 AS tb, srcIP SUPERGROUP tb, srcIP HAVING a = 1",
    "SELECT a FROM x GROUP BY tb, CUBE(a, b AS c), ROLLUP(d), GROUPING_SETS((a, b), (c), ())",
    "SELECT a FROM x GROUP BY tb, GROUPING SETS ((a), (b))",
    "SELECT cube, rollup FROM x GROUP BY cube, rollup",
    # joins
    "SELECT a FROM PKT1 JOIN PKT2 WHERE PKT1.time = PKT2.time",
    "SELECT a FROM A x INNER JOIN B y ON x.ts = y.ts",
    "SELECT a FROM A x LEFT OUTER JOIN B y ON x.ts = y.ts",
    "SELECT a FROM A x LEFT JOIN B y ON x.ts = y.ts RIGHT JOIN C z ON z.ts = x.ts",
    "SELECT a FROM A x FULL OUTER JOIN B y ON x.ts = y.ts WHERE x.a > 5",
    "SELECT a FROM A x OUTER JOIN B y ON x.ts = y.ts",
    "SELECT A.tb, M.cnt / A.cnt AS ratio FROM all_syn A OUTER_JOIN matched M WHERE A.tb = M.tb",
    "SELECT a FROM A LEFT_OUTER_JOIN B WHERE A.tb = B.tb",
    "SELECT a FROM A JOIN (B JOIN C ON B.t = C.t) ON A.t = B.t",
    "SELECT a LEFT_OUTER_JOIN FROM A S, B R WHERE S.tb = R.tb",
    "SELECT a INNER_JOIN FROM A S, B R WHERE S.tb = R.tb",
    "SELECT a RIGHT_OUTER_JOIN FROM A S, B R WHERE S.tb = R.tb",
    "SELECT a OUTER_JOIN FROM flow1, flow2 WHERE flow1.tb = flow2.tb",
    "SELECT R.ts FILTER_JOIN(ts, 15) FROM PKT R, PKT S WHERE R.srcIP = S.srcIP AND S.destPort = 22",
    "SELECT R.ts, W.tag WATCHLIST_JOIN FROM PKT R, wl W WHERE R.srcIP = W.ip",
    "SELECT a FROM A S, B R, C Q WHERE S.ts = R.ts AND R.ts = Q.ts",
    "SELECT a FROM A x, B y WHERE y.ts BETWEEN x.ts - 5 AND x.ts + 10",
    "MERGE R.timestamp : S.timestamp FROM interface1.TCP R, interface2.TCP S",
    "MERGE R.ts : S.ts : Q.ts SLACK 15 FROM A R, B S, C Q",
    # statements with headers
    "QUERY flows: SELECT a FROM TCP",
    "Query heavy_flows:\nSELECT a FROM flows",
    "QUERY protocol: SELECT a FROM TCP",
    "DEFINE { query_name 'heavy'; visibility 'external'; } SELECT a FROM TCP",
    "DEFINE { query_name 'heavy'; max_disorder 5; PATTERN 0x29; ip '10.0.0.1' } SELECT a FROM TCP",
    "DEFINE{query_name 'x';} PARAM { threshold uint; } SELECT a FROM TCP WHERE len > $threshold",
    "PARAM { threshold UINT; net IP } DEFINE { comment 'it''s'; } SELECT a FROM TCP",
    "PARAM { name char(36); } QUERY q: SELECT a FROM TCP",
    "DEFINE{query_name 'wl'; filename 'w.csv'; refresh_interval '5';} "
    "WATCHLIST FIELDS { IP ip (key); string tag; }",
    # protocols
    "PROTOCOL PKT (time UINT increasing clock(s), timestamp ULLONG increasing clock(ns), srcIP IP)",
    "PROTOCOL PKT (time increasing, srcIP, destIP, len)",
    "PROTOCOL PKT (base, other) (time UINT banded_increasing(5), tag char(20), x IP (key))",
    "PROTOCOL eth (base) { uint time get_time (required, snap_len 134); string s get_s; }",
    "PROTOCOL base { uint time (increasing); }",
    "PROTOCOL child (base) { }",
    "PROTOCOL define { }",
    "PROTOCOL unpack_fcns (base) [stream] { }",
    "PROTOCOL eth (base) [tcp, http] { uint time get_time (increasing) [tcp, http]; IP ip get; }",
    "PROTOCOL eth [tcp] { uint time; }",
    "PROTOCOL eth (base) [tcp] (time UINT increasing [a, `from`], ip IP)",
    "STREAM flows { uint tb (increasing); IP srcIP; ullong bytes; }",
    "STREAM flows (tb UINT increasing, srcIP IP)",
    "UNPACK_FCNS { http unpack_http 10; tcp unpack_tcp 2 }",
    "UNPACK_FCNS { }",
    "SELECT count(*) FROM stream s [RANGE '18']",
    "SELECT stream, unpack_fcns FROM stream",
    "PROTOCOL eth { uint time get_time (low_cardinality, subnet 'a b', odd 'select'); }",
    "PROTOCOL PKT (time increasing, srcIP low_cardinality, len UINT colour('dark red'))",
    # aggregates
    "int UDAF char(36) approx_median(int)",
    "int UDAF char(36) [low_approx_med, high_approx_med]\n    approx_median(int)",
    "int EXTR percentile_fcn approx_quantile percentile(int; int)",
    "float EXTR f agg name(int, ip; float, float)",
    "UINT EXTR a `extr` `udaf`()",
    "UINT EXTR a protocol b()",
    "UINT EXTR stream protocol stream(int; int)",
)

EXPRESSIONS = (
    "42", "0xFFF0", "1.5", "1e9", "5.", "1.e3", "1.E-3", "a*5.+.5",
    "!a", "!!a", "!a = b", "!(a = b) AND !f(c)", "a != !b", "!a & b",
    "2.5e-3", "'text'", "'it''s'", '"text"', "10.0.0.1",
    "IP '10.0.0.1'", "IP '2001:db8::1'", "IPV6 '::1'", "IP_VAL'1.2.3.4'", "IPV6_VAL'fe80::1'",
    "TRUE", "false", "NULL", "17UL", "5ULL", "5LL", "0xFFUL", "HEX'7f'", "LHEX'ffffffff'",
    "TIMEVAL'1.5'", "X'0aff'", "$p", "#name", "#NAME#", "#PATTERN# & flags", "@prop",
    "-9223372036854775808", "- -5", "a - -5", "time/60", "S1.tb + 1", "flags & 0x12 = 2",
    "a OR b AND NOT c", "(a OR b) AND c", "a DIV 5 % 3", "a << 2 | b ^ c & ~d", "a || 'x' || b",
    "a <> b", "a != b", "NOT a = b", "(NOT a) = b", "a BETWEEN 1 AND 2",
    "a NOT BETWEEN b - 1 AND b + 1 AND c", "a LIKE 'x%'", "a NOT LIKE 'x%'", "a IN (1, 2)",
    "destPort in [22, 25]", "a NOT IN (1)", "a IS NULL", "a IS NOT NULL",
    "CASE WHEN a > 1 THEN 'x' ELSE 'y' END", "CASE a WHEN 1 THEN 2 WHEN 2 THEN 3 END",
    "CASE `closing` WHEN 1 THEN end ELSE end END", "CAST(x AS float)", "CAST(x + 1 AS char(36))",
    "cast", "count(*)", "COUNT(DISTINCT x)", "count_distinct$(x)", "count_distinct$(*)", "max$(x)",
    "str_exists_substr[TCP_data, 'GET']", "f()", "LEFT(s, 3)", "percentile(len, 95)",
    "OR_AGGR(SYN AND NOT ACK)", "COUNT(*) / SUM(len)", "a - (b - c)", "a - b - c",
    "(a = b) = (c = d)", "x IN (a AND b, c = d)", "-(a + b)", "-a.b", "+5", "getlpmid(ip, 'table')",
)  # fmt: skip


def parse_expression(text: str) -> Expr:
    """An expression, read as the only item of a query."""
    (statement,) = parse(Source(f"SELECT {text} FROM x")).statements
    assert isinstance(statement, QueryStatement)
    assert isinstance(statement.query, Select)
    (item,) = statement.query.items
    assert isinstance(item, Item)
    return item.expr
