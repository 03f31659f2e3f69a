"""Two busy links and a silent one (dissertation 4.8.1, 4.8.2): with heartbeats nothing waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from terascope.connectors.live import LiveSettings
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.operate.subscription import Subscription
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.spark.stream.runner import StreamRun
from tests.agreement import WITHOUT_COMPILING
from tests.properties.plain_streams import OffsetLog, PlainRun
from tests.settings import config_with

SECOND = 10**9
BEGIN, SECONDS, EPOCH = 1_000_000, 120, 10
BUSY, SILENT = ("main0", "main1"), "control"
SET = """
PROTOCOL F (time UINT increasing clock(s), a INT);
QUERY flows: SELECT tb, a, count(*) AS cnt FROM F GROUP BY time/10 AS tb, a;
QUERY flow1: SELECT tb, a, count(*) AS cnt FROM [main0_and_control].F GROUP BY time/10 AS tb, a;
QUERY flow2: SELECT tb, a, count(*) AS cnt FROM main1.F GROUP BY time/10 AS tb, a;
QUERY full_flow: SELECT flow1.tb, flow1.a, flow1.cnt AS cnt1, flow2.cnt AS cnt2
OUTER_JOIN FROM flow1, flow2 WHERE flow1.a = flow2.a AND flow1.tb = flow2.tb;
QUERY merged: SELECT time, a FROM F WHERE a > 3;
"""


@dataclass
class Watched:
    """What was seen of a run, second by second."""

    rows: dict[str, dict[int, int]] = field(default_factory=dict)
    """By query: when the rows of each epoch were there."""
    held: list[int] = field(default_factory=list)
    """Bytes in the store after each second."""


def compiled_set(folder: Path) -> Compiled:
    interfaces = {}
    for name in (*BUSY, SILENT):
        (folder / name).mkdir(parents=True)
        interfaces[name] = Interface(name, "csv", str(folder / name))
    sets = {"main0_and_control": ("main0", SILENT)}
    bindings = Bindings(interfaces, sets, config=WITHOUT_COMPILING.changed(split_bytes=1 << 12))
    return compile_set(Source(SET, str(folder / "idle.gsql")), bindings)


def traffic(folder: Path) -> Iterator[int]:
    """A file of every busy link for every second, and the time when it is there."""
    for second in range(BEGIN, BEGIN + SECONDS):
        for place, name in enumerate(BUSY):
            lines = [f"{second},{(second * 7 + i + place) % 9}" for i in range(5)]
            hidden = folder / name / f"{second}.hidden"
            hidden.write_text("\n".join(["time,a", *lines]) + "\n", encoding="utf-8")
            hidden.rename(hidden.with_suffix(".csv"))
        yield second + 1


def watched(folder: Path, heartbeat: int) -> Watched:
    """The set follows its folders; there is a trigger every second."""
    now = BEGIN
    live = LiveSettings(None, False, heartbeat * SECOND, 1 << 12, 1 << 20)
    settings = StreamRun(
        folder / "checkpoint",
        folder / "out",
        live=live,
        config=config_with(kernels="numpy", memory_bytes=1 << 28),
    )
    seen = Watched()
    run = PlainRun(compiled_set(folder / "in"), settings, OffsetLog(), lambda: now * SECOND)
    streams = {
        name: Subscription(folder / "out" / name, follow=False, from_start=True)
        for name in ("flows", "full_flow", "merged")
    }
    for now in traffic(folder / "in"):
        run.step()
        for name, rows in streams.items():
            for table in rows:
                for value in table.column(0).to_pylist():
                    epoch = value if name != "merged" else value // EPOCH
                    seen.rows.setdefault(name, {})[epoch] = now
        seen.held.append(sum(s.length for s in run.runner.pipeline.state.segments))
    run.close()
    return seen


@pytest.mark.parametrize("heartbeat", [1, pytest.param(4, marks=pytest.mark.soak)])
def test_rows_come_within_a_heartbeat_and_a_trigger(heartbeat: int, tmp_path: Path) -> None:
    seen = watched(tmp_path, heartbeat)
    for name in ("flows", "full_flow", "merged"):
        there = seen.rows[name]
        complete = range(BEGIN // EPOCH, (BEGIN + SECONDS - heartbeat - 1) // EPOCH)
        assert set(complete) <= there.keys(), f"{name} misses epochs"
        late = {e: there[e] - EPOCH * (e + 1) for e in complete}
        assert max(late.values()) <= heartbeat + 1, f"{name}: {late}"
    half = len(seen.held) // 2
    assert max(seen.held[half:]) <= 1.1 * max(seen.held[:half]), "what is held does not grow"


def test_without_heartbeats_the_silent_link_blocks(tmp_path: Path) -> None:
    seen = watched(tmp_path, 0)
    assert not seen.rows, "nothing is known of a link that never said anything"
    assert seen.held[-1] > 1.7 * seen.held[len(seen.held) // 2], "and everything is held"
