"""A set of queries over one stream, in GSQL for us and in SQL for the others.

In: the data and the texts. Out: a `Workload`, what every contender of bench/peers can run. SQL is
written once, with a few words that differ between engines written as calls in capitals:
bench/dialects.py says what they become.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.compare import Answer, Kind, SameRows, reference_key
from bench.experiment import Contender, Figures, Settings
from terascope.diagnostic import Source
from terascope.pipeline import Bindings, compile_set
from terascope.session import Session
from terascope.types import Type

FOOTER = 64 << 10
"""The last bytes of a Parquet file: where its columns are, and between what their values lie."""


@dataclass(frozen=True)
class Workload:
    """Queries and the data they are asked of."""

    source: str
    """Our source, INTERFACE=KIND:LOCATION."""
    gsql: Path
    table: str
    """What the SQL calls the stream."""
    parquet: Path
    """The same tuples for engines that read SQL's kind of files."""
    sql: Mapping[str, str]
    """Query -> its SQL; every visible query of the GSQL has one."""

    @property
    def key(self) -> str:
        """Changes with the queries and the data."""
        with self.parquet.open("rb") as file:
            size = file.seek(0, SEEK_END)
            file.seek(max(0, size - FOOTER))
            footer = hashlib.sha256(file.read()).hexdigest()
        return reference_key(str(size), footer, self.gsql.read_text("utf-8"), *self.sql.values())


@dataclass(frozen=True)
class Pair:
    """A workload, and the same over little data to warm up with."""

    full: Workload
    small: Workload


class Queries:
    """A contender in its process: runs a workload by a function that writes one folder."""

    def __init__(
        self,
        pair: Pair,
        answer: Callable[[Workload, Path], Figures],
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self._pair = pair
        self._answer = answer
        self._close = close

    def warm(self) -> None:
        with TemporaryDirectory(prefix="terascope-bench-") as scratch:
            self._answer(self._pair.small, Path(scratch))

    def run(self, output: Path) -> Figures:
        return self._answer(self._pair.full, output)

    def close(self) -> None:
        self._close()


KINDS: Mapping[Type, Kind] = {
    Type.BOOL: "bool",
    Type.INT: "int",
    Type.UINT: "int",
    Type.LLONG: "int",
    Type.ULLONG: "int",
    Type.FLOAT: "float",
    Type.STRING: "text",
    Type.IP: "address",
}


def answers(workload: Workload) -> tuple[Answer, ...]:
    """The columns of every visible query, as its GSQL says."""
    session = Session()
    session.source(workload.source)
    text = Source(workload.gsql.read_text(encoding="utf-8"), str(workload.gsql))
    plan = compile_set(text, Bindings(interfaces=session.bindings.interfaces)).plan
    return tuple(
        Answer(stream.name, {f.name: KINDS[f.type] for f in stream.rel.visible})
        for stream in plan.visible
    )


def same_rows(settings: Settings, reference: Contender, workload: Workload) -> SameRows:
    """The check of contenders that answer a workload."""
    return SameRows(
        answers(workload),
        reference,
        settings.data / f"expected-{workload.key}.json",
        settings.data / "work" / "reference",
        settings.cores,
    )
