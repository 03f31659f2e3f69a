"""`onemore`: what one more query costs that shares its keys with the set.

The 78 queries of `queries78`, the same with twelve more whose keys the set has already (alarms:
other aggregates, few rows pass their HAVING), and those twelve each alone. Twelve, because one
would drown in the noise of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from bench.compare import EachItsOwn
from bench.experiment import Contender, Figures, Outcome, Prepared, Running, Settings, Tell
from bench.peers.duckdb import DuckDb
from bench.peers.terascope import Terascope
from bench.queries78 import EPOCH, PAIRS, PROTOCOL, RECORDS, flow_pair, gsql, sql
from bench.workload import Pair, same_rows

ADDED = PAIRS[::6][:12]
PACKETS = 5000
SET, LARGER, ALONE = "terascope", "terascope, twelve more", "terascope, twelve alone"


def alarm_gsql(a: str, b: str) -> str:
    return (
        f"QUERY {a}_{b}_alarm:\n"
        f"SELECT tb, {a}, {b}, SUM(packets) AS packets, MAX(bytes) AS largest\n"
        f"FROM flows.FLOW GROUP BY time/{EPOCH} AS tb, {a}, {b} HAVING SUM(packets) > {PACKETS};\n"
    )


def alarm_sql(a: str, b: str) -> str:
    return (
        f"SELECT DIV(time, {EPOCH}) AS tb, {a}, {b}, BIGINT(SUM(packets)) AS packets,"
        f" MAX(bytes) AS largest FROM flows GROUP BY DIV(time, {EPOCH}), {a}, {b}"
        f" HAVING SUM(flows.packets) > {PACKETS}"
    )


@dataclass(frozen=True)
class EachAlone:
    """Small sets, one after the other, each read, run and written for itself."""

    pairs: tuple[Pair, ...]
    name: str = ALONE
    needs: tuple[str, ...] = ()

    def start(self, cores: int) -> Running:
        from terascope.spark.session import open_session

        spark = open_session(f"local[{cores}]")
        return OneAfterAnother([Terascope(pair).on(spark) for pair in self.pairs], spark.stop)


class OneAfterAnother:
    def __init__(self, parts: Sequence[Running], close: Callable[[], object]) -> None:
        self._parts = parts
        self._close = close

    def warm(self) -> None:
        for part in self._parts:
            part.warm()

    def run(self, output: Path) -> Figures:
        for part in self._parts:
            part.run(output)
        return {}

    def close(self) -> None:
        self._close()


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    measured = {o.contender: o.median for o in outcomes}
    small, larger, alone = (measured.get(name) for name in (SET, LARGER, ALONE))
    if small is None or larger is None or alone is None:
        return ["not all three were measured"]
    more, one = (larger - small) / len(ADDED), alone / len(ADDED)
    return [
        f"one more query costs {more * 1000:.1f} ms, alone it takes {one * 1000:.1f} ms:"
        f" {more / one:.1%}"
    ]


@dataclass(frozen=True)
class OneMore:
    name: str = "onemore"
    title: str = "what one more query costs whose keys the set of 78 has already"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        records = settings.count(RECORDS)
        tell(f"{records:,} flow records in {settings.data}")
        alarms = {f"{a}_{b}_alarm": alarm_sql(a, b) for a, b in ADDED}
        texts = "\n".join(alarm_gsql(a, b) for a, b in ADDED)
        plain = self.pair(settings, gsql(PAIRS), sql(PAIRS))
        larger = self.pair(settings, f"{gsql(PAIRS)}\n{texts}", sql(PAIRS) | alarms)
        alone = tuple(
            self.pair(
                settings,
                f"{PROTOCOL}\n{alarm_gsql(a, b)}",
                {f"{a}_{b}_alarm": alarm_sql(a, b)},
                f"flows-{a}-{b}-alarm.gsql",
            )
            for a, b in ADDED
        )
        together = self.pair(settings, f"{PROTOCOL}\n{texts}", alarms)
        contenders: tuple[Contender, ...] = (
            Terascope(plain, SET),
            Terascope(larger, LARGER),
            EachAlone(alone),
        )
        checks = {
            SET: same_rows(settings, DuckDb(plain), plain.full),
            LARGER: same_rows(settings, DuckDb(larger), larger.full),
            ALONE: same_rows(settings, DuckDb(together), together.full),
        }
        about = (f"{records:,} flow records of one hour; 78 queries, and twelve alarms",)
        inputs = (plain.full.parquet,)
        return Prepared(contenders, EachItsOwn(checks), about, inputs=inputs, conclude=conclude)

    def pair(
        self, settings: Settings, text: str, queries: dict[str, str], script: str | None = None
    ) -> Pair:
        return flow_pair(settings, settings.count(RECORDS), text, queries, script)


EXPERIMENT = OneMore()
