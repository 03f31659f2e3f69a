"""A status made by hand, for the tests of everything that shows one."""

from __future__ import annotations

from dataclasses import replace

from terascope.operate.status import (
    Hold,
    LowStatus,
    QueryStatus,
    RunStatus,
    SourceStatus,
    Status,
    StoreStatus,
    Trace,
)
from terascope.streaming.replan.sharing_status import (
    ClusterStatus,
    StrategyStatus,
    TreeStatus,
    WindowStatus,
)

STARTED = 1_700_000_000.0
"""2023-11-14 22:13:20 UTC."""
NOW = STARTED + 1250


def ns(seconds: float) -> int:
    return round(seconds) * 1_000_000_000


def run_status(
    batch: int = 1204, updated: float = NOW, trigger_seconds: float = 1.0, pid: int = 4711
) -> RunStatus:
    return RunStatus(
        pid=pid,
        started=STARTED,
        set_name="flows.gsql",
        checkpoint="state",
        output="results",
        batch=batch,
        batch_seconds=0.31,
        state="running",
        updated=updated,
        trigger_seconds=trigger_seconds,
        now_ns=ns(NOW),
        driver_memory_bytes=512_000_000,
        worker_memory_bytes=1_130_000_000,
    )


ETH0 = SourceStatus(
    "eth0",
    "pcap",
    rate=12_345.6,
    tuples=15_432_000,
    bytes=9_876_543_210,
    watermark_ns=ns(NOW - 1),
    watermarks={"time": 1_700_001_249, "timestamp": ns(NOW - 1)},
    late=3,
    late_queries={"talkers": 3},
    late_seconds=4.0,
    heartbeat=1250,
)
ETH1 = SourceStatus(
    "eth1",
    "pcap",
    tuples=20,
    bytes=3000,
    watermark_ns=ns(NOW - 35),
    watermarks={"time": 1_700_001_215},
    backlog_bytes=3_400_000,
    malformed=2,
    malformed_reasons={"truncated-header": 2},
    silent_seconds=35.0,
    stalled="no file of the folder has grown for 35 s",
    heartbeat=1215,
    heartbeat_age_seconds=35.0,
)
TALKERS = QueryStatus(
    "talkers",
    rows=1204,
    last_epoch="170000121",
    closed_until="2023-11-14 22:33:30",
    closed_until_ns=ns(NOW - 40),
    lag_seconds=40.0,
    pending_rows=812,
    pending_bytes=1_234_567,
    open_slices=4,
    holds=(
        Hold("eth1", "2023-11-14 22:33:35", 35.0),
        Hold("eth0", "2023-11-14 22:34:09", 1.0),
    ),
)
SCANNERS = QueryStatus("scanners", rows=17, last_epoch="170000124", lag_seconds=2.1, open_slices=1)

TREE = TreeStatus(
    "eth0",
    ("low1", "low2", "low3"),
    ("{a, b} intermediate, 40 buckets", "  {a} query, 8 buckets", "  {b} query, 5 buckets"),
    intermediate=1,
    since=NOW - 300,
    gain=0.42,
    possible_gain=0.03,
    probes_per_tuple=1.625,
)

WINDOWS = WindowStatus(
    "TCP.time",
    ("srcIP",),
    (
        ClusterStatus(("talkers",), ("60/60",), "60"),
        ClusterStatus(("scanners", "peaks"), ("300/60", "90/30"), "30"),
    ),
    rate=12_400.0,
    measured=True,
    since=NOW - 300,
    costs={"shared": 900.0, "unshared": 1_500.5, "paired": None, "chosen": 800.0},
    rate_now=11_900.0,
    possible_gain=0.07,
    retired=2,
)

STATUS = Status(
    run_status(),
    (ETH0, ETH1),
    (TALKERS, SCANNERS),
    StoreStatus(files=14, bytes=12_300_000, segments=14, open_slices=5, groups=40_213),
    (LowStatus("low1", ("talkers", "scanners"), 15_432_020, 14_000_000, 0.907, 512, 3, 99, 41.5),),
    (Trace("t1", "eth0", (("decode", NOW - 2.0), ("low1", NOW - 1.5))),),
    {"threshold": "100"},
)
STRATEGY = StrategyStatus(
    "eth0", "low1", "quantile_len", "gk_lite", "few full buffers", NOW - 120, 9000.0, 40.0, 1.1
)
TREED = replace(STATUS, trees=(TREE,))
CHOSEN = replace(STATUS, strategies=(STRATEGY, replace(STRATEGY, strategy="", why="by tasks")))
WINDOWED = replace(STATUS, windows=(WINDOWS,))
