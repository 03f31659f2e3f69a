"""Task joins: the groups of two streams are joined where they are finished, epoch by epoch.

In: blocks of complete groups, and the epoch up to which each stream is complete. Out: rows of the
join, for every epoch of which the task owns both sides. Leftover rows, whose partners may be in
another task or for which there is no memory, are joined after the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from terascope.execute.grouping.pending_groups import own
from terascope.execute.rows.joins import matched
from terascope.execute.rows.steps import batch_of, places_of, run_steps
from terascope.kernels.columns.arrays import Flags, Ints
from terascope.kernels.columns.dictionary import Dictionary
from terascope.kernels.merge.finish import columns as finished_columns
from terascope.kernels.merge.groups import NO_EPOCH, Block, GroupFields
from terascope.physical.delivery import Side, TaskJoin
from terascope.physical.row_pipeline import columns_read
from terascope.physical.splits import ALL, Epochs
from terascope.plan.rel import JoinKind

MEMORY_SHARE: Final = 8
"""The share of a task's memory for groups that are pending for their partners."""


@dataclass(frozen=True)
class JoinRows:
    """Rows of a join, or leftover rows of one of its sides."""

    join: TaskJoin
    columns: pa.RecordBatch
    leftover: int | None = None
    """The number under which leftover rows are sent; None: rows of the join."""


SidePiece: TypeAlias = tuple[Block, Sequence[Dictionary]]
"""Groups in order of their epochs."""


@dataclass
class PendingSide:
    """The groups of one side of a join that are pending for their partners."""

    side: Side
    shift: int
    """The number added to an epoch of this side to get the epoch of the left side."""
    pieces: list[SidePiece] = field(default_factory=list)

    def take(self, before: int | None) -> list[SidePiece]:
        """Take the groups of the epochs before one, in epochs of the left side, or all."""
        if before is None:
            taken, self.pieces = self.pieces, []
            return taken
        parts = [(block.split(before - self.shift), known) for block, known in self.pieces]
        self.pieces = [(left, known) for (_, left), known in parts if len(left.rows)]
        return [(due, known) for (due, _), known in parts if len(due.rows)]


class PendingJoin:
    def __init__(self, join: TaskJoin) -> None:
        self.join = join
        self.sides = PendingSide(join.left, 0), PendingSide(join.right, join.ahead)


class TaskJoins:
    def __init__(
        self,
        joins: Sequence[TaskJoin],
        groups: Mapping[int, GroupFields],
        owned: Mapping[int, Epochs | None],
        memory_bytes: int,
    ) -> None:
        """`owned`: by stream, the epochs that no other task has."""
        self._meetings = [PendingJoin(join) for join in joins]
        self._groups = groups
        self._owned = owned
        self._memory_bytes = memory_bytes
        self._bytes = 0
        self._lost: dict[int, set[int]] = {}
        """By stream: the epochs that are not complete in this task."""
        self._reached: dict[int, int] = {}
        self._meetings_of: dict[int, list[PendingJoin]] = {}
        for meeting in self._meetings:
            for stream in dict.fromkeys(side.stream for side in meeting.join.sides):
                self._meetings_of.setdefault(stream, []).append(meeting)

    def __contains__(self, stream: int) -> bool:
        return stream in self._meetings_of

    def lose(self, stream: int, epochs: Ints) -> None:
        """Some groups of these epochs were sent as partials: they are not complete in this task."""
        if stream in self:
            self._lost.setdefault(stream, set()).update(epochs.tolist())

    def take(
        self, stream: int, block: Block, dictionaries: Sequence[Dictionary]
    ) -> Iterator[JoinRows]:
        kept: Block | None = None
        for meeting in self._meetings_of.get(stream, ()):
            for collected in meeting.sides:
                side = collected.side
                if side.stream != stream:
                    continue
                whole = self._are_whole(meeting, block.epochs, collected.shift)
                if not whole.all():
                    yield from self._up(meeting, side, [(block.where(~whole), dictionaries)])
                if whole.any():
                    if kept is None:
                        kept = replace(block, rows=own(block.rows))
                        self._bytes += kept.rows.nbytes
                    collected.pieces.append((kept.where(whole), dictionaries))
        if self._is_full():
            yield from self._make_room()

    def _are_whole(self, meeting: PendingJoin, epochs: Ints, shift: int) -> Flags:
        """The mask of epochs, of the side with this shift, that are complete here on both sides."""
        whole: Flags = epochs != NO_EPOCH
        for collected in meeting.sides:
            stream = collected.side.stream
            mine, lost = self._owned.get(stream), self._lost.get(stream)
            theirs = epochs + (shift - collected.shift)
            if mine is None:
                return np.zeros(len(epochs), np.bool_)
            whole &= mine.contain(theirs)
            if lost:
                whole &= ~np.isin(theirs, np.fromiter(lost, np.int64, len(lost)))
        return whole

    def reach(self, stream: int, before: int) -> Iterator[JoinRows]:
        """All groups of a stream before an epoch have been taken."""
        if stream not in self:
            return
        self._reached[stream] = before
        for meeting in self._meetings_of[stream]:
            yield from self._join(meeting)

    def _join(self, meeting: PendingJoin) -> Iterator[JoinRows]:
        horizon = min(self._reached.get(one.side.stream, -ALL) + one.shift for one in meeting.sides)
        ready: list[list[SidePiece]] = []
        for one in meeting.sides:
            whole: list[SidePiece] = []
            cut: list[SidePiece] = []
            for block, known in one.take(horizon):
                runs = self._are_whole(meeting, block.epochs, one.shift)
                whole += [(block.where(runs), known)] if runs.any() else []
                cut += [(block.where(~runs), known)] if not runs.all() else []
            yield from self._up(meeting, one.side, cut)
            ready.append(whole)
        left, right = ready
        join = meeting.join
        if (left or right) and can_give_rows(join.kind, bool(left), bool(right)):
            rows = (self._rows(join.left, left), self._rows(join.right, right))
            yield JoinRows(join, joined(join, *rows))

    def _is_full(self) -> bool:
        """Whether pending blocks take more memory than allowed. Bytes are counted as blocks come;
        blocks that have been joined since are subtracted only when the count is too high.
        """
        if MEMORY_SHARE * self._bytes > self._memory_bytes:
            self._bytes = sum(self._held().values())
        return MEMORY_SHARE * self._bytes > self._memory_bytes

    def _held(self) -> dict[int, int]:
        """The memory of every pending block; a block may be pending in several joins."""
        return {
            id(block): block.rows.nbytes
            for meeting in self._meetings
            for collected in meeting.sides
            for block, _ in collected.pieces
        }

    def _make_room(self) -> Iterator[JoinRows]:
        """Send all pending rows as leftover rows; their partners will follow."""
        for meeting in self._meetings:
            for collected in meeting.sides:
                for block, _ in collected.pieces:
                    self.lose(collected.side.stream, block.epochs)
        for meeting in self._meetings:
            for collected in meeting.sides:
                yield from self._up(meeting, collected.side, collected.take(None))
        self._bytes = 0

    def _up(
        self, meeting: PendingJoin, side: Side, pieces: Sequence[SidePiece]
    ) -> Iterator[JoinRows]:
        if pieces:
            yield JoinRows(meeting.join, self._rows(side, pieces), side.leftovers)

    def _rows(self, side: Side, pieces: Sequence[SidePiece]) -> pa.RecordBatch:
        fields = self._groups[side.stream]
        read = places_of(columns_read(side.program), fields)
        batches: list[pa.RecordBatch] = []
        for dictionaries in {id(known): known for _, known in pieces}.values():
            blocks = [block for block, known in pieces if known is dictionaries]
            made = finished_columns(blocks, fields, dictionaries, places=read)
            batches.append(run_steps(side.program.steps, made))
        return batches[0] if len(batches) == 1 else batch_of(batches, side.fields)

    def close(self) -> Iterator[JoinRows]:
        """Finish: no more groups follow."""
        for stream in sorted(self._meetings_of):
            yield from self.reach(stream, ALL)


def joined(join: TaskJoin, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a join, after its row pipeline."""
    made = matched(join.kind, left, right, join.equalities, join.fills)
    return run_steps(join.after.steps, made)


def can_give_rows(kind: JoinKind, left: bool, right: bool) -> bool:
    """Whether a join has rows when only these sides have any."""
    if left and right:
        return True
    return kind == "full" or kind == ("left" if left else "right")
