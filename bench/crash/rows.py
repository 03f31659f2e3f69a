"""The rows of a stream beside those of a batch.

In: the folder a stream wrote to, and the rows of the same set run as a batch. Out: by query what is
lost and what is there too often, following the manifests: files that none of them names are
nobody's rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.crash.queries import NAMES
from terascope.operate.subscription import Subscription
from terascope.session import QuerySet
from terascope.streaming.state.runs import MANIFEST

Rows = Mapping[str, Counter[str]]
"""By query, each row as a line of JSON, and how often it is there."""


@dataclass(frozen=True)
class Difference:
    """How the rows of one query differ from what they should be."""

    query: str
    lost: int
    too_many: int
    example: str

    def __str__(self) -> str:
        return f"{self.query}: {self.lost} lost, {self.too_many} too many, such as {self.example}"


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, default=str) for row in rows)


def batch_rows(queries: QuerySet) -> Rows:
    """What a batch over all data gives, without Spark."""
    results = queries.run(engine="local")
    return {name: counted(results[name].to_arrow().to_pylist()) for name in NAMES}


def stream_rows(output: Path) -> Rows:
    """What a stream has delivered so far."""
    return {
        name: counted(Subscription(output / name, follow=False, from_start=True).rows())
        for name in NAMES
    }


def save_rows(rows: Rows, path: Path) -> None:
    path.write_text(json.dumps({name: dict(found) for name, found in rows.items()}), "utf-8")


def load_rows(path: Path) -> Rows:
    return {name: Counter(found) for name, found in json.loads(path.read_text("utf-8")).items()}


def differences(wanted: Rows, found: Rows) -> list[Difference]:
    """None, when every row is there exactly as often as it should be."""
    told = []
    for name in NAMES:
        lost, more = wanted[name] - found[name], found[name] - wanted[name]
        if lost or more:
            example = next(iter(lost or more))
            told.append(Difference(name, lost.total(), more.total(), example))
    return told


def orphans(output: Path) -> list[Path]:
    """Files that are no part of a result."""
    found = []
    for name in NAMES:
        lines = (output / name / MANIFEST).read_text("utf-8").splitlines()
        known = {file["name"] for line in lines for file in json.loads(line).get("files", ())}
        found += [p for p in (output / name).iterdir() if p.name not in {*known, MANIFEST}]
    return found
