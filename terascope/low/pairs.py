"""Joins in a task: the groups of two streams meet where they are finished, epoch by epoch.

In: blocks of complete groups, and how far each stream has come. Out: rows of the join, for every
epoch that the task has alone on both sides. Rows whose partners may be in another task go up as
they are, and Spark joins them; so do rows that there is no memory for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from terascope.low.dictionary import Dictionary
from terascope.low.early import columns_read, places_of
from terascope.low.finish import columns as finished_columns
from terascope.low.groups import Block, GroupFields
from terascope.low.match import matched
from terascope.low.ownership import ALL, Epochs
from terascope.low.rows import RowProgram
from terascope.low.top import plain
from terascope.low.waiting import own
from terascope.plan.expr import Expr
from terascope.plan.rel import Field, JoinKind, Named

MEMORY_SHARE: Final = 8
"""The part of a task's memory that groups may have which wait for their partners."""


@dataclass(frozen=True)
class Side:
    """One input of a join."""

    stream: int
    """The low-level stream its rows are made of."""
    program: RowProgram
    fields: tuple[Field, ...]
    rest: int
    """The number under which its rows go up that cannot be joined here."""


@dataclass(frozen=True)
class Pairing:
    """A query that joins two streams of groups; see plan.rel.Join."""

    query: str
    kind: JoinKind
    left: Side
    right: Side
    equalities: tuple[tuple[Expr, Expr], ...]
    ahead: int
    """An epoch of the left meets the one so many before it on the right."""
    fills: tuple[Named, ...]
    after: RowProgram
    """What is done to the rows of the join."""
    fields: tuple[Field, ...]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    def joined(self, left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
        return self.after(matched(self.kind, left, right, self.equalities, self.fills))


@dataclass(frozen=True)
class Up:
    """Rows for Spark to join."""

    pairing: Pairing
    number: int
    columns: pa.RecordBatch


@dataclass(frozen=True)
class Made:
    """Rows of a join."""

    pairing: Pairing
    columns: pa.RecordBatch


Paired: TypeAlias = Up | Made


@dataclass(frozen=True)
class Piece:
    block: Block
    dictionaries: Sequence[Dictionary]


@dataclass
class Meeting:
    """What one join has collected: by the left's epoch, the groups of either side."""

    pairing: Pairing
    left: dict[int, list[Piece]] = field(default_factory=dict)
    right: dict[int, list[Piece]] = field(default_factory=dict)

    @property
    def sides(self) -> tuple[tuple[Side, dict[int, list[Piece]], int], ...]:
        pairing = self.pairing
        return (pairing.left, self.left, 0), (pairing.right, self.right, pairing.ahead)


class Pairs:
    """The joins of one task."""

    def __init__(
        self,
        pairings: Sequence[Pairing],
        groups: Mapping[int, GroupFields],
        owned: Mapping[int, Epochs | None],
        memory_bytes: int,
    ) -> None:
        """`owned`: by stream, the epochs that no other task has."""
        self._meetings = [Meeting(pairing) for pairing in pairings]
        self._groups = groups
        self._owned = owned
        self._memory_bytes = memory_bytes
        self._bytes = 0
        self._lost: set[tuple[int, int | None]] = set()
        self._reached: dict[int, int] = {}
        self._streams = {s.stream for p in pairings for s in p.sides}

    def __contains__(self, stream: int) -> bool:
        return stream in self._streams

    def lose(self, stream: int, epoch: int | None) -> None:
        """Some groups of an epoch went up as partials: it is not complete here."""
        if stream in self._streams:
            self._lost.add((stream, epoch))

    def take(
        self, stream: int, block: Block, dictionaries: Sequence[Dictionary]
    ) -> Iterator[Paired]:
        kept: Block | None = None
        for meeting in self._meetings:
            for side, collected, shift in meeting.sides:
                if side.stream != stream:
                    continue
                if block.epoch is None or not self._is_whole(meeting, block.epoch + shift):
                    piece = Piece(block, dictionaries)
                    yield Up(meeting.pairing, side.rest, self._rows(side, [piece]))
                    continue
                if kept is None:
                    kept = Block(block.epoch, own(block.rows))
                    self._bytes += kept.rows.nbytes
                collected.setdefault(block.epoch + shift, []).append(Piece(kept, dictionaries))
        if MEMORY_SHARE * self._bytes > self._memory_bytes:
            yield from self._make_room()

    def _is_whole(self, meeting: Meeting, epoch: int) -> bool:
        """Whether both sides of an epoch, by the left's number, are complete in this task."""
        for side, _, shift in meeting.sides:
            mine = self._owned.get(side.stream)
            own_epoch = epoch - shift
            if mine is None or own_epoch not in mine or (side.stream, own_epoch) in self._lost:
                return False
        return True

    def reach(self, stream: int, before: int) -> Iterator[Paired]:
        """All groups of a stream before an epoch have come."""
        if stream not in self._streams:
            return
        self._reached[stream] = before
        for meeting in self._meetings:
            if stream in (meeting.pairing.left.stream, meeting.pairing.right.stream):
                yield from self._join(meeting)

    def _join(self, meeting: Meeting) -> Iterator[Paired]:
        horizon = min(
            self._reached.get(side.stream, -ALL) + shift for side, _, shift in meeting.sides
        )
        due = sorted(e for e in meeting.left.keys() | meeting.right.keys() if e < horizon)
        ready = [e for e in due if self._is_whole(meeting, e)]
        yield from self._send_up(meeting, sorted(set(due).difference(ready)))
        left, right = (self._pieces(c, ready) for _, c, _ in meeting.sides)
        pairing = meeting.pairing
        if (left or right) and can_give_rows(pairing.kind, bool(left), bool(right)):
            rows = (self._rows(pairing.left, left), self._rows(pairing.right, right))
            yield Made(pairing, pairing.joined(*rows))
        self._bytes = sum(self._held().values())

    def _held(self) -> dict[int, int]:
        """The memory of every block that waits; one may wait in several joins."""
        return {
            id(piece.block): piece.block.rows.nbytes
            for meeting in self._meetings
            for _, collected, _ in meeting.sides
            for pieces in collected.values()
            for piece in pieces
        }

    def _make_room(self) -> Iterator[Paired]:
        """Everything that waits goes up, and what would have met it will follow."""
        for meeting in self._meetings:
            for side, collected, shift in meeting.sides:
                self._lost |= {(side.stream, epoch - shift) for epoch in collected}
        for meeting in self._meetings:
            yield from self._send_up(meeting, sorted(meeting.left.keys() | meeting.right.keys()))
        self._bytes = 0

    def _send_up(self, meeting: Meeting, epochs: Sequence[int]) -> Iterator[Paired]:
        for side, collected, _ in meeting.sides:
            pieces = self._pieces(collected, epochs)
            if pieces:
                yield Up(meeting.pairing, side.rest, self._rows(side, pieces))

    def _pieces(self, collected: dict[int, list[Piece]], epochs: Sequence[int]) -> list[Piece]:
        return [piece for epoch in epochs for piece in collected.pop(epoch, ())]

    def _rows(self, side: Side, pieces: Sequence[Piece]) -> pa.RecordBatch:
        fields = self._groups[side.stream]
        read = places_of(columns_read(side.program), fields)
        if not pieces:
            return side.program(finished_columns([], fields, [], places=read))
        batches: list[pa.RecordBatch] = []
        for dictionaries in {id(p.dictionaries): p.dictionaries for p in pieces}.values():
            blocks = [p.block for p in pieces if p.dictionaries is dictionaries]
            made = finished_columns(blocks, fields, dictionaries, places=read)
            batches.append(side.program(made))
        if len(batches) == 1:
            return batches[0]
        return pa.concat_batches([plain(batch) for batch in batches])

    def close(self) -> Iterator[Paired]:
        """Nothing more comes."""
        for stream in sorted(self._streams):
            yield from self.reach(stream, ALL)


def can_give_rows(kind: JoinKind, left: bool, right: bool) -> bool:
    """Whether a join has rows, when of its sides only those are there."""
    if left and right:
        return True
    return kind == "full" or kind == ("left" if left else "right")
