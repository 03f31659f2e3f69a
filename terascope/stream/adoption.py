"""The state of an earlier run, taken over by a set that may have changed since.

In: the state a checkpoint holds, if it does, and the plan of the set that is to run. Out: the state
it goes on from. Queries that say the same go on; new ones begin with the first slice that begins
after them, so that no row is of half a slice; what nobody reads any more is forgotten.
"""

from __future__ import annotations

from typing import Final

from terascope.stream.plan import StreamPlan
from terascope.stream.state import Progress, State

ALIVE: Final = ".alive"
"""Behind the key of a stream: the groups of it that live on."""


def adopted(plan: StreamPlan, before: State | None, destinations: int) -> State:
    """The state that a set starts with."""
    state = State(destinations=destinations) if before is None else before.copy()
    state.texts = {output.name: output.text for output in plan.outputs}
    state.streams = {key: state.streams.get(key, Progress()) for key in plan.leaves.values()}
    state.queries = {
        output.name: state.queries.get(output.name, Progress()) for output in plan.outputs
    }
    state.segments = [s for s in state.segments if s.stream.removesuffix(ALIVE) in state.streams]
    return state
