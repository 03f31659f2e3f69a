-- The fifty queries of queries.gsql for engines that speak SQL, over a table of all packets.
-- Words in capitals with brackets (DIV, BITAND, STARTS, ...) differ between engines: bench/dialects.py

-- ---- selections ----------------------------------------------------------------------------------

-- syns
SELECT time, srcIP, destIP, srcPort, destPort FROM packets WHERE protocol = 6 AND SYN AND NOT ACK;
-- resets
SELECT time, srcIP, destIP, srcPort, destPort FROM packets WHERE protocol = 6 AND RST;
-- remote_shells
SELECT time, srcIP, destIP, len FROM packets WHERE protocol = 6 AND destPort = 22 AND PSH;
-- mail_logins
SELECT time, srcIP, destIP, destPort FROM packets
WHERE protocol = 6 AND destPort IN (25, 587, 993) AND SYN AND NOT ACK;
-- narrow_windows
SELECT ts, srcIP, destIP, room FROM packets WHERE protocol = 6 AND ACK AND room < 502;
-- far_senders
SELECT time, srcIP, ttl FROM packets WHERE ttl < 50 AND len > 1400;
-- long_answers
SELECT time, srcIP, destIP, len FROM packets WHERE protocol = 17 AND srcPort = 53 AND len > 120;
-- loud_media
SELECT time, srcIP, destIP, destPort, len FROM packets
WHERE protocol = 17 AND tos = 184 AND len > 1100;
-- watched_net
SELECT ts, srcIP, destIP, protocol FROM packets
WHERE destIP BETWEEN 3323068416 AND 3323068479 AND len BETWEEN 400 AND 800;
-- pings
SELECT time, srcIP, destIP, icmp_type FROM packets WHERE protocol = 1 AND icmp_type = 8;
-- web_requests
SELECT time, srcIP, destIP, GROUP1(payload, 'Host: ([a-z0-9.]+)') AS host FROM packets
WHERE protocol = 6 AND destPort = 80 AND STARTS(payload, 'GET ');
-- uploads
SELECT time, srcIP, destIP, len FROM packets WHERE protocol = 6 AND STARTS(payload, 'POST ');
-- searches
SELECT time, srcIP, destIP FROM packets WHERE protocol = 6 AND CONTAINS(payload, 'search?q=');
-- shops
SELECT time, srcIP, destPort FROM packets
WHERE protocol = 6 AND MATCHES(payload, 'Host: (shop|news)[0-9]+[.]example[.]');
-- zone_lookups
SELECT time, srcIP, destIP FROM packets
WHERE protocol = 17 AND destPort = 53 AND CONTAINS(payload, 'zone7');

-- ---- aggregations --------------------------------------------------------------------------------

-- protocols
SELECT DIV(time, 60) AS tb, protocol, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), protocol;
-- senders
SELECT DIV(time, 60) AS tb, srcIP, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), srcIP;
-- receivers
SELECT DIV(time, 60) AS tb, destIP, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), destIP;
-- matrix
SELECT DIV(time, 60) AS tb, srcIP, destIP, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), srcIP, destIP;
-- tcp_flows
SELECT DIV(time, 60) AS tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS packets,
       BIGINT(SUM(len)) AS bytes, MIN(ts) AS began, MAX(ts) AS ended,
       BITOR(flags) AS seen
FROM packets WHERE protocol = 6 GROUP BY DIV(time, 60), srcIP, destIP, srcPort, destPort;
-- sockets
SELECT DIV(time, 10) AS tb, srcIP, srcPort, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 10), srcIP, srcPort;
-- services
SELECT DIV(time, 300) AS tb, destIP, destPort, COUNT(*) AS packets, MAX(len) AS longest
FROM packets GROUP BY DIV(time, 300), destIP, destPort;
-- ports
SELECT DIV(time, 60) AS tb, destPort, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), destPort;
-- answering_ports
SELECT DIV(time, 10) AS tb, srcPort, COUNT(*) AS packets
FROM packets WHERE protocol = 6 AND SYN AND ACK GROUP BY DIV(time, 10), srcPort;
-- senders_5min
SELECT DIV(time, 300) AS tb, srcIP, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes,
       MIN(len) AS shortest, MAX(len) AS longest
FROM packets GROUP BY DIV(time, 300), srcIP;
-- receivers_10s
SELECT DIV(time, 10) AS tb, destIP, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 10), destIP;
-- classes
SELECT DIV(time, 60) AS tb, tos, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), tos;
-- hops
SELECT DIV(time, 300) AS tb, protocol, ttl, COUNT(*) AS packets
FROM packets GROUP BY DIV(time, 300), protocol, ttl;
-- networks
SELECT DIV(time, 60) AS tb, BITAND(srcIP, 4294967040) AS net, COUNT(*) AS packets,
       BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), BITAND(srcIP, 4294967040);
-- network_matrix
SELECT DIV(time, 60) AS tb, BITAND(srcIP, 4294901760) AS net, BITAND(destIP, 4294967040) AS other,
       COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), BITAND(srcIP, 4294901760), BITAND(destIP, 4294967040);
-- sizes
SELECT DIV(time, 10) AS tb, protocol, DIV(len, 100) AS size, COUNT(*) AS packets
FROM packets GROUP BY DIV(time, 10), protocol, DIV(len, 100);
-- flag_mix
SELECT DIV(time, 60) AS tb, flags, COUNT(*) AS packets
FROM packets WHERE protocol = 6 GROUP BY DIV(time, 60), flags;
-- load
SELECT DIV(time, 10) AS tb, COUNT(*) AS packets, BIGINT(SUM(len)) AS bytes, MAX(len) AS longest
FROM packets GROUP BY DIV(time, 10);
-- openings
SELECT DIV(time, 300) AS tb, srcIP, destPort, COUNT(*) AS packets
FROM packets WHERE protocol = 6 AND SYN AND NOT ACK GROUP BY DIV(time, 300), srcIP, destPort;
-- mean_lengths
SELECT DIV(time, 60) AS tb, destIP, protocol, AVG(len) AS mean
FROM packets GROUP BY DIV(time, 60), destIP, protocol;

-- ---- aggregations with HAVING --------------------------------------------------------------------

-- flooded
SELECT DIV(time, 10) AS tb, destIP, COUNT(*) AS syns
FROM packets WHERE protocol = 6 AND SYN AND NOT ACK GROUP BY DIV(time, 10), destIP
HAVING COUNT(*) > 40;
-- knocking
SELECT DIV(time, 60) AS tb, srcIP, destIP, COUNT(*) AS syns
FROM packets WHERE protocol = 6 GROUP BY DIV(time, 60), srcIP, destIP HAVING BITOR(flags) = 2;
-- heavy_senders
SELECT DIV(time, 60) AS tb, srcIP, BIGINT(SUM(len)) AS bytes
FROM packets GROUP BY DIV(time, 60), srcIP HAVING SUM(len) > 200000;
-- busy_services
SELECT DIV(time, 300) AS tb, destIP, destPort, COUNT(*) AS packets
FROM packets GROUP BY DIV(time, 300), destIP, destPort HAVING COUNT(*) > 1000;
-- answered_much
SELECT DIV(time, 60) AS tb, destIP, COUNT(*) AS answers, BIGINT(SUM(len)) AS bytes
FROM packets WHERE protocol = 17 AND srcPort = 53 GROUP BY DIV(time, 60), destIP
HAVING SUM(len) > 500 AND COUNT(*) > 2;

-- ---- top-k ---------------------------------------------------------------------------------------

-- top_senders
SELECT tb, srcIP, bytes FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY tb ORDER BY bytes DESC, srcIP ASC) AS place FROM (
        SELECT DIV(time, 10) AS tb, srcIP, BIGINT(SUM(len)) AS bytes
        FROM packets GROUP BY DIV(time, 10), srcIP) g) r
WHERE place <= 10;
-- top_ports
SELECT tb, destPort, packets FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY tb ORDER BY packets DESC, destPort ASC) AS place FROM (
        SELECT DIV(time, 60) AS tb, destPort, COUNT(*) AS packets
        FROM packets WHERE protocol = 6 GROUP BY DIV(time, 60), destPort) g) r
WHERE place <= 10;
-- top_pairs
SELECT tb, srcIP, destIP, bytes FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY tb ORDER BY bytes DESC, srcIP ASC, destIP ASC) AS place
    FROM (
        SELECT DIV(time, 300) AS tb, srcIP, destIP, BIGINT(SUM(len)) AS bytes
        FROM packets GROUP BY DIV(time, 300), srcIP, destIP) g) r
WHERE place <= 20;
-- top_networks
SELECT tb, net, bytes FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY tb ORDER BY bytes DESC, net ASC) AS place FROM (
        SELECT DIV(time, 60) AS tb, BITAND(destIP, 4294967040) AS net, BIGINT(SUM(len)) AS bytes
        FROM packets GROUP BY DIV(time, 60), BITAND(destIP, 4294967040)) g) r
WHERE place <= 5;
-- top_openers
SELECT tb, srcIP, syns FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY tb ORDER BY syns DESC, srcIP ASC) AS place FROM (
        SELECT DIV(time, 300) AS tb, srcIP, COUNT(*) AS syns
        FROM packets WHERE protocol = 6 AND SYN AND NOT ACK GROUP BY DIV(time, 300), srcIP) g) r
WHERE place <= 10;

-- ---- over other queries --------------------------------------------------------------------------

-- fan_out
SELECT tb, srcIP, COUNT(*) AS partners, MAX(packets) AS most FROM (
    SELECT DIV(time, 60) AS tb, srcIP, destIP, COUNT(*) AS packets
    FROM packets GROUP BY DIV(time, 60), srcIP, destIP) m
GROUP BY tb, srcIP;
-- steady_senders
WITH s AS (
    SELECT DIV(time, 60) AS tb, srcIP, COUNT(*) AS packets
    FROM packets GROUP BY DIV(time, 60), srcIP),
e AS (SELECT tb + 1 AS next_tb, srcIP AS host, packets AS earlier FROM s)
SELECT s.tb AS tb, s.srcIP AS srcIP, s.packets AS packets, e.earlier AS earlier
FROM s INNER JOIN e ON s.srcIP = e.host AND s.tb = e.next_tb;
-- unanswered
WITH a AS (
    SELECT DIV(time, 60) AS tb, srcIP AS host, COUNT(*) AS asked
    FROM packets WHERE protocol = 6 AND SYN AND NOT ACK GROUP BY DIV(time, 60), srcIP),
b AS (
    SELECT DIV(time, 60) AS answer_tb, destIP AS answer_host, COUNT(*) AS answered
    FROM packets WHERE protocol = 6 AND SYN AND ACK GROUP BY DIV(time, 60), destIP)
SELECT a.tb AS tb, a.host AS host, a.asked AS asked, b.answered AS answered
FROM a LEFT JOIN b ON a.tb = b.answer_tb AND a.host = b.answer_host;
-- flow_sizes
SELECT tb, DIV(n, 10) AS size, COUNT(*) AS flows FROM (
    SELECT DIV(time, 60) AS tb, srcIP, destIP, srcPort, destPort, COUNT(*) AS n
    FROM packets WHERE protocol = 6 GROUP BY DIV(time, 60), srcIP, destIP, srcPort, destPort) f
GROUP BY tb, DIV(n, 10);
-- both_ways
WITH s AS (
    SELECT DIV(time, 60) AS tb, srcIP AS host, BIGINT(SUM(len)) AS sent
    FROM packets GROUP BY DIV(time, 60), srcIP),
r AS (
    SELECT DIV(time, 60) AS received_tb, destIP AS receiver, BIGINT(SUM(len)) AS received
    FROM packets GROUP BY DIV(time, 60), destIP)
SELECT s.tb AS tb, s.host AS host, s.sent AS sent, r.received AS received
FROM s INNER JOIN r ON s.tb = r.received_tb AND s.host = r.receiver;
