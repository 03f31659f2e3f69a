"""A set of windows over the SYNs as a job.

In: windows and a way to share slices. Out: the job, its kernels compiled; bench/low_run.py runs it.
"""

from __future__ import annotations

from pathlib import Path

from bench.low_run import prepared
from bench.windows.snort import gsql
from terascope.config import Config
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.physical.job import Job
from terascope.pipeline import Bindings, compile_set
from terascope.sharing.slices import Periodic
from terascope.sharing.windows import Mode


def plan_windows(syns: Path, windows: tuple[Periodic, ...], grouped: bool, mode: Mode) -> Job:
    interface = Interface("snort", "parquet", str(syns))
    config = Config(share_windows=mode, share_sample="always")
    bindings = Bindings(interfaces={"snort": interface}, config=config)
    return prepared(compile_set(Source(gsql(windows, grouped), "snort.gsql"), bindings).job())
