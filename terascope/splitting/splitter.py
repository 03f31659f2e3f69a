"""One splitter for all kinds of sources: splits in, growing partitions out.

In: splits of a source, finished or live, and a `SplitRule`. Out: the files of the partitions:
captures of packets (`outputs`), Parquet files of tables (`tables`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from terascope.connectors.base import (
    Column,
    FileFault,
    ReadReport,
    RecordFault,
    Split,
    interface_of,
)
from terascope.connectors.file_identity import FILE_OPTION, found_again
from terascope.connectors.packets.fields import FIELDS
from terascope.connectors.registry import FAULT_OPTION, Interface
from terascope.diagnostic import SourceError
from terascope.kernels.columns.arrays import Ints
from terascope.partitioning.balance import Balance
from terascope.partitioning.layout import CLOCK, Layout, StoredPartition, write_layout
from terascope.partitioning.placing import hashed_types
from terascope.splitting.captures import packet_pieces
from terascope.splitting.outputs import Heading, Outputs, OutputState, folder_name
from terascope.splitting.rebalance import HashCounts, Rebalancer
from terascope.splitting.rule import Placed, SplitRule
from terascope.splitting.tables import (
    TableOutputs,
    TablePiece,
    TextForm,
    parquet_pieces,
    text_pieces,
)

LEFT_OUT: Final = frozenset(str(one.value) for one in (*FileFault, *RecordFault))
"""The reasons of malformed input that is no tuple, and therefore in no partition."""
Seen = Callable[[int], None]
"""Takes the bytes of a split that were read."""


@dataclass(frozen=True)
class SplitSettings:
    """What is split, and where to."""

    interface: Interface
    columns: tuple[Column, ...]
    """The columns of the source; those of a source that grows are those that it began with."""
    rule: SplitRule
    folder: Path
    hosts: tuple[str, ...] = ()
    edge: int = 0
    """Seconds between the times at which ranges may change; 0: they do not."""

    @property
    def by(self) -> str:
        return "" if self.rule.set is None else str(self.rule.set)

    def host(self, number: int) -> str:
        """The host of a partition: each host has partitions that follow one another."""
        return self.hosts[number * len(self.hosts) // self.rule.count] if self.hosts else ""


@dataclass
class SourceSplitter(ABC):
    """Splits a source. Its rule may change between two splits."""

    settings: SplitSettings
    states: Sequence[OutputState]
    report: ReadReport = field(default_factory=ReadReport)
    unread: int = 0
    """Rows of which a value of the partitioning set cannot be read."""
    counts: HashCounts = field(default_factory=HashCounts)
    one_in: int = 8
    """The number of tuples of which one is counted."""
    rebalancer: Rebalancer | None = None
    placed: Placed = field(init=False)
    columns: tuple[Column, ...] = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self.placed = Placed(settings.rule)
        self.columns = settings.rule.columns(settings.columns, settings.edge > 0)
        if settings.edge:
            self.rebalancer = Rebalancer(settings.edge)

    @property
    def rule(self) -> SplitRule:
        return self.placed.rule

    def rebalance(self) -> bool:
        """Decide which ranges hold from the next edge on; whether they change."""
        if self.rebalancer is None or self.rule.set is None:
            return False
        found = self.rebalancer.decided(self.rule)
        changed = found is not self.rule
        self.placed.rule = found
        return changed

    def see(self, times: Ints | None) -> None:
        """Count the hashes of the tuples that were placed last."""
        if self.rule.set is None:
            return
        self.counts.add(self.placed.hashes, self.one_in)
        if self.rebalancer is not None and times is not None:
            self.rebalancer.see(self.placed.hashes, times)

    @abstractmethod
    def take(self, split: Split, seen: Seen | None = None) -> None:
        """Put the tuples of a split into the partitions."""

    @abstractmethod
    def look(self, split: Split, seen: Seen | None = None) -> None:
        """Count the hashes of the tuples of a split, and write nothing."""

    @abstractmethod
    def finish(self, force: bool = False) -> None:
        """Write all that is pending, and force it to disk."""

    @abstractmethod
    def fill_empty(self) -> None:
        """Give partitions without tuples an empty file, where that is known to be of use."""

    @abstractmethod
    def drop(self) -> None:
        """Drop files that are not complete."""

    @property
    @abstractmethod
    def stored_kind(self) -> str:
        """The kind of source that the partitions are."""

    def layout(self) -> Layout:
        count = self.rule.count
        partitions = tuple(
            StoredPartition(
                folder_name(number, count), self.settings.host(number), state.tuples, state.bytes
            )
            for number, state in enumerate(self.states)
        )
        by, edge = self.settings.by, self.settings.edge
        types = () if self.rule.set is None else hashed_types(self.rule.set)
        return Layout(by, self.stored_kind, partitions, self.rule.generations, edge, types)

    def write_layout(self) -> None:
        write_layout(self.settings.folder, self.layout())

    @property
    def left_out(self) -> dict[str, int]:
        """The malformed input that is in no partition, by reason."""
        found = self.report.malformed.items()
        return {why: count for why, count in found if why in LEFT_OUT and count}

    @property
    def balance(self) -> Balance:
        loads = tuple(float(state.tuples) for state in self.states)
        return Balance(interface_of(self.settings.interface.name), loads, self.settings.by)


def readable(split: Split, report: ReadReport) -> Split | None:
    """A split of a file that may have another name now; None: the file is unusable, and counted."""
    options = dict(split.options)
    if FAULT_OPTION in options:
        report.blame(split.path, FileFault(options[FAULT_OPTION]))
        return None
    if FILE_OPTION not in options:
        return split
    path = found_again(Path(split.path), options[FILE_OPTION])
    if path is None:
        raise SourceError(
            f"'{split.path}' was replaced or removed before all of it was split; what was split is"
            " complete up to there"
        )
    kept = tuple(option for option in split.options if option[0] != FILE_OPTION)
    return replace(split, path=str(path), options=kept)


@dataclass
class PacketSplitter(SourceSplitter):
    _heading: Heading | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # The records have their times: they need not be decoded once more.
        needed = self.settings.rule.set
        names = frozenset() if needed is None else frozenset(needed.columns)
        self.columns = tuple(FIELDS[name] for name in sorted(names))
        self.outputs = Outputs(self.settings.folder, self.states)

    @property
    def stored_kind(self) -> str:
        return "pcap"

    def take(self, split: Split, seen: Seen | None = None) -> None:
        found = readable(split, self.report)
        if found is None:
            return
        before = self.report.bytes_read
        for piece in packet_pieces(found, self.columns, self.report, self.settings.edge > 0):
            self._heading = piece.heading
            if piece.batch is None:
                numbers = self.placed.dealt(len(piece))
            else:
                numbers = self.placed.numbers(piece.batch, piece.times)
            self.outputs.add(piece.heading, piece.window, piece.starts, piece.lengths, numbers)
            self.see(piece.times)
            if seen is not None:
                seen(self.report.bytes_read - before)

    def look(self, split: Split, seen: Seen | None = None) -> None:
        found, report = readable(split, ReadReport()), ReadReport()
        if found is None:
            return
        for piece in packet_pieces(found, self.columns, report, self.settings.edge > 0):
            if piece.batch is not None:
                self.placed.numbers(piece.batch, piece.times)
                self.see(piece.times)
            if seen is not None:
                seen(report.bytes_read)

    def finish(self, force: bool = False) -> None:
        self.outputs.flush()
        if force:
            self.outputs.force()

    def fill_empty(self) -> None:
        if self._heading is not None:
            for number, state in enumerate(self.states):
                if state.segment < 0:
                    self.outputs.put_heading(number, self._heading)

    def drop(self) -> None:
        """Captures are good up to any packet."""


@dataclass
class TableSplitter(SourceSplitter):
    schema: pa.Schema | None = None
    form: TextForm | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.settings.interface.kind != "parquet":
            self.form = TextForm(self.settings.columns)
        if self.settings.edge and CLOCK not in {column.name for column in self.columns}:
            raise SourceError(
                f"{self.settings.interface.described} has no column '{CLOCK}', by which ranges"
                " could change; leave out --edge"
            )
        self.outputs = TableOutputs(self.settings.folder, self.states)

    @property
    def stored_kind(self) -> str:
        return "parquet"

    def pieces(self, split: Split, report: ReadReport) -> Iterator[TablePiece]:
        found = readable(split, report)
        if found is None:
            return
        if self.form is None:
            yield from parquet_pieces(found, self.columns, report)
        else:
            yield from text_pieces(found, self.form, self.columns, report)

    def take(self, split: Split, seen: Seen | None = None) -> None:
        before = self.report.bytes_read
        for piece in self.pieces(split, self.report):
            self.schema = piece.rows.schema
            if self.rule.set is None:
                numbers = self.placed.dealt(len(piece))
            else:
                numbers = self.placed.numbers(piece.batch, piece.times)
                self.unread += piece.unread
            self.outputs.add(piece.rows, numbers)
            self.see(piece.times)
            if seen is not None:
                seen(self.report.bytes_read - before)

    def look(self, split: Split, seen: Seen | None = None) -> None:
        report = ReadReport()
        for piece in self.pieces(split, report):
            self.placed.numbers(piece.batch, piece.times)
            self.see(piece.times)
            if seen is not None:
                seen(report.bytes_read)

    def finish(self, force: bool = False) -> None:
        self.outputs.forced = force
        self.outputs.finish()

    def fill_empty(self) -> None:
        schema = self.form.schema if self.form is not None else self.schema
        if schema is not None:
            self.outputs.put_empty(schema)

    def drop(self) -> None:
        self.outputs.drop()


def splitter_of(settings: SplitSettings, states: Sequence[OutputState]) -> SourceSplitter:
    """The splitter of a kind of source."""
    if settings.interface.is_packets:
        return PacketSplitter(settings, states)
    return TableSplitter(settings, states)


def new_states(count: int) -> list[OutputState]:
    return [OutputState() for _ in range(count)]


def check_sizes(splitter: SourceSplitter) -> None:
    """The tuples of all partitions are those that were read.

    Raises:
        AssertionError: the splitter has lost some.
    """
    total = int(np.sum([state.tuples for state in splitter.states]))
    assert total == splitter.report.tuples, f"{total} tuples of {splitter.report.tuples}"
