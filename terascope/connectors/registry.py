"""Interfaces: the names of sources in queries, bound to a kind and a location outside of the query.

In: `[INTERFACE=]KIND:LOCATION`. Out: an `Interface`, and the connector that reads its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa

from terascope.connectors import base, file_identity
from terascope.connectors.arrival import ARRIVAL_OPTION, held_columns, is_arrival, with_arrival
from terascope.connectors.base import Column, Connector, FileFault, Range, ReadReport, Split
from terascope.connectors.packets.connector import GeneratedTraffic, PacketConnector
from terascope.connectors.tables.csv import CsvConnector
from terascope.connectors.tables.jsonlines import JsonConnector
from terascope.connectors.tables.parquet import ParquetConnector
from terascope.diagnostic import SourceError
from terascope.types import Type

GENERATE: Final = GeneratedTraffic.kind
"""The kind of source that is made while it is read: only live."""

KINDS: Mapping[str, Connector] = {
    "pcap": PacketConnector(),
    "csv": CsvConnector(),
    "parquet": ParquetConnector(),
    "json": JsonConnector(),
    GENERATE: GeneratedTraffic(),
}
"""The connector of every kind of source. A kind of your own is one line here."""
LOOKED_AT: Final = 4
"""Files of an interface, evenly apart, by which its tuples are estimated."""
FAULT_OPTION: Final = "#fault"
"""The option of a split that stands for a whole file that cannot be used: why."""
SYNONYMS = {"pcapng": "pcap", "jsonl": "json", "ndjson": "json"}


@dataclass(frozen=True)
class Partition:
    """One of the partitions of a source: all tuples with the same values of the partitioning set
    are in one of them.
    """

    number: int
    count: int
    """The number of all partitions."""
    by: str
    """The partitioning set, as text; empty: tuples are spread without regard to their values."""
    bounds: tuple[int, ...] = ()
    """The ends of the ranges of hashes that each partition has; empty: that is not known."""
    types: tuple[str, ...] = ()
    """The types of the values that were hashed; empty: those that the queries give them."""
    host: str = ""
    """The host that holds it, if that is known."""


@dataclass(frozen=True)
class Interface:
    """A named source of tuples."""

    name: str
    kind: str
    location: str
    options: tuple[tuple[str, str], ...] = ()
    partition: Partition | None = field(default=None, kw_only=True)
    """The partition of a source that it is; None: it is a source of its own."""

    @property
    def is_part(self) -> bool:
        """Whether it is one of several partitions of a source."""
        return self.partition is not None and self.partition.count > 1

    @property
    def partitioned_by(self) -> str:
        """The partitioning set, as text; empty where it has no partitions by values."""
        return self.partition.by if self.partition is not None and self.is_part else ""

    @property
    def is_packets(self) -> bool:
        return self.hosts_low_level and self.connector.is_packets

    @property
    def hosts_low_level(self) -> bool:
        """Whether the tasks that read it can run the low level themselves: a connector reads it."""
        return self.kind in KINDS

    @property
    def described(self) -> str:
        """The interface as an error names it."""
        return f"'{self.location}'"

    @property
    def noun(self) -> str:
        return "generated traffic" if self.kind == GENERATE else f"a {self.kind} file"

    @property
    def connector(self) -> Connector:
        return KINDS[self.kind]

    @cached_property
    def files(self) -> tuple[Path, ...]:
        if self.kind == GENERATE:
            raise SourceError(
                f"interface '{self.name}' is generated traffic, which is a live source; for a batch"
                " write it to a file with 'terascope generate' first"
            )
        if self.partition is not None and is_empty_folder(self.location):
            return ()
        return tuple(base.find_files(self.location, self.connector.suffixes))

    @property
    def is_there(self) -> bool:
        """Whether there is a file to look at; that of a live source may come later."""
        try:
            return self.kind == GENERATE or not self.hosts_low_level or bool(self.files)
        except SourceError:
            return False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if self.is_packets:
            return self.connector.columns((), dict(self.options))
        files = [path for path in self.files if self.names_file or self.fault(path) is None]
        return self.connector.columns(files or self.files, dict(self.options))

    @property
    def names_file(self) -> bool:
        """Whether the location is one file, and not a folder, a pattern, or one of the partitions
        of a source.
        """
        return self.partition is None and Path(self.location).is_file()

    def fault(self, path: Path) -> FileFault | None:
        """Why a file as a whole cannot be used.

        Raises:
            SourceError: it cannot be read, and is the one file that the location names.
        """
        try:
            return self.connector.fault(path, dict(self.options))
        except base.UnusableFile as error:
            if self.names_file and error.fault is FileFault.UNREADABLE:
                raise
            return error.fault

    def splits(self, target_bytes: int, edge: base.Edge | None = None) -> list[Split]:
        """Ranges to read, by absolute paths: a task may run in another working directory. A file of
        a folder that cannot be used is one split, whose reader counts and names it.

        Raises:
            SourceError: the one file that the location names cannot be used.
        """
        found: list[Split] = []
        for ordinal, path in enumerate(path.absolute() for path in self.files):
            fault = self.fault(path)
            parts: Iterable[Range]
            if fault is None:
                parts = self.connector.ranges(path, dict(self.options), max(target_bytes, 1), edge)
            elif self.names_file:
                raise unusable(path, fault)
            else:
                parts = [Range(0, 0, ((FAULT_OPTION, fault.value),))]
            found += [self.split(path, ordinal, part) for part in parts]
        return found

    def split(self, path: Path, ordinal: int, part: Range) -> Split:
        """A range of a file, by the number of the file, as a reader takes it. The files of all
        partitions of a source have different numbers.
        """
        if self.partition is not None:
            ordinal = ordinal * self.partition.count + self.partition.number
        return Split(
            self.kind, self.name, str(path), ordinal,
            part.start, part.end, self.options + part.options, part.bounds,
        )  # fmt: skip

    def estimated_tuples(self) -> float:
        """About how many tuples there are; 0.0 where there are no files to look at."""
        try:
            sizes = [(path, path.stat().st_size) for path in self.files]
        except (SourceError, OSError):  # whoever reads it will say so
            return 0.0
        filled = [(path, size) for path, size in sizes if size]
        if not filled:
            return 0.0
        number = min(LOOKED_AT, len(filled))
        some = [filled[i * len(filled) // number] for i in range(number)]
        found = sum(self.connector.estimated_tuples(path, size) for path, size in some)
        return found * sum(size for _, size in filled) / sum(size for _, size in some)

    def cannot_hold(self, name: str, type: Type) -> tuple[str, str] | None:
        """The reason why no value of a column can be of a declared type, with the remedy. The
        values of a file are checked one by one, and those that do not fit are counted.
        """
        return None


def parse_interface(text: str, options: Mapping[str, str] | None = None) -> Interface:
    """Read `[INTERFACE=]KIND:LOCATION`; without a name, the interface is called as its file is.

    Raises:
        SourceError: the text is not of that form, the kind is unknown, or the words of a generate
            source are wrong.
    """
    name, equals, rest = text.partition("=")
    if not equals or ":" in name:
        name, rest = "", text
    kind, colon, location = rest.partition(":")
    kind = SYNONYMS.get(kind.lower(), kind.lower())
    if not colon or not location:
        raise SourceError(
            f"'{text}' is not [INTERFACE=]KIND:LOCATION, such as eth0=pcap:trace.pcap"
        )
    if kind not in KINDS:
        raise SourceError(f"unknown kind of source '{kind}'; known: {', '.join(sorted(KINDS))}")
    if kind == GENERATE:
        from terascope.traffic.profile import parse_words

        parse_words(location)  # so that mistakes are reported at once
        name = name or kind
    name = name or Path(location).name.split(".")[0] or kind
    return Interface(name, kind, location, tuple(sorted((options or {}).items())))


def is_empty_folder(location: str) -> bool:
    """Whether a location is a folder that has nothing in it."""
    path = Path(location)
    return path.is_dir() and next(path.iterdir(), None) is None


def unusable(path: Path, fault: FileFault) -> SourceError:
    """The error for a file that a location names and that cannot be used."""
    return SourceError(f"'{path}' cannot be used: {fault.value}")


def read_split(
    split: Split, columns: Iterable[Column], report: ReadReport
) -> Iterator[pa.RecordBatch]:
    """Read one split with the connector of its kind, which does not see the hidden options.

    Raises:
        SourceError: the file of a batch is not what it was when the batch was planned.
    """
    hidden = {name: value for name, value in split.options if name.startswith(base.HIDDEN_PREFIX)}
    if FAULT_OPTION in hidden:
        report.blame(split.path, FileFault(hidden[FAULT_OPTION]))
        return
    own = replace(split, options=tuple(o for o in split.options if o[0] not in hidden))
    wanted = tuple(columns)
    path, planned = Path(split.path), hidden.get(file_identity.VERSION_OPTION)
    before = file_identity.check_unchanged(path, planned)
    try:
        yield from read_as_it_is(own, hidden, wanted, report)
    except Exception:
        # What was wrong may be of another file.
        file_identity.check_unchanged(path, planned, before)
        raise
    file_identity.check_unchanged(path, planned, before)


def read_as_it_is(
    split: Split, hidden: Mapping[str, str], columns: tuple[Column, ...], report: ReadReport
) -> Iterator[pa.RecordBatch]:
    """Read one split of a file that may have changed since it was found."""
    now = split
    try:
        if file_identity.FILE_OPTION in hidden:
            path = file_identity.found_again(Path(split.path), hidden[file_identity.FILE_OPTION])
            if path is None:
                raise base.UnusableFile(f"'{split.path}' is not the file that was found")
            now = replace(split, path=str(path))
        connector = KINDS[split.kind]
        if any(is_arrival(column.name) for column in columns):
            batches = connector.read(now, held_columns(columns), report)
            yield from with_arrival(batches, columns, int(hidden[ARRIVAL_OPTION]), report)
        else:
            yield from connector.read(now, columns, report)
    except base.UnusableFile:  # it could be used when it was found
        report.blame(split.path, FileFault.REPLACED)
        report.skipped[FileFault.REPLACED.value] += split.end - split.start


def versioned(splits: Iterable[Split]) -> list[Split]:
    """Splits with the present versions of their files; a file that cannot be used needs none."""
    version = cache(lambda path: str(file_identity.version_of(Path(path))))
    found = []
    for split in splits:
        if FAULT_OPTION not in dict(split.options):
            option = (file_identity.VERSION_OPTION, version(split.path))
            split = replace(split, options=(*split.options, option))
        found.append(split)
    return found
