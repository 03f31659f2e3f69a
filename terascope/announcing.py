"""The description of a running set for other processes.

In: the set, its plan, and its folders. Out: a `Run`, by which the commands find the set, its
streams and its parameters (terascope.streaming.state.runs).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from terascope.functions.casts import cast_value
from terascope.operate.control_requests import SHOWN, internal_streams, shown_name
from terascope.physical.delivery import PartFormat, Sink
from terascope.physical.stream.plan import StreamPlan
from terascope.pipeline import Compiled
from terascope.streaming.state.runs import Declared, Run, RunFolder
from terascope.types import Type


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
