"""`budget`: time and memory of a worker against the memory it may use.

The thirteen group-bys of `scaling` over 20 M and 200 M flow records at scale 1, with budgets from
256 MB to 4 GB, and the 78 of `queries78` over the 20 M. Epochs grow with the input: beyond the
budget groups wait on disk. A worker may have its budget and 300 MB, at any size of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from bench.compare import EachItsOwn, SameRows
from bench.experiment import Contender, Outcome, Prepared, Settings, Tell
from bench.peers.duckdb import DuckDb
from bench.peers.terascope import Terascope
from bench.queries78 import PAIRS, RECORDS, flow_pair, gsql, sql
from bench.scaling import CIRCLE
from bench.workload import Pair, same_rows

BUDGETS_MB = (256, 1024, 4096)
BESIDE_MB = 300
"""What a worker may have beside its budget: the interpreter, its libraries, the kernels."""
CASES = (("13 queries", CIRCLE, 1), ("13 queries", CIRCLE, 10), ("78 queries", PAIRS, 1))


def budget_of(contender: str) -> int:
    return int(contender.rsplit(" ", 2)[1])


def conclude(outcomes: list[Outcome]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for outcome in outcomes:
        if outcome.worker_mb is None:
            continue
        beside = outcome.worker_mb - budget_of(outcome.contender)
        verdict = "within" if beside <= BESIDE_MB else "MORE THAN"
        lines.append(
            f"{outcome.contender}: largest worker {outcome.worker_mb:,.0f} MB, {verdict} its budget"
            f" and {BESIDE_MB} MB"
        )
    return lines


def cases(settings: Settings) -> Sequence[tuple[str, Pair]]:
    found = []
    for name, pairs, size in CASES:
        records = settings.count(RECORDS * size)
        pair = flow_pair(settings, records, gsql(pairs), sql(pairs))
        found.append((f"{name}, {size}x", pair))
    return found


@dataclass(frozen=True)
class Budget:
    name: str = "budget"
    title: str = "time and memory of a worker against the memory it may use"

    def prepare(self, settings: Settings, tell: Tell) -> Prepared:
        contenders: list[Contender] = []
        checks: dict[str, SameRows] = {}
        inputs = []
        for name, pair in cases(settings):
            tell(f"{name}: {pair.full.parquet}")
            inputs.append(pair.full.parquet)
            check = same_rows(settings, DuckDb(pair), pair.full)
            for budget in BUDGETS_MB:
                contender = Terascope(pair, f"{name}, {budget} MB", memory_bytes=budget << 20)
                contenders.append(contender)
                checks[contender.name] = check
        largest = settings.count(RECORDS * max(size for _, _, size in CASES))
        return Prepared(
            tuple(contenders),
            EachItsOwn(checks),
            (f"up to {largest:,} flow records of one hour",),
            inputs=tuple(inputs),
            alternating=False,
            conclude=conclude,
        )


EXPERIMENT = Budget()
