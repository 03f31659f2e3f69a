"""Folders that a plain run follows by a clock that the test moves: pieces are dropped into them.

In: a set, its folders. Out: `Followed`: time passes, pieces appear, folders go and come back; at
the end everything is closed and counted: in = used + late + malformed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from terascope.connectors.live import LiveSettings
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.operate.reporting import Reporter
from terascope.operate.source_report import RunFacts
from terascope.operate.status import RunStatus, Status
from terascope.physical.stream.rules import SetTexts, plan_stream
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.spark.stream.runner import StreamRun
from terascope.streaming.heartbeat import BatchReport
from terascope.streaming.sources import liveness_limits
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import Killed, OffsetLog, PlainRun
from tests.properties.stream_cases import KillPoint
from tests.properties.stream_results import rows_of
from tests.settings import config_with

SECOND: Final = 10**9
NOW: Final = 1_780_000_000
"""What time it is on the wall when a run begins."""
SKEW: Final = 2


class Followed:
    """A set that follows one folder of CSV files for each interface."""

    def __init__(self, folder: Path, text: str, interfaces: Iterable[str], **live: object) -> None:
        self.folder = folder
        self.names = tuple(interfaces)
        for name in self.names:
            self.of(name).mkdir(parents=True, exist_ok=True)
        self.text = text
        self.now = NOW
        self.live = replace(
            LiveSettings(split_bytes=1 << 12, most_bytes=1 << 20),
            **live,  # type: ignore[arg-type]
        )
        self.log = OffsetLog()
        self.run = self.opened(self.live)
        self.read: dict[str, int] = dict.fromkeys(self.names, 0)
        self.pieces = 0
        self.heard: list[BatchReport] = []
        """Of all batches that were done, before and after restarts."""

    def of(self, name: str) -> Path:
        return self.folder / "in" / name

    def opened(self, live: LiveSettings) -> PlainRun:
        config = config_with(
            late=self.folder / "late", kernels="numpy", memory_bytes=1 << 28, tasks=2
        )
        compiled = self.compiled
        own = liveness_limits(compiled.plan)
        in_ns = {name: round(limit * SECOND) for name, limit in own.items()}
        live_now = replace(live, own_liveness_ns=in_ns, skew_ns=SKEW * SECOND)
        settings = StreamRun(
            self.folder / "state", self.folder / "out", live=live_now, config=config
        )
        run = PlainRun(compiled, settings, self.log, lambda: self.now * SECOND)
        plan = plan_stream(compiled.job(live=True), SetTexts(compiled.texts()))
        first = RunStatus(
            1, NOW, "set.gsql", "state", None, heartbeat_seconds=live.heartbeat_ns / SECOND,
            skew_seconds=SKEW,
        )  # fmt: skip
        liveness = (live.liveness_ns or 0) / SECOND
        facts = RunFacts(first, liveness_seconds=liveness, own_liveness_seconds=own)
        self.reporter = Reporter(plan, facts, lambda: float(self.now), lambda: (0, 0))
        return run

    @property
    def compiled(self) -> Compiled:
        interfaces = {n: Interface(n, "csv", str(self.of(n))) for n in self.names}
        bindings = Bindings(
            interfaces,
            {},
            config=WITHOUT_COMPILING.changed(split_bytes=1 << 12),
        )
        return compile_set(Source(self.text, str(self.folder / "set.gsql")), bindings)

    def drop(self, name: str, times: Iterable[int]) -> None:
        """A piece with a tuple for each of these times."""
        held = list(times)
        self.pieces += 1
        hidden = self.of(name) / f"{self.pieces:04}.hidden"
        hidden.write_text("\n".join(["time,a", *(f"{t},{t % 7}" for t in held)]) + "\n")
        hidden.rename(hidden.with_suffix(".csv"))
        self.read[name] += len(held)

    def seconds(self, count: int, kill: KillPoint | None = None) -> None:
        """Time passes; there is a trigger every second. `kill`: and a restart in each of them."""
        for _ in range(count):
            self.now += 1
            if kill is not None:
                with suppress(Killed):
                    self.step(kill)
                self.restart()
            self.step()

    def step(self, kill: KillPoint | None = None) -> None:
        known = len(self.run.reports)
        self.run.step(kill)
        for report in self.run.reports[known:]:
            self.reporter.ingest(report)
            self.heard.append(report)

    def restart(self) -> None:
        self.run.close()
        self.run = self.opened(self.live)

    @property
    def status(self) -> Status:
        states = self.run.live.links.states()
        return self.reporter.status(replace(self.reporter.facts.run, state="running"), states)

    @property
    def state(self) -> object:
        return self.run.runner.pipeline.state

    def late(self, name: str) -> int:
        seen = self.run.runner.pipeline.state.seen
        return seen[name].late if name in seen else 0

    def finish(self) -> None:
        """Everything that is there is read, and all windows close."""
        self.run.close()
        self.run = self.opened(replace(self.live, until_idle=True))
        while not self.run.ended:
            self.now += 1
            self.run.step()
        self.run.close()

    def counted(self, query: str) -> dict[int, int]:
        """Of a query of epochs and counts: how often each epoch was counted."""
        found: dict[int, int] = {}
        for row in rows_of(self.folder / "out" / query):
            assert isinstance(row[0], int)
            assert isinstance(row[1], int)
            assert row[0] not in found, f"epoch {row[0]} of {query} comes twice"
            found[row[0]] = row[1]
        return found

    def assert_adds_up(self, query: str, interfaces: Iterable[str]) -> None:
        """Check in = used + late + malformed, of a query that counts all tuples of these."""
        used = sum(self.counted(query).values())
        names = list(interfaces)
        seen = self.run.runner.pipeline.state.seen
        assert [seen[n].tuples for n in names] == [self.read[n] for n in names]
        assert sum(self.read[n] for n in names) == used + sum(self.late(n) for n in names)
