"""That all contenders gave the same answers: the same rows in every query, in whatever order.

In: the Parquet files each contender wrote, DIR/QUERY.parquet or DIR/QUERY/*.parquet. Out: for each
query the number of rows and a fingerprint of them, equal for equal multisets of rows: the sum and
the XOR of a 64-bit hash of each row. Addresses may be text or numbers, integers of any width.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import duckdb

from bench.experiment import BenchError, Check, Contender, Outcome
from bench.worker import ContenderFailed, Worker

Kind = Literal["int", "float", "bool", "text", "address"]
VERSION = 1
"""Of the fingerprints; one that was kept by another version is not used."""


@dataclass(frozen=True)
class Answer:
    """A query whose rows are compared: its columns, each with what it holds."""

    query: str
    columns: Mapping[str, Kind]


@dataclass(frozen=True)
class Fingerprint:
    rows: int
    sum: str
    xor: str


Fingerprints = dict[str, Fingerprint]


@dataclass
class SameRows:
    """The check of all experiments that answer queries: everybody against the reference.

    The reference's fingerprints are kept beside the data, for runs in which it does not take part;
    where there are none yet, it is run once for them.
    """

    answers: tuple[Answer, ...]
    reference: Contender
    kept: Path
    """File of the reference's fingerprints; its name must depend on the data."""
    work: Path
    cores: int = 2
    seen: dict[str, Fingerprints] = field(default_factory=dict)

    def look(self, outcome: Outcome, output: Path) -> None:
        found = fingerprints(self.answers, output, self.cores)
        self.seen[outcome.contender] = found
        outcome.rows = sum(each.rows for each in found.values())

    def judge(self, outcomes: list[Outcome]) -> None:
        if not self.seen:
            return
        expected = self.expected()
        confirmed = False
        for outcome in outcomes:
            found = self.seen.get(outcome.contender)
            if found is None or outcome.contender == self.reference.name:
                continue
            differs = difference(expected, found)
            outcome.checked = differs is None
            confirmed |= outcome.checked
            if differs is not None:
                outcome.remark = f"differs from {self.reference.name}: {differs}"
        for outcome in outcomes:
            if outcome.contender == self.reference.name and outcome.seconds:
                outcome.checked = confirmed
                if not confirmed:
                    outcome.remark = "nobody gave the same answers, or nobody else was asked"

    def expected(self) -> Fingerprints:
        if self.reference.name in self.seen:
            found = self.seen[self.reference.name]
            self.kept.parent.mkdir(parents=True, exist_ok=True)
            told = {query: [each.rows, each.sum, each.xor] for query, each in found.items()}
            self.kept.write_text(json.dumps(told), encoding="utf-8")
            return found
        if self.kept.exists():
            told = json.loads(self.kept.read_text(encoding="utf-8"))
            return {query: Fingerprint(*each) for query, each in told.items()}
        worker = Worker(self.reference, self.cores, self.work)
        try:
            worker.run()
            self.seen[self.reference.name] = fingerprints(self.answers, worker.output, self.cores)
        except ContenderFailed as problem:
            raise BenchError(f"the reference {self.reference.name} failed: {problem}") from None
        finally:
            worker.close()
            shutil.rmtree(self.work, ignore_errors=True)
        return self.expected()


@dataclass
class EachItsOwn:
    """Contenders answer different sets: each is compared over its own."""

    checks: Mapping[str, Check]
    """By contender; those who answer the same set have the same object."""

    def look(self, outcome: Outcome, output: Path) -> None:
        self.checks[outcome.contender].look(outcome, output)

    def judge(self, outcomes: list[Outcome]) -> None:
        for check in {id(each): each for each in self.checks.values()}.values():
            check.judge([o for o in outcomes if self.checks[o.contender] is check])


def reference_key(*texts: str) -> str:
    """A name for kept fingerprints that changes with whatever they depend on."""
    told = json.dumps([VERSION, duckdb.__version__, *texts])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def difference(expected: Fingerprints, found: Fingerprints) -> str | None:
    """In words; None when there is none."""
    wrong = [query for query, each in expected.items() if found.get(query) != each]
    if not wrong:
        return None
    first = wrong[0]
    here, there = found[first].rows, expected[first].rows
    what = f"{here:,} rows, not {there:,}" if here != there else "other values"
    more = f", and {len(wrong) - 1} more queries" if len(wrong) > 1 else ""
    return f"{first} has {what}{more}"


def fingerprints(answers: tuple[Answer, ...], output: Path, cores: int = 2) -> Fingerprints:
    """Of all queries.

    Raises:
        BenchError: a query has no result, or one of another form.
    """
    found: Fingerprints = {}
    with duckdb.connect(config={"threads": cores}) as session:
        for each in answers:
            try:
                found[each.query] = fingerprint(session, each, output)
            except duckdb.Error as problem:
                reason = str(problem).partition("\n")[0]
                raise BenchError(f"cannot read the result of {each.query}: {reason}") from problem
    return found


def fingerprint(session: duckdb.DuckDBPyConnection, answer: Answer, output: Path) -> Fingerprint:
    files = result_files(output, answer.query)
    if not files:
        return Fingerprint(0, "0", "0")
    session.read_parquet([str(path) for path in files]).create_view("answer", replace=True)
    found = session.execute("DESCRIBE answer").fetchall()
    types = {str(name): str(type) for name, type, *_ in found}
    for column in answer.columns:
        if column not in types:
            raise BenchError(f"the result of {answer.query} has no column {column}")
    cells = ", ".join(canonical(f'"{c}"', kind, types[c]) for c, kind in answer.columns.items())
    (row,) = session.execute(
        f"SELECT count(*), coalesce(sum(h), 0)::VARCHAR, coalesce(bit_xor(h), 0)::VARCHAR"
        f" FROM (SELECT hash({cells}) AS h FROM answer)"
    ).fetchall()
    return Fingerprint(*row)


def result_files(output: Path, query: str) -> list[Path]:
    """The Parquet files of a query, none when it has no rows.

    Raises:
        BenchError: there is neither a file nor a folder of that name.
    """
    single, folder = output / f"{query}.parquet", output / query
    if single.is_file():
        return [single]
    folder = single if single.is_dir() else folder
    if not folder.is_dir():
        raise BenchError(f"no result of {query} was written")
    return sorted(folder.rglob("*.parquet"))


def canonical(column: str, kind: Kind, held: str) -> str:
    """The SQL of a value in the one form all contenders' values are compared in."""
    match kind:
        case "int":
            return f"CAST({column} AS BIGINT)"
        case "float":
            return f"CAST({column} AS DOUBLE)"
        case "bool":
            return f"CAST({column} AS BOOLEAN)"
        case "text":
            return f"CAST({column} AS VARCHAR)"
        case "address":
            if held != "VARCHAR":
                return f"CAST({column} AS BIGINT)"
            parts = [f"CAST(split_part({column}, '.', {i}) AS BIGINT)" for i in (1, 2, 3, 4)]
            return f"({parts[0]} * 16777216 + {parts[1]} * 65536 + {parts[2]} * 256 + {parts[3]})"
