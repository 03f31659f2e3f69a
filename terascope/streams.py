"""A stream before it runs: its plan, its settings, and its description for other processes.

In: a compiled set, the state of its checkpoint, and how its windows are composed. Out: the plan of
the stream; the settings of its live sources; the facts of its status that do not change; and a
`Run`, by which the commands find the set (terascope.streaming.state.runs).
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Final

from terascope.config import Config
from terascope.connectors.live import LiveSettings, Speed
from terascope.connectors.live.links import check_named_files
from terascope.diagnostic import OutputError, SourceError
from terascope.functions.casts import cast_value
from terascope.operate.control_requests import (
    SHOWN,
    changes_of,
    internal_streams,
    shown_name,
)
from terascope.operate.source_report import RunFacts
from terascope.operate.status import RunStatus
from terascope.physical.delivery import PartFormat, Sink
from terascope.physical.stream.plan import StreamPlan
from terascope.physical.stream.rules import SetTexts, plan_stream
from terascope.pipeline import Compiled
from terascope.streaming.replan.window_plans import WindowPlans
from terascope.streaming.sources import liveness_limits
from terascope.streaming.state.resume import resumed_state
from terascope.streaming.state.runs import Declared, Run, RunFolder
from terascope.streaming.state.state import StreamState
from terascope.types import Type

LIVE_SKEW: Final = 2.0
"""The default skew in seconds: data often appears in files a little later than its time."""
ALL_SOURCES: Final = "all"


def run_of(
    compiled: Compiled,
    plan: StreamPlan,
    port: int,
    checkpoint: str | Path,
    output: str | Path | None,
    format: PartFormat,
) -> Run:
    """A run of this process, which begins now."""
    folder = Path(checkpoint).absolute()
    chosen = None if output is None else Path(output).absolute()
    sink = Sink(str(chosen or RunFolder.of(folder).results), format)
    names = [o.name for o in plan.outputs if not o.name.endswith(SHOWN)]
    internal = internal_streams(compiled.plan)
    return Run(
        os.getpid(),
        port,
        compiled.source.title,
        str(folder),
        None if chosen is None else str(chosen),
        time.time(),
        streams={name: str(sink.folder_of(name)) for name in names},
        internal={name: str(sink.folder_of(shown_name(name))) for name in internal},
        parameters={
            p.name: Declared(p.type.value, str(cast_value(p.value, p.type, Type.STRING)))
            for p in compiled.plan.parameters
        },
    )


def check_files(plan: StreamPlan, speed: str | None) -> None:
    """Check the files that sources name, before anything starts.

    Raises:
        SourceError: one of them cannot be used.
    """
    interfaces = (one for read in plan.job.reads for one in read.interfaces)
    check_named_files(interfaces, replayed=speed is not None)


def nanoseconds(seconds: float) -> int | None:
    """Seconds as nanoseconds; None: without end."""
    return None if math.isinf(seconds) else round(seconds * 1e9)


def live_settings(compiled: Compiled) -> LiveSettings:
    """The settings of followed and replayed sources of a set.

    Raises:
        SourceError: the speed is none, or a replay is no source of the session.
    """
    config, own = compiled.bindings.config, liveness_limits(compiled.plan)
    return LiveSettings(
        Speed.parse(config.speed),
        config.until_idle,
        round(config.heartbeat * 1e9),
        compiled.bindings.cut_bytes(live=True),
        config.batch_bytes,
        round(skew_of(config) * 1e9),
        nanoseconds(config.replay_limit),
        replays_of(compiled),
        nanoseconds(config.liveness),
        {name: nanoseconds(limit) for name, limit in own.items()},
    )


def skew_of(config: Config) -> float:
    """Seconds that a silent source may be behind the clock."""
    if config.skew is not None:
        return config.skew
    return LIVE_SKEW if config.speed is None else 0.0


def replays_of(compiled: Compiled) -> frozenset[str]:
    """The sources that are declared to be replays.

    Raises:
        SourceError: one of them is no source of the session.
    """
    known, replays = compiled.bindings.interfaces, compiled.bindings.config.replay
    if ALL_SOURCES in replays:
        return frozenset(known)
    for name in replays:
        if name not in known:
            raise SourceError(
                f"'{name}' is to be a replay, but there is no such source; there are"
                f" {', '.join(sorted(known))}"
            )
    return frozenset(replays)


def planned_stream(
    compiled: Compiled, before: StreamState | None = None, windows: WindowPlans | None = None
) -> StreamPlan:
    """The plan of a set as a stream, with the parameters of a checkpoint, and with the compositions
    of windows in force, which `windows` records.
    """
    compiled = compiled.showing([] if before is None else before.shown)
    own = {stream.name: stream.text for stream in compiled.plan}
    changed = compiled.changed(changes_of(before, compiled.plan))
    known = windows or WindowPlans()

    def planned() -> StreamPlan:
        job, split = changed.job_and_split(live=True, in_force=known.in_force)
        known.learn(split.slicing)
        return plan_stream(job, SetTexts(compiled.texts(), own), split.slicing)

    plan = planned()
    return planned() if before is not None and known.drop_empty(plan, before) else plan


def could_go_on(compiled: Compiled, before: StreamState | None, windows: WindowPlans) -> bool:
    """Whether a set could continue from a state with other compositions of its windows."""
    try:
        resumed_state(planned_stream(compiled, before, windows), before, 1)
    except OutputError:
        return False
    return True


def run_facts(
    compiled: Compiled, plan: StreamPlan, checkpoint: str | Path, output: str | Path | None
) -> RunFacts:
    """The constant part of the status of the run."""
    config, values = compiled.bindings.config, plan.job.parameters
    run = RunStatus(
        os.getpid(),
        time.time(),
        compiled.source.title,
        str(Path(checkpoint).absolute()),
        None if output is None else str(Path(output).absolute()),
        trigger_seconds=config.trigger,
        heartbeat_seconds=config.heartbeat,
        skew_seconds=skew_of(config),
    )
    parameters = {
        p.name: str(cast_value(values.get(p.name, p.value), p.type, Type.STRING))
        for p in compiled.plan.parameters
    }
    own = liveness_limits(compiled.plan)
    return RunFacts(run, config.speed is None, parameters, config.liveness, own)
