"""Random streams: query sets over files that arrive little by little, and what they must give.

In: a seed. Out: a `StreamCase`: files of two interfaces, with rates, gaps and disorder of their
own; a query set over them; and how it is streamed: into how many micro-batches, by how many tasks,
and where it is stopped and begun again. `expected` is what the reference makes of the same files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from terascope.connectors.base import arrow_type
from terascope.connectors.registry import Interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.reference.interpreter import evaluate
from terascope.types import Type, format_ip
from tests.agreement import WITHOUT_COMPILING, Answer, Answers, delivered
from tests.properties.engines import TYPES
from tests.properties.random_sets import INTERFACES, PROTOCOL, random_rows
from tests.properties.stream_queries import FALLING, WATCH_FILE, WATCHED, StreamSet
from tests.reference.connector_sources import ConnectorSources

HIGHEST: Final = 5000
"""What `down` falls from."""
NULL: Final = "NULL"
"""How a CSV file says it: an empty text is something else."""

FileKind: TypeAlias = Literal["parquet", "csv", "json"]
Tuples: TypeAlias = list[dict[str, object]]


KillPoint: TypeAlias = Literal["closing", "high level", "manifest", "state", "noted"]
"""Before which step of a batch; `noted`: before Spark notes that the batch is done."""
KILL_POINTS: Final[tuple[KillPoint, ...]] = get_args(KillPoint)


@dataclass(frozen=True)
class Stop:
    """The stream ends after so many batches, and goes on from its checkpoint."""

    after: int
    kill: KillPoint | None
    """The next batch is killed there; None: it is stopped between two batches."""
    nth: int
    """Of the steps of that kind in the batch."""
    torn: bool
    """A line was being written."""


@dataclass(frozen=True)
class StreamCase:
    """One seed: what is streamed, and how."""

    seed: int
    compiled: Compiled
    batch_bytes: int
    format: Literal["parquet", "csv"]
    """Of the results."""
    heartbeat_seconds: float
    stops: tuple[Stop, ...]
    tasks: tuple[int, ...]
    """Of each run; there is one more than there are stops."""
    portion: int | None
    """So many bytes of slices close in a batch, and everything else is tidied up at once; None: the
    limits are those of real streams."""

    @property
    def text(self) -> str:
        return self.compiled.source.text

    @property
    def interfaces(self) -> Mapping[str, Interface]:
        return self.compiled.bindings.interfaces

    def expected(self) -> Answers:
        """What the reference says, as files of results have it."""
        plan = self.compiled.optimized
        rows = evaluate(plan, ConnectorSources(self.interfaces))
        return {name: readable(answer) for name, answer in delivered(plan, rows).items()}


Binding: TypeAlias = Callable[[Interface, Tuples, random.Random], dict[str, Interface]]
"""Writes the tuples of an interface to files, and binds these."""


def whole(interface: Interface, tuples: Tuples, rng: random.Random) -> dict[str, Interface]:
    """One to four files in the folder of the interface."""
    kind = cast(FileKind, interface.kind)
    write_files(Path(interface.location), kind, cut(tuples, rng), rng)
    return {interface.name: interface}


def make_stream_case(
    seed: int,
    folder: Path,
    queries: int,
    rows: int,
    bind: Binding = whole,
    sets: type[StreamSet] = StreamSet,
) -> StreamCase:
    """The case of a seed, its files under `folder`."""
    rng = random.Random(seed)
    band = rng.choice([0, 0, 1, 3, 8])
    interfaces: dict[str, Interface] = {}
    for place, name in enumerate(INTERFACES):
        count = rng.choice([rows, rows // 3, 2 * rows])
        tuples = random_tuples(random.Random(seed * 7 + place), count, band)
        kind: FileKind = rng.choice(["parquet", "csv", "json"])
        options = (("null", NULL),) if kind == "csv" else ()
        interfaces |= bind(Interface(name, kind, str(folder / name), options), tuples, rng)
    total = sum(data_bytes(path) for i in interfaces.values() for path in i.files)
    bindings = Bindings(
        interfaces,
        {"both": INTERFACES},
        config=WITHOUT_COMPILING.changed(split_bytes=1 << 9),
    )
    (folder / WATCH_FILE).write_text(WATCHED, encoding="utf-8")
    text = sets(seed, [protocol(band)]).text(queries)
    stops = random_stops(rng)
    return StreamCase(
        seed,
        compile_set(Source(text, str(folder / f"stream{seed}.gsql")), bindings),
        total // rng.randrange(2, 11),
        rng.choice(["parquet", "parquet", "csv"]),
        rng.choice([0.0, 1.0, 5.0]),
        stops,
        tuple(rng.randrange(1, 4) for _ in range(len(stops) + 1)),
        rng.choice([None, None, 1, 400]),
    )


def random_stops(rng: random.Random) -> tuple[Stop, ...]:
    return tuple(
        Stop(
            rng.randrange(0, 3),
            rng.choice([None, *KILL_POINTS]),
            rng.randrange(0, 5),
            rng.random() < 0.5,
        )
        for _ in range(rng.choice([0, 1, 1, 2, 3]))
    )


def protocol(band: int) -> str:
    """Tuples by a time that rises, and by one that falls."""
    both = f"{PROTOCOL} {FALLING}"
    if not band:
        return both
    both = both.replace("increasing", f"banded_increasing({band})")
    return both.replace("decreasing", f"banded_decreasing({band})")


# ---- tuples --------------------------------------------------------------------------------------


def random_tuples(rng: random.Random, count: int, band: int) -> Tuples:
    """Tuples that fall behind earlier ones by no more than the band, at a rate of their own."""
    busy, gap = rng.choice([0.15, 0.4, 0.8]), rng.choice([0.0, 0.02, 0.05])
    now = band + rng.randrange(0, 40)
    tuples = random_rows(rng.randrange(1 << 30), count)
    for one in tuples:
        now += 1 if rng.random() < busy else 0
        now += rng.randrange(10, 60) if rng.random() < gap else 0
        one["ts"] = now - rng.randrange(0, band + 1)
    return tuples


def cut(tuples: Tuples, rng: random.Random) -> list[Tuples]:
    """One to four files, some of which may be empty."""
    edges = sorted(rng.randrange(0, len(tuples) + 1) for _ in range(rng.randrange(0, 4)))
    return [tuples[a:b] for a, b in zip([0, *edges], [*edges, len(tuples)], strict=True)]


def write_files(folder: Path, kind: FileKind, files: Sequence[Tuples], rng: random.Random) -> None:
    folder.mkdir(parents=True)
    for place, tuples in enumerate(files):
        write_file(folder / f"part{place:02d}.{kind}", kind, tuples, rng.randrange(3, 20))


def write_file(path: Path, kind: FileKind, tuples: Tuples, group_rows: int) -> None:
    """A file that appears whole."""
    columns: dict[str, pa.Array] = {
        c: pa.array([t[c] for t in tuples], arrow_type(type)) for c, type in TYPES.items()
    }
    columns["ip"] = pa.array([readable_value(t["ip"]) for t in tuples], pa.string())
    columns["down"] = pa.array([HIGHEST - cast(int, t["ts"]) for t in tuples], pa.int64())
    hidden = path.with_suffix(".hidden")
    if kind == "parquet":
        pq.write_table(pa.table(columns), hidden, row_group_size=group_rows)
    else:
        text = csv_text(columns) if kind == "csv" else json_text(columns)
        hidden.write_text(text, encoding="utf-8")
    hidden.rename(path)


def data_bytes(path: Path) -> int:
    """Of tuples: a Parquet file says more about them than they are."""
    if path.suffix != ".parquet":
        return path.stat().st_size
    told = pq.read_metadata(path)
    return sum(told.row_group(i).total_byte_size for i in range(told.num_row_groups))


def csv_text(columns: Mapping[str, pa.Array]) -> str:
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(csv_value, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def json_text(columns: Mapping[str, pa.Array]) -> str:
    return "".join(json.dumps(row) + "\n" for row in pa.table(columns).to_pylist())


def csv_value(value: object) -> str:
    return NULL if value is None else f'"{value}"' if isinstance(value, str) else str(value)


# ---- results -------------------------------------------------------------------------------------


def readable(answer: Answer) -> Answer:
    """Rows as files of results have them: addresses as text."""
    fields = tuple(
        replace(f, type=Type.STRING) if f.type in (Type.IP, Type.IPV6) else f for f in answer.fields
    )
    return Answer(fields, [tuple(map(readable_value, row)) for row in answer.rows])


def readable_value(value: object) -> object:
    return format_ip(value) if isinstance(value, bytes) else value
