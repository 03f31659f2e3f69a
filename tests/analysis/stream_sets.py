"""Query sets and arrivals for the analyses of streams: what random sets do not have."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from terascope.plan.plan import Plan
from tests.analysis.arrivals import Cut, Tables, plan_of
from tests.properties.random_sets import INTERFACES, RandomSet, random_rows

PROTOCOL = (
    "PROTOCOL S (ts INT {order} clock(s), fine LLONG increasing clock(ms), "
    "back INT decreasing, real FLOAT increasing, a INT, b INT, s STRING);"
)
EPOCHS = (
    "QUERY xs: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/5 AS tb, a;"
    "QUERY ys: SELECT tb, a, count(*) AS n FROM right.S GROUP BY ts/5 AS tb, a;"
)
OUTER = "SELECT x.tb, x.n, y.tb AS other, y.n AS m FROM xs x {kind} JOIN ys y ON {on}"
FILLED = "SELECT x.tb, x.n, y.tb AS other, y.n AS m OUTER_JOIN FROM xs x, ys y WHERE {on}"
"""GSQL's own form: the columns that it equates have the value of the present side, in order."""
LIST = (
    "DEFINE { query_name 'list'; filename 'list.csv'; } "
    "WATCHLIST FIELDS { int k (key); string label; };"
)
LIST_ROWS = "1,one\n2,two\n7,never\n"
BAND = (
    "SELECT x.ts, x.b, y.ts AS other, y.b AS partner FROM left.S x {kind} JOIN right.S y "
    "ON x.a = y.a AND y.ts BETWEEN x.ts - 3 AND x.ts + 2"
)

QUERIES: Mapping[str, str] = {
    **{
        f"{kind}_{name}": EPOCHS + "QUERY q: " + OUTER.format(kind=kind, on=on)
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
        for name, on in (
            ("shifted", "x.tb = y.tb + 1 AND x.a = y.a"),
            ("halved", "x.tb/2 = y.tb + 1"),
            ("both_halved", "x.tb/2 = y.tb/3"),
            ("float", "x.tb / 2.0 = y.tb"),
        )
    },
    **{f"{k}_band": "QUERY q: " + BAND.format(kind=k) for k in ("INNER", "LEFT", "RIGHT", "FULL")},
    "FULL_halved_default": EPOCHS
    + "DEFINE { query_name 'q'; outer_fill 'default'; } "
    + OUTER.format(kind="FULL", on="x.tb/2 = y.tb + 1"),
    "FULL_both_halved_default": EPOCHS
    + "DEFINE { query_name 'q'; outer_fill 'default'; } "
    + OUTER.format(kind="FULL", on="x.tb/2 = y.tb/3"),
    "FULL_band_default": "DEFINE { query_name 'q'; outer_fill 'default'; } "
    + BAND.format(kind="FULL"),
    "above_full_join": EPOCHS
    + "QUERY j: "
    + OUTER.format(kind="FULL", on="x.tb/2 = y.tb + 1")
    + ";QUERY q: SELECT tb, count(*), sum(m) FROM j GROUP BY tb",
    "above_full_join_other": EPOCHS
    + "QUERY j: "
    + FILLED.format(on="x.tb/2 = y.tb + 1")
    + ";QUERY q: SELECT big, count(*), sum(n) FROM j GROUP BY other/2 AS big",
    "above_left_band": "QUERY j: "
    + BAND.format(kind="LEFT")
    + ";QUERY q: SELECT tb, count(*), sum(partner) FROM j GROUP BY ts/4 AS tb",
    "above_full_band": "QUERY j: "
    + BAND.format(kind="FULL")
    + ";QUERY q: SELECT tb, count(*), sum(partner) FROM j GROUP BY ts/4 AS tb",
    "filter_join": "QUERY q: SELECT x.ts, x.b FILTER_JOIN(ts, 3) FROM left.S x, right.S y "
    "WHERE x.a = y.a",
    "above_filter_join": "QUERY j: SELECT x.ts, x.b FILTER_JOIN(ts, 3) FROM left.S x, right.S y "
    "WHERE x.a = y.a; QUERY q: SELECT tb, count(*) FROM j GROUP BY ts/6 AS tb",
    "decreasing": "QUERY q: SELECT tb, count(*), sum(b) FROM left.S GROUP BY back/7 AS tb",
    "turned": "QUERY q: SELECT tb, count(*), sum(b) FROM left.S GROUP BY 0 - ts/7 AS tb",
    "decreasing_join": "QUERY d: SELECT tb, count(*) AS n FROM left.S GROUP BY back/7 AS tb;"
    "QUERY e: SELECT tb, count(*) AS n FROM right.S GROUP BY back/7 AS tb;"
    "QUERY q: SELECT x.tb, x.n, y.n AS m FROM d x FULL JOIN e y ON x.tb = y.tb + 1",
    "floating": "QUERY q: SELECT tb, count(*), sum(b) FROM left.S "
    "GROUP BY CAST(real * 0.7 AS LLONG) AS tb",
    "floating_join": "QUERY d: SELECT r, count(*) AS n FROM left.S GROUP BY real AS r;"
    "QUERY e: SELECT r, count(*) AS n FROM right.S GROUP BY real AS r;"
    "QUERY q: SELECT x.r, x.n, y.n AS m FROM d x LEFT JOIN e y ON x.r * 3.0 = y.r + 1.5",
    "two_columns": "QUERY q: SELECT t, count(*), sum(b) FROM left.S GROUP BY (ts + fine)/9 AS t",
    "several_keys": "QUERY q: SELECT tb, m, count(*) FROM left.S GROUP BY ts/9 AS tb, fine/4 AS m",
    "slack": "QUERY m: MERGE x.ts : y.ts SLACK 3 FROM left.S x, right.S y;"
    "QUERY q: SELECT tb, count(*), last(b) FROM m GROUP BY ts/6 AS tb",
    "merge_alone": "QUERY q: MERGE x.ts : y.ts FROM left.S x, right.S y",
    "windows": "QUERY w: SELECT count(*) AS n, sum(b) AS t FROM left.S [RANGE 4 SLIDE 4];"
    "QUERY q: SELECT sum(n), max(t) FROM w [RANGE 12 SLIDE 8]",
    "overlapping": "QUERY w: SELECT count(*) AS n, sum(b) AS t FROM left.S [RANGE 7 SLIDE 3];"
    "QUERY q: SELECT sum(n), max(t) FROM w [SLICES 9, 12]",
    "window_tuples": "QUERY q: SELECT ts, a, b FROM left.S [RANGE 9 SLIDE 4]",
    "window_top": "QUERY q: SELECT a, b FROM left.S [RANGE 9 SLIDE 9] ORDER BY b DESC LIMIT 2",
    "above_window_top": "QUERY t: SELECT ts, b FROM left.S [RANGE 9 SLIDE 9] "
    "ORDER BY b DESC LIMIT 2; QUERY q: SELECT tb, count(*), sum(b) FROM t GROUP BY ts/3 AS tb",
    "slices_top": "QUERY q: SELECT a, count(*) AS n FROM left.S [SLICES 5, 3] GROUP BY a "
    "ORDER BY n DESC LIMIT 1",
    "top_of_join": EPOCHS + "QUERY q: "
    "SELECT x.tb, x.n, y.n AS m FROM xs x JOIN ys y ON x.tb = y.tb ORDER BY x.n DESC LIMIT 1",
    "top_of_top": "QUERY t: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/5 AS tb, a "
    "ORDER BY n DESC LIMIT 2; QUERY q: SELECT tb, max(n) FROM t GROUP BY tb/2 AS tb",
    "empty_epochs": "DEFINE { query_name 'q'; empty 'emit'; } "
    "SELECT tb, count(*) FROM left.S WHERE b > 15 GROUP BY ts/2 AS tb",
    "empty_windows": "DEFINE { query_name 'q'; empty 'emit'; } "
    "SELECT count(*) FROM left.S [RANGE 4 SLIDE 3] WHERE b > 15",
    "empty_slices": "DEFINE { query_name 'q'; empty 'emit'; } "
    "SELECT count(*) FROM left.S [SLICES 2, 3] WHERE b > 15",
    "above_empty": "DEFINE { query_name 'e'; empty 'emit'; } "
    "SELECT tb, count(*) AS n FROM left.S WHERE b > 15 GROUP BY ts/2 AS tb;"
    "QUERY q: SELECT big, count(*), sum(n) FROM e GROUP BY tb/3 AS big",
    "running": "QUERY q: SELECT tb, a, count(*), sum(b) FROM left.S GROUP BY ts/4 AS tb, a "
    "CLOSING_WHEN count(*) = 0",
    "above_running": "QUERY r: SELECT tb, a, count(*) AS n FROM left.S GROUP BY ts/4 AS tb, a "
    "CLOSING_WHEN count(*) = 0; QUERY q: SELECT tb, sum(n) FROM r GROUP BY tb/2 AS tb",
    "running_windows": "QUERY w: SELECT a, count(*) AS n FROM left.S [RANGE 4 SLIDE 4] "
    "WHERE b > 12 GROUP BY a; QUERY q: SELECT tb, a, count(*) FROM w GROUP BY wend/4 AS tb, a "
    "CLOSING_WHEN count(*) = 0 AND tb % 5 = 0",
    "table": LIST + "QUERY q: SELECT tb, label, count(*) FROM left.S x JOIN list y ON x.a = y.k "
    "GROUP BY x.ts/6 AS tb, label",
    "table_tuples": LIST + "QUERY q: SELECT x.ts, x.b, label FROM left.S x LEFT JOIN list y "
    "ON x.a = y.k",
    "table_outer": LIST + "QUERY q: SELECT x.ts, x.b, label FROM left.S x FULL JOIN list y "
    "ON x.a = y.k",
    "above_table_default": LIST + "DEFINE { query_name 'j'; outer_fill 'default'; } "
    "SELECT x.ts, x.b, label FROM left.S x FULL JOIN list y ON x.b = y.k;"
    "QUERY q: SELECT tb, label, count(*) FROM j GROUP BY ts/6 AS tb, label",
    "above_shifted": EPOCHS
    + "QUERY j: "
    + FILLED.format(on="x.tb = y.tb + 1 AND x.a = y.a")
    + ";QUERY q: SELECT big, count(*), sum(n) FROM j GROUP BY other/2 AS big",
    "unordered": "PROTOCOL U (a INT, b INT); QUERY q: SELECT a, b + 1 AS c FROM left.U WHERE b > 0",
}  # fmt: skip


def disordered_rows(
    seed: int, count: int, band: int, nulls: bool, from_zero: bool = False
) -> list[dict[str, object]]:
    """Tuples as they arrive: `ts` late by at most the band, all other ordered columns in order."""
    rng = random.Random(seed)
    rows = random_rows(seed, count)
    if from_zero:
        first = int(str(rows[0]["ts"]))
        rows = [row | {"ts": int(str(row["ts"])) - first} for row in rows]
    late = sorted(rows, key=lambda row: int(str(row["ts"])) + rng.uniform(0, band))
    fine, back, real = rng.randrange(100), 0, -20.0
    for row in late:
        fine += rng.choice([0, 1, 3])
        back -= rng.choice([0, 0, 1, 4])
        real += rng.choice([0.0, 0.25, 1.5])
        row |= {"fine": fine, "back": back, "real": real}
        for name in ("ts", "fine", "back", "real"):
            if nulls and rng.random() < 0.04:
                row[name] = None
    return late


def random_cuts(seed: int, tables: Tables, largest: int = 25) -> list[Cut]:
    """Micro-batches of any size, empty ones too; interfaces end one after another."""
    rng = random.Random(seed)
    arrived, ended = dict.fromkeys(tables, 0), set[str]()
    cuts: list[Cut] = []
    while len(ended) < len(tables):
        for name in sorted(tables.keys() - ended):
            arrived[name] = min(len(tables[name]), arrived[name] + rng.randrange(largest))
            if arrived[name] == len(tables[name]) and rng.random() < 0.6:
                ended.add(name)
        cuts.append(Cut(dict(arrived), frozenset(ended)))
    return cuts


def random_arrivals(seed: int, folder: Path, queries: int = 10) -> tuple[Plan, Tables]:
    """A random query set and its tuples as they arrive: every third set in order, every fourth
    with tuples that have no time.
    """
    band = seed % 3 * 2
    text = RandomSet(seed).text(queries)
    if band:
        text = text.replace("increasing clock", f"banded_increasing({band}) clock")
    tables = {
        name: disordered_rows(seed * 7 + i, 50 + 11 * i, band, nulls=seed % 4 == 3)
        for i, name in enumerate(INTERFACES)
    }
    return plan_of(text, folder), tables


def special_arrivals(name: str, seed: int, folder: Path) -> tuple[Plan, Tables]:
    """The set of QUERIES with that name, whose stream is `q`."""
    (folder / "list.csv").write_text(LIST_ROWS)
    band = seed % 2 * 4
    order = f"banded_increasing({band})" if band else "increasing"
    tables = {
        interface: disordered_rows(seed * 2 + i, 60, band, seed % 3 == 2, from_zero=True)
        for i, interface in enumerate(INTERFACES)
    }
    return plan_of(PROTOCOL.format(order=order) + QUERIES[name] + ";", folder), tables
