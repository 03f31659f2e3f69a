"""The interface of a connector: one engine-free module that turns a byte range of a source into
column batches.

In: a location (file, directory, glob) and the needed columns. Out: `Split`s, pure data that travel
to the reading task, and Arrow record batches read from one of them. This module is independent of
Spark: the reference interpreter, the Spark data source and, later, edge agents call the same code.

A `ReadReport` counts malformed input by a fixed set of reasons. No text of a file becomes part of a
reason, so that a writer of a source cannot make counters, metric labels or checkpoints grow:
numbers that vary (how many bytes were skipped) are counters beside the reason, names of files are a
list of limited length. Reasons of a column are `column 'x': ...`: one for each fault of each column
that a query set reads.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from terascope.diagnostic import SourceError
from terascope.types import Type

MOST_NAMED: Final = 20
"""Files that a report names; more are only counted."""


class FileFault(enum.StrEnum):
    """Why a file, or the rest of it, could not be used."""

    EMPTY = "empty file"
    NOT_A_CAPTURE = "not a capture file: neither pcap nor pcapng, plain or gzip"
    CUT_HEADER = "truncated file header"
    DAMAGED_GZIP = "damaged gzip stream"
    NOT_PARQUET = "not a Parquet file, or cut short"
    BAD_HEADER = "no usable CSV header"
    UNREADABLE = "file cannot be read"
    REPLACED = "file replaced, cut short or removed before it was read"


class RecordFault(enum.StrEnum):
    """Why a record was not used, where no header of a packet and no value of a column is wrong."""

    CUT_RECORD = "truncated record"
    DAMAGED_RECORD = "damaged record"
    BAD_TIME = "timestamp out of range"
    BAD_PACKET_BLOCK = "bad packet block"
    DAMAGED_ROWS = "row of a damaged Parquet row group"
    WRONG_FIELDS = "wrong number of fields"
    UNCLOSED_QUOTE = "quote not closed"
    BAD_QUOTE = "text after a closing quote"
    TOO_LONG = "row too long"
    INVALID_JSON = "invalid JSON"
    NOT_OBJECT = "not a JSON object"
    INVALID_UTF8 = "invalid UTF-8"


POSITION = "#pos"
"""int64 pseudo-column: where a tuple stands in its interface, (file ordinal << 40) + offset in the
unpacked file."""

LAYERS = "#layers"
"""int64 pseudo-column of packet sources: the bits of every protocol the packet belongs to."""

INTERFACE = "interface"
"""STRING column every source has: the interface a tuple came from."""

FILE_SHIFT = 40
HIDDEN_PREFIX = "#"
PARTITION_MARK: Final = "#"
"""Stands between the name of an interface and the number of one of its partitions."""
ClockUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
TICK_NS: Mapping[str, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds in a tick of a clock, by its unit."""
SHORTEST_TUPLE = 40.0
"""Bytes of a tuple of an unknown file: hardly any kind has shorter ones."""


class UnusableFile(SourceError):
    """One file of a source that cannot be read, or is not of the source's kind. Where a location
    names several files, it is counted and named, and the others are read.
    """

    def __init__(self, message: str, fault: FileFault = FileFault.UNREADABLE) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True)
class Column:
    """A column a source offers, with the properties its PROTOCOL declares."""

    name: str
    type: Type
    clock: str | None = None
    """The unit, s, ms, us or ns, of wall-clock time: files may write it as a date then."""
    checked_only: bool = field(default=False, kw_only=True)
    """Whether no query reads it, only the check of partitions. A value that cannot be converted is
    NULL then, and its row is not malformed."""


def partition_name(interface: str, number: int) -> str:
    """The name of a partition of an interface; no query can name it."""
    return f"{interface}{PARTITION_MARK}{number}"


def interface_of(name: str) -> str:
    """The interface that a partition belongs to; any other interface is its own."""
    return name.partition(PARTITION_MARK)[0]


def partition_of(name: str) -> int | None:
    """The number of a partition; None: the interface has none."""
    _, mark, number = name.rpartition(PARTITION_MARK)
    return int(number) if mark else None


Options: TypeAlias = tuple[tuple[str, str], ...]
Bounds: TypeAlias = tuple[tuple[str, int, int], ...]
"""(column, smallest, largest) of the integer columns for which that is known: in the units the
reader delivers, no tuple has a value outside and none is NULL. The ends themselves occur, unless
the tuple was malformed or the range has a part of a row group."""


EMPTY: Final[Options] = ((f"{HIDDEN_PREFIX}empty", ""),)
"""The options of a part that has no tuple: any bounds are true of it."""


@dataclass(frozen=True)
class Range:
    """A part of a file that can be read by itself."""

    start: int
    end: int
    """Half-open, in the connector's own unit: bytes of the file, or row groups."""
    options: Options = ()
    """Options for the reader of this part, besides the options of the source."""
    bounds: Bounds = ()


@dataclass(frozen=True)
class Split:
    """A unit of reading: one range of one file. Picklable; becomes one partition of the Spark data
    source.
    """

    kind: str
    interface: str
    path: str
    ordinal: int
    """Index of the file within its interface, in order of path: the high bits of `#pos`."""
    start: int
    end: int
    options: Options = ()
    bounds: Bounds = ()

    @property
    def source(self) -> str:
        """The interface as queries name it: all partitions of an interface have its name."""
        return interface_of(self.interface)

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no tuple."""
        return EMPTY[0] in self.options

    def bound(self, column: str) -> tuple[int, int] | None:
        """The smallest and largest value of a column; None when they are not known."""
        return next(((low, high) for name, low, high in self.bounds if name == column), None)


@dataclass(frozen=True)
class SplitRange(Split):
    """The tuples that a task takes of a split that several tasks read: by the values of a column,
    from `least` to below `less`. None: all on that side.
    """

    column: str = ""
    least: int | None = None
    less: int | None = None

    @property
    def is_first(self) -> bool:
        """Whether it is the first range of the split. The task that has it also takes the tuples
        without a value, and reports the split.
        """
        return self.least is None

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The tuples of a batch of the split that are in the range."""
        values = batch.column(self.column)
        inside = pa.scalar(True)
        if self.least is not None:
            inside = pc.greater_equal(values, pa.scalar(self.least, values.type))
        if self.less is not None:
            inside = pc.and_(inside, pc.less(values, pa.scalar(self.less, values.type)))
        if self.is_first:
            inside = pc.fill_null(inside, True)
        return batch.filter(inside)


@dataclass(frozen=True)
class Edge:
    """A preferred end of splits: where `floor(column / step)` changes, so that an epoch of that
    length lies in one split. Splits are right without it.
    """

    column: str
    step: int
    often: int = 0
    """A part of the step where many epochs end, if it is another one: splits that can be cut
    anywhere end there, too."""


@dataclass
class ReadReport:
    """The report of reading one split, filled while its batches are read."""

    bytes_read: int = 0
    tuples: int = 0
    malformed: Counter[str] = field(default_factory=Counter)
    """Reason -> count. A tuple that is malformed at a higher layer may still be delivered for a
    lower one. `terascope.connectors.base` has the reasons."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason -> bytes that were skipped, for the reasons that skip a number of bytes."""
    files: dict[str, str] = field(default_factory=dict)
    """Path -> reason, of the first files that could not be used, or not to their end."""
    horizon: dict[str, int] = field(default_factory=dict)
    """Largest value seen of each integer column in `clocks`, over every tuple, delivered or not."""

    def add(self, other: ReadReport) -> None:
        """Add the report of another stretch of the same interface."""
        self.bytes_read += other.bytes_read
        self.tuples += other.tuples
        self.malformed.update(other.malformed)
        self.skipped.update(other.skipped)
        for path, reason in other.files.items():
            self.name_file(path, reason)
        for clock, latest in other.horizon.items():
            self.horizon[clock] = max(self.horizon.get(clock, latest), latest)

    def blame(self, path: str, fault: FileFault | RecordFault, count: int = 1) -> None:
        """Count a fault of a file, and name the file."""
        self.malformed[fault.value] += count
        self.name_file(path, fault.value)

    def name_file(self, path: str, reason: str) -> None:
        """Name a file whose faults are counted, unless enough files are named already."""
        if len(self.files) < MOST_NAMED:
            self.files.setdefault(path, reason)


class Connector(Protocol):
    """One kind of source; instances hold no state. A connector subclasses it, gives `kind`,
    `columns`, `ranges` and `read`, and overrides the rest where its files allow more.
    """

    kind: str
    """The word before the colon in --source KIND:LOCATION."""
    suffixes: tuple[str, ...] = ()
    """Endings of the files that are read of a directory."""
    is_packets: bool = False
    """Whether it delivers packets, and so offers all packet protocols."""

    def columns(self, files: Sequence[Path], options: Mapping[str, str]) -> tuple[Column, ...]:
        """The columns the source has by itself, without a declared PROTOCOL."""
        ...

    def ranges(
        self, path: Path, options: Mapping[str, str], target_bytes: int, edge: Edge | None
    ) -> Iterable[Range]:
        """Cut a file into ranges of about `target_bytes`: between half as much and one and a half
        times as much, at an edge when there is one. Reads headers only.
        """
        ...

    def read(
        self, split: Split, columns: Sequence[Column], report: ReadReport
    ) -> Iterator[pa.RecordBatch]:
        """Batches holding just `columns`, in that order, typed as `arrow_type` says; counts go to
        `report`.
        """
        ...

    def fault(self, path: Path, options: Mapping[str, str]) -> FileFault | None:
        """Why a file as a whole cannot be used; None when its reader finds out, row by row.

        Raises:
            UnusableFile: it has the fault that the error names.
        """
        return None

    def estimated_tuples(self, path: Path, size: int) -> float:
        """The approximate number of tuples of a file of this size, from its first bytes alone."""
        return size / SHORTEST_TUPLE


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of a column of a GSQL type (see terascope.types)."""
    match type:
        case Type.BOOL:
            return pa.bool_()
        case Type.INT | Type.UINT | Type.LLONG | Type.ULLONG | Type.WIDE:
            return pa.int64()
        case Type.FLOAT:
            return pa.float64()
        case Type.STRING | Type.NULL:
            return pa.string()
        case Type.IP | Type.IPV6 | Type.BINARY:
            return pa.binary()


def record_batch(
    columns: Sequence[Column], arrays: Sequence[pa.Array], rows: int
) -> pa.RecordBatch:
    """A batch of columns. Without any column, as for a count alone, it has its rows, too."""
    if not columns:
        empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
        return pa.RecordBatch.from_struct_array(empty)
    schema = pa.schema([(c.name, arrow_type(c.type)) for c in columns])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def find_files(location: str, suffixes: Sequence[str]) -> list[Path]:
    """The files a location names: itself, those of a directory with one of `suffixes`, or a glob's;
    sorted by path.

    Raises:
        SourceError: nothing is there, or nothing fits.
    """
    path = Path(location)
    if path.is_dir():
        found = sorted(
            p for p in path.iterdir() if p.is_file() and any(p.name.endswith(s) for s in suffixes)
        )
        if not found:
            raise SourceError(
                f"directory '{location}' holds no file ending in {', '.join(suffixes)}"
            )
        return found
    if path.is_file():
        return [path]
    if path.exists():
        raise SourceError(
            f"'{location}' is a pipe or a device, which can be read only once;"
            " write what comes from it to a file, and name that"
        )
    if any(c in location for c in "*?["):
        anchor = Path(path.anchor) if path.is_absolute() else Path()
        pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else location
        found = sorted(p for p in anchor.glob(pattern) if p.is_file())
        if found:
            return found
        raise SourceError(f"no file matches '{location}'")
    raise SourceError(f"no such file or directory: '{location}'")
