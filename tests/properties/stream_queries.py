"""Random query sets for streams: those of batches, and what is let go in a way of its own.

Windows without tuples, watch lists, filter joins, tuples that nothing orders, merges that are
delivered, tuples of windows, joins of tuples by their time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.properties.random_sets import BASE, RandomSet

WATCH_FILE: Final = "watched.csv"
WATCHED: Final = "a,tag\n-1,odd\n0,none\n2,even\n7,absent\n"
WATCH_LIST: Final = (
    f"DEFINE {{ query_name 'watched'; filename '{WATCH_FILE}'; }} "
    "WATCHLIST FIELDS { int a (key); string tag; };"
)
FALLING: Final = "PROTOCOL D (down INT decreasing, a INT, b INT);"
UNORDERED: Final = "PROTOCOL U (a INT, b INT, s STRING);"


class StreamSet(RandomSet):
    """Builds one query set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # In one line with the first statement: queries are numbered by statements.
        self.statements[0] = " ".join([*self.statements, UNORDERED, WATCH_LIST])

    def makers(self) -> list[Callable[[], None]]:
        return [
            *super().makers(), self.empty_epochs, self.empty_windows, self.watch_list,
            self.filter_join,
            self.unordered, self.whole_merge, self.window_tuples, self.tuple_join, self.falling,
            self.window_family,
        ]  # fmt: skip

    def emitting(self, query: str) -> None:
        name = f"q{len(self.statements)}"
        self.statements.append(f"DEFINE {{ query_name '{name}'; empty 'emit'; }} {query};")

    def empty_epochs(self) -> None:
        aggregates = ", ".join(self.aggregates(("a", "b")))
        epoch = self.rng.choice(["ts/10", "ts/3", "(ts + 1)/4"])
        where = self.where(("a", "b"), BASE.others)
        self.emitting(f"SELECT tb, {aggregates} FROM {self.source()}{where} GROUP BY {epoch} AS tb")

    def empty_windows(self) -> None:
        length, slide = self.rng.randrange(1, 12), self.rng.randrange(1, 8)
        self.emitting(
            f"SELECT count(*), max(b) FROM {self.source()} [RANGE {length} SLIDE {slide}]"
            f"{self.where(('a', 'b'), BASE.others)}"
        )

    def watch_list(self) -> None:
        kind = self.rng.choice(["", "LEFT "])
        if self.rng.random() < 0.5:
            self.add(
                f"SELECT x.ts, x.b, w.tag FROM {self.source()} x {kind}JOIN watched w ON x.a = w.a"
            )
        else:
            self.add(
                f"SELECT tb, w.tag, count(*), sum(x.b) FROM {self.source()} x {kind}JOIN watched w "
                "ON x.a = w.a GROUP BY x.ts/6 AS tb, w.tag"
            )

    def filter_join(self) -> None:
        self.add(
            f"SELECT R.ts, R.a, R.b FILTER_JOIN(ts, {self.rng.randrange(1, 6)}) "
            "FROM left.S R, right.S T WHERE R.a = T.a AND T.b > 0"
        )

    def unordered(self) -> None:
        where = self.where(("a", "b"))
        name = self.rng.choice(["left", "right"])
        self.add(f"SELECT a, b, s FROM {name}.U{where}")

    def falling(self) -> None:
        source = self.rng.choice(["left.D", "right.D"])
        where = self.where(("a", "b"))
        queries = [
            f"SELECT tb, a, sum(b) FROM {source}{where} GROUP BY down/10 AS tb, a",
            f"SELECT tb, count(*) FROM {source}{where} GROUP BY (down + 3)/7 AS tb",
            f"SELECT down, a, b FROM {source}{where}",
            "MERGE R.down : T.down FROM left.D R, right.D T",
        ]
        self.add(self.rng.choice(queries))

    def whole_merge(self) -> None:
        slack = self.rng.choice(["", " SLACK 2"])
        self.add(f"MERGE R.ts : T.ts{slack} FROM left.S R, right.S T")

    def window_tuples(self) -> None:
        length, slide = self.rng.randrange(1, 9), self.rng.randrange(2, 9)
        self.add(f"SELECT a, b, wend FROM {self.source()} [RANGE {length} SLIDE {slide}]")

    def window_family(self) -> None:
        """Windows of the same keys, whose slices tasks put together for all of them."""
        source, where = self.source(), self.where(("a", "b"), BASE.others)
        keys = self.rng.sample(["a", "s", "ip"], self.rng.randrange(3))
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        pool = ["count(*)", "sum(b)", "min(b)", "max(f)", "sum(f)", "avg(b)", "xor_aggr(a)"]
        pool += ["median(b)", "stddev(b)", "variance(f)", "count_dups(a)", "heavy_hitters(a, 2)"]
        for _ in range(self.rng.randrange(1, 4)):
            length, slide = self.rng.randrange(1, 60), self.rng.choice([1, 1, 2, 3, 5, 9])
            found = [f"{agg} AS v{i}" for i, agg in enumerate(self.rng.sample(pool, 2))]
            having = self.rng.choice(["", "", " HAVING count(*) > 1", " HAVING wend % 2 = 0"])
            first = self.rng.choice(["", "", " ORDER BY v0 DESC LIMIT 2"])
            edges = self.rng.choice([[], ["wend"], ["wstart"], ["wstart", "wend"]])
            self.add(
                f"SELECT {', '.join([*keys, *found, *edges])} FROM {source} "
                f"[RANGE {length} SLIDE {slide}]{where}{group}{having}{first}"
            )

    def tuple_join(self) -> None:
        kind = self.rng.choice(["", "LEFT ", "FULL "])
        on = self.rng.choice(["x.ts = y.ts", "x.ts/2 = y.ts/2", "x.ts + 3 = y.ts"])
        self.add(
            f"SELECT x.ts, x.a, x.b, y.ts, y.b FROM left.S x {kind}JOIN right.S y "
            f"ON {on} AND x.a = y.a"
        )
