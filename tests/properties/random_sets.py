"""Random query sets and streams, as GSQL text and rows, reproducible by seed.

Every query that is made is legal: it closes, its joins are bounded, its types fit. What the engines
make of it must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from terascope.types import parse_ip

PROTOCOL = "PROTOCOL S (ts UINT increasing clock(s), a INT, b INT, ip IP, s STRING, f FLOAT);"
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.1.7", "192.168.3.9", "2001:db8::1", "2001:db8::2"]
WORDS = ["get", "post", "head", "", "a_b", "x%y"]
INTERFACES = ("left", "right")
GS_LITE = {
    "INNER": "INNER_JOIN",
    "LEFT": "LEFT_OUTER_JOIN",
    "RIGHT": "RIGHT_OUTER_JOIN",
    "FULL": "OUTER_JOIN",
}


@dataclass(frozen=True)
class Known:
    """A stream a query may read: its columns by kind, and the ordered one."""

    name: str
    epoch: str
    ints: tuple[str, ...]
    others: tuple[str, ...] = ()
    clock: bool = False


BASE = Known("S", "ts", ("a", "b", "ts"), ("ip", "s", "f"), clock=True)


def random_rows(seed: int, count: int) -> list[dict[str, object]]:
    """Tuples in order of ts, with NULLs, duplicates and gaps in time."""
    rng = random.Random(seed)
    rows: list[dict[str, object]] = []
    ts = rng.randrange(0, 50)
    for _ in range(count):
        ts += rng.choice([0, 0, 0, 1, 1, 2, 7 if rng.random() < 0.1 else 0])
        rows.append(
            {
                "ts": ts,
                "a": rng.choice([None, -3, -1, 0, 1, 2, 2, 5]),
                "b": rng.randrange(-20, 21),
                "ip": parse_ip(rng.choice(ADDRESSES)) if rng.random() > 0.1 else None,
                "s": rng.choice([*WORDS, None]),
                "f": rng.choice([None, 0.0, 0.5, -1.25, 3.0, 1e6]),
            }
        )
    return rows


@dataclass
class RandomSet:
    """Builds one query set."""

    seed: int
    statements: list[str] = field(default_factory=lambda: [PROTOCOL])
    aggregated: list[Known] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def text(self, queries: int) -> str:
        makers = self.makers()
        self.aggregation()
        while len(self.statements) <= queries:
            self.rng.choice(makers)()
        return "\n".join(self.statements)

    def makers(self) -> list[Callable[[], None]]:
        """Each makes a query or two; one that is named twice is as often again."""
        return [
            self.selection, self.aggregation, self.aggregation, self.window, self.slices,
            self.over_aggregate, self.join, self.self_join, self.band_join, self.merge,
            self.distinct, self.top, self.running, self.cube, self.with_table, self.three_way,
            self.anti_join,
        ]  # fmt: skip

    # ---- pieces

    def add(self, query: str) -> str:
        name = f"q{len(self.statements)}"
        self.statements.append(f"QUERY {name}: {query};")
        return name

    def source(self) -> str:
        return self.rng.choice(["S", "left.S", "right.S", "[both].S"])

    def number(self, columns: tuple[str, ...], depth: int = 2) -> str:
        choice = self.rng.random()
        if depth == 0 or choice < 0.45:
            return self.rng.choice(columns)
        if choice < 0.6:
            return str(self.rng.randrange(-5, 30))
        left, right = self.number(columns, depth - 1), self.number(columns, depth - 1)
        operator = self.rng.choice(["+", "-", "*", "/ 3", "% 4", "& 6", "| 1", "^ 3", "div"])
        if operator[-1].isdigit():
            return f"(({left}) {operator})"
        if choice > 0.95:
            return f"(CASE WHEN {left} > 0 THEN {right} ELSE 1 END)"
        return f"(({left}) {operator} ({right}))"

    def condition(
        self, columns: tuple[str, ...], others: tuple[str, ...] = (), depth: int = 2
    ) -> str:
        choice = self.rng.random()
        if depth and choice < 0.35:
            joiner = self.rng.choice(["AND", "OR"])
            return (
                f"({self.condition(columns, others, depth - 1)} {joiner} "
                f"{self.condition(columns, others, depth - 1)})"
            )
        if depth and choice < 0.42:
            return f"NOT {self.condition(columns, others, depth - 1)}"
        if others and choice < 0.6:
            return self.rng.choice(
                [
                    "ip = 10.0.0.1",
                    "ip & 0xFFFFFF00 = 10.0.0.0",
                    "ip IS NULL",
                    "s LIKE 'g%'",
                    "s IN ('get', 'post')",
                    "s != 'head'",
                    "f > 0.25",
                    "in_subnet(ip, '10.0.0.0/24')",
                    "str_match_start[s, 'p']",
                ]
            )
        if choice < 0.7:
            return f"{self.number(columns, 1)} BETWEEN -2 AND {self.rng.randrange(0, 9)}"
        comparison = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        return f"{self.number(columns)} {comparison} {self.number(columns, 1)}"

    def where(self, columns: tuple[str, ...], others: tuple[str, ...] = ()) -> str:
        return f" WHERE {self.condition(columns, others)}" if self.rng.random() < 0.6 else ""

    def aggregates(self, columns: tuple[str, ...], others: tuple[str, ...] = ()) -> list[str]:
        pool = [
            "count(*)", "count({x})", "sum({x})", "min({x})", "max({x})", "avg({x})",
            "first({x})", "last({x})", "count(DISTINCT {x})", "count_dups({x})", "median({x})",
            "percentile({x}, 90)", "or_aggr({x})", "and_aggr({x})", "xor_aggr({x})",
            "stddev({x})", "sum(DISTINCT {x})",
        ]  # fmt: skip
        if others:
            pool += ["min(s)", "max(ip)", "last(s)", "first(ip)", "count(DISTINCT ip)", "sum(f)"]
        picked = self.rng.sample(pool, self.rng.randrange(1, 4))
        return [p.format(x=self.number(columns, 1)) for p in picked]

    def keys(self, others: tuple[str, ...] = ("ip", "s")) -> list[str]:
        pool = ["a", "b % 3 AS m", *others, "prefix(ip, 24, 64) AS net"]
        return self.rng.sample(pool, self.rng.randrange(0, 3))

    # ---- queries

    def selection(self) -> None:
        numbers = BASE.ints
        items = ["ts", "s", f"{self.number(numbers)} AS n", "ip", "a", "b + 1"]
        picked = ["ts", *self.rng.sample(items[1:], self.rng.randrange(1, 4))]
        self.add(
            f"SELECT {', '.join(picked)} FROM {self.source()}{self.where(numbers, BASE.others)}"
        )

    def aggregation(self) -> None:
        keys = self.keys()
        names = [k.split(" AS ")[-1] for k in keys]
        epoch = self.rng.choice(["ts/10", "ts/7", "(ts + 3)/5", "ts*2/20", "ts"])
        aggs = [f"{a} AS v{i}" for i, a in enumerate(self.aggregates(("a", "b"), BASE.others))]
        having = " HAVING count(*) > 1" if self.rng.random() < 0.3 else ""
        name = self.add(
            f"SELECT tb, {', '.join([*names, 'count(*) AS n', 'sum(b) AS total', *aggs])} "
            f"FROM {self.source()}{self.where(('a', 'b', 'ts'), BASE.others)} "
            f"GROUP BY {', '.join([f'{epoch} AS tb', *keys])}{having}"
        )
        self.aggregated.append(Known(name, "tb", ("n", "total"), tuple(names)))

    def window(self) -> None:
        length, slide = self.rng.randrange(1, 25), self.rng.randrange(1, 15)
        keys = [k for k in self.keys() if " AS " not in k]
        items = [*keys, *(f"{a} AS v{i}" for i, a in enumerate(self.aggregates(("a", "b"))))]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        self.add(
            f"SELECT {', '.join(items)} FROM {self.source()} "
            f"[RANGE {length} SLIDE {slide}]{self.where(('a', 'b'), BASE.others)}{group}"
        )

    def slices(self) -> None:
        lengths = [str(self.rng.randrange(1, 9)) for _ in range(self.rng.randrange(1, 4))]
        name = self.add(
            f"SELECT count(*) AS n, sum(b) AS total FROM {self.source()} "
            f"[SLICES {', '.join(lengths)}]"
        )
        if self.rng.random() < 0.5:
            slide = sum(map(int, lengths))
            self.add(f"SELECT sum(n), max(total) FROM {name} [RANGE {slide * 2} SLIDE {slide}]")

    def over_aggregate(self) -> None:
        below = self.rng.choice(self.aggregated)
        keys = self.rng.sample(below.others, self.rng.randrange(0, len(below.others) + 1))
        aggs = [f"{a} AS v{i}" for i, a in enumerate(self.aggregates(below.ints))]
        epoch = self.rng.choice(["tb", "tb/3 AS big"])
        items = [epoch.split(" AS ")[-1], *keys, *aggs]
        self.add(
            f"SELECT {', '.join(items)} FROM {below.name}{self.where(below.ints)} "
            f"GROUP BY {', '.join([epoch, *keys])}"
        )

    def join(self) -> None:
        x, y = self.rng.choice(self.aggregated), self.rng.choice(self.aggregated)
        shared = [k for k in x.others if k in y.others]
        on = ["x.tb = y.tb", *(f"x.{k} = y.{k}" for k in shared)]
        if self.rng.random() < 0.3:
            on.append("x.n <= y.n + 2")
        items = ["x.tb", *(f"x.{k}" for k in shared), "x.n", "y.n", "x.total - y.total AS d"]
        kind = self.rng.choice(["INNER", "LEFT", "RIGHT", "FULL"])
        condition = " AND ".join(on)
        spelling = self.rng.choice(
            [
                f"FROM {x.name} x {kind} JOIN {y.name} y ON {condition}",
                f"FROM {x.name} x {kind} JOIN {y.name} y WHERE {condition}",
                f"{GS_LITE[kind]} FROM {x.name} x, {y.name} y WHERE {condition} AND x.n > 0",
            ]
        )
        self.add(f"SELECT {', '.join(items)} {spelling}")

    def three_way(self) -> None:
        names = [self.rng.choice(self.aggregated).name for _ in range(3)]
        kind = self.rng.choice(
            ["INNER_JOIN FROM", "OUTER_JOIN FROM", "LEFT_OUTER_JOIN FROM", "FROM"]
        )
        self.add(
            f"SELECT x.tb, x.n, y.n, z.n, z.total {kind} {names[0]} x, {names[1]} y, {names[2]} z "
            "WHERE x.tb = y.tb AND y.tb = z.tb AND x.n = z.n"
        )

    def anti_join(self) -> None:
        """SQL's outer joins: what a side misses is NULL, and `tb` is still known."""
        x, y = self.rng.choice(self.aggregated), self.rng.choice(self.aggregated)
        kind = self.rng.choice(["LEFT", "LEFT", "RIGHT", "FULL"])
        more = self.rng.choice(["", " AND x.n = y.n", " AND x.total < y.total"])
        where = self.rng.choice(["y.tb IS NULL", "x.n IS NULL OR y.n IS NULL", "y.n > 1"])
        name = self.add(
            f"SELECT tb, x.tb AS xtb, y.tb AS ytb, x.n, y.n AS m FROM {x.name} x {kind} JOIN "
            f"{y.name} y ON x.tb = y.tb{more} WHERE {where}"
        )
        self.add(f"SELECT big, count(*), count(ytb), max(n) FROM {name} GROUP BY tb/3 AS big")

    def self_join(self) -> None:
        below = self.rng.choice(self.aggregated)
        on = self.rng.choice(["x.tb = y.tb + 1", "x.tb/2 = y.tb + 1", "x.tb - 2 = y.tb"])
        kind = self.rng.choice(["", "LEFT ", "FULL OUTER "])
        self.add(
            f"SELECT x.tb, x.n, y.n, y.total FROM {below.name} x {kind}JOIN {below.name} y ON {on}"
        )

    def band_join(self) -> None:
        low, high = self.rng.randrange(0, 4), self.rng.randrange(0, 4)
        kind = self.rng.choice(["", "LEFT "])
        window, near = self.rng.choice(
            [
                ("", f" AND y.ts BETWEEN x.ts - {low} AND x.ts + {high}"),
                ("", f" AND abs(x.ts - y.ts) <= {high}"),
                ("", f" AND x.ts - y.ts < {low + 1} AND y.ts - x.ts <= {high}"),
                (f" [RANGE {high + 1}]", ""),
            ]
        )
        self.add(
            f"SELECT x.ts, x.a, x.b, y.b FROM left.S x{window} {kind}JOIN right.S y "
            f"ON x.a = y.a{near} AND x.b > y.b"
        )

    def merge(self) -> None:
        name = self.add("MERGE R.ts : T.ts FROM left.S R, right.S T")
        self.add(
            f"SELECT tb, count(*), last(a), first(s) FROM {name}{self.where(('a', 'b'))} "
            "GROUP BY ts/9 AS tb"
        )

    def distinct(self) -> None:
        self.add(f"SELECT DISTINCT ts/10 AS tb, a, s FROM {self.source()}{self.where(('a', 'b'))}")

    def top(self) -> None:
        if self.rng.random() < 0.5:
            self.add(
                f"SELECT tb, a, count(*) AS n FROM {self.source()} GROUP BY ts/10 AS tb, a "
                f"ORDER BY n DESC LIMIT {self.rng.randrange(1, 4)}"
            )
        else:
            below = self.rng.choice(self.aggregated)
            self.add(f"SELECT tb, n, total FROM {below.name} ORDER BY total LIMIT 2")

    def running(self) -> None:
        closing = self.rng.choice(["count(*) = 0", "sum(b) > 10 OR count(*) = 0", "max(b) < 0"])
        self.add(
            f"SELECT tb, a, count(*), count_dups(b), sum(b) FROM {self.source()} "
            f"GROUP BY ts/10 AS tb, a CLOSING_WHEN {closing}"
        )

    def cube(self) -> None:
        shape = self.rng.choice(["CUBE(a, s)", "ROLLUP(a, s)", "GROUPING_SETS((a), (s), (a, s))"])
        self.add(
            f"SELECT tb, a, s, count(*), sum(b) FROM {self.source()} GROUP BY ts/20 AS tb, {shape}"
        )

    def with_table(self) -> None:
        self.add(
            "WITH t AS (SELECT tb, a, count(*) AS n FROM S GROUP BY ts/5 AS tb, a) "
            "SELECT tb, max(n), count(*) FROM (SELECT * FROM t WHERE n > 1) GROUP BY tb"
        )
