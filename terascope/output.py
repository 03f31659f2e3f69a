"""A folder of results: every query a file with a manifest beside it, all of them or none.

In: what a run gave, and where it is to go. Out: DIR/NAME.csv (.json, .ndjson, .parquet) and
DIR/NAME.manifest.json. Everything is written into a folder of its own first and takes its place
only when all of it is there, so that results of an earlier run are never half overwritten.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from terascope.connectors.base import ReadReport
from terascope.diagnostic import OutputError, as_mistake, reason_of
from terascope.files import PRIVATE, escaped, folder_mode, is_part, set_modes
from terascope.pipeline import Compiled
from terascope.plan.plan import Plan, reads
from terascope.plan.rel import Scan, walk
from terascope.plan.show import show_value
from terascope.version import VERSION

FileFormat: TypeAlias = Literal["csv", "json", "ndjson", "parquet"]
FILE_FORMATS: tuple[FileFormat, ...] = ("csv", "json", "ndjson", "parquet")
EARLIER = ".earlier"


def file_name(query: str, suffix: str = "") -> str:
    """A query's file, or its folder; a character that no name should have is written as %XX."""
    name = escaped(query)
    return f"{name}.{suffix}" if suffix else name


# ---- all or nothing ------------------------------------------------------------------------------


@contextmanager
def staged(directory: Path, mode: int = PRIVATE) -> Iterator[Path]:
    """A folder to write to; its contents move to `directory` at the end, unless something failed.
    The files get `mode`, and new folders are as open as the files.

    Entered before the expensive part of a run, it also proves that the directory can be written.

    Raises:
        OutputError: it cannot.
    """
    created = make_directory(directory, mode)
    try:
        with as_mistake(OutputError, f"cannot write to '{directory}'"):
            made = TemporaryDirectory(
                prefix=".terascope-", dir=directory, ignore_cleanup_errors=True
            )
        with made as name:
            staging = Path(name)
            yield staging
            set_modes(staging, mode)
            move_into_place(staging, directory)
    finally:
        if created and not any(directory.iterdir()):
            directory.rmdir()


def make_directory(directory: Path, mode: int = PRIVATE) -> bool:
    """Make the directory; return whether it had to be made."""
    if directory.is_dir():
        return False
    if directory.exists():
        raise OutputError(f"cannot write to '{directory}': it is a file, not a directory")
    if not directory.absolute().parent.is_dir():
        raise OutputError(f"cannot write to '{directory}': its parent directory does not exist")
    with as_mistake(OutputError, f"cannot make directory '{directory}'"):
        directory.mkdir()
        directory.chmod(folder_mode(mode))
    return True


def move_into_place(staging: Path, directory: Path) -> None:
    """Move earlier results away first, and back when a new one cannot be put in place.

    Raises:
        OutputError: something stands in their place that is no result.
    """
    names = sorted(path.name for path in staging.iterdir())
    for name in names:
        refuse_foreign(directory / name, is_folder=(staging / name).is_dir())
    earlier = staging / EARLIER
    moved: list[str] = []
    try:
        earlier.mkdir()
        for name in names:
            moved.append(name)
            if (directory / name).exists():
                (directory / name).replace(earlier / name)
            (staging / name).replace(directory / name)
    except OSError as problem:
        for name in moved:
            if (earlier / name).exists():
                (earlier / name).replace(directory / name)
        raise OutputError(f"cannot write to '{directory}': {reason_of(problem)}") from problem


def refuse_foreign(target: Path, is_folder: bool) -> None:
    """Only a result gives way to a result: a file, or a folder with nothing in it but parts.

    Raises:
        OutputError: it is something else.
    """
    if not target.exists() and not target.is_symlink():
        return
    if target.is_symlink() or target.is_dir() != is_folder:
        other = "link" if target.is_symlink() else "file" if is_folder else "folder"
        raise OutputError(
            f"cannot write '{target}': a {other} is in its place; remove it, or choose another"
            " output directory"
        )
    if is_folder:
        foreign = next((path for path in sorted(target.iterdir()) if not is_part(path)), None)
        if foreign is not None:
            raise OutputError(
                f"cannot replace '{target}': it has '{foreign.name}', which is no part of a result;"
                " move that away, or choose another output directory"
            )


# ---- the manifest --------------------------------------------------------------------------------


def write_manifest(
    folder: Path,
    compiled: Compiled,
    query: str,
    file: str,
    format: FileFormat,
    rows: int,
    reports: Mapping[str, ReadReport],
) -> None:
    told = manifest(compiled, query, reports)
    told |= {"file": file, "format": format, "rows": rows}
    path = folder / file_name(query, "manifest.json")
    text = json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    with as_mistake(OutputError, f"cannot write '{path.name}'"):
        path.write_text(text, encoding="utf-8")


def manifest(compiled: Compiled, query: str, reports: Mapping[str, ReadReport]) -> dict[str, Any]:
    """All that explains a result file: the query, what it was computed from, what its columns
    are.
    """
    plan = compiled.plan
    streams = streams_below(plan, query)
    sources = [interface_entry(compiled, n, reports) for n in interfaces_below(plan, streams)]
    malformed: Counter[str] = Counter()
    for source in sources:
        malformed.update(source["malformed"])
    return {
        "terascope": VERSION,
        "query": query,
        "gsql": plan[query].text,
        "comment": plan[query].comment,
        "reads": {n: plan[n].text for n in streams if n != query and plan[n].text},
        "parameters": [
            {
                "name": p.name,
                "type": p.type.label,
                "value": None if p.value is None else show_value(p.value, p.type),
            }
            for p in plan.parameters
        ],
        "columns": column_entries(compiled, query),
        "sources": sources,
        "tuples": sum(source["tuples"] for source in sources),
        "malformed": malformed,
    }


def column_entries(compiled: Compiled, query: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for field in compiled.plan[query].rel.visible:
        entry: dict[str, Any] = {"name": field.name, "type": field.type.label}
        if (known := compiled.orders[query].get(field.name)) is not None:
            slope = known.slope
            entry |= {"order": slope.trend.value, "strict": slope.strict, "disorder": slope.band}
            entry["clock"] = known.clock
        entries.append(entry)
    return entries


def streams_below(plan: Plan, query: str) -> list[str]:
    """The query and every stream it is computed from, in the order of the plan."""
    found = {query}
    for stream in reversed(plan.streams):
        if stream.name in found:
            found |= {read.stream for read in reads(stream.rel)}
    return [stream.name for stream in plan if stream.name in found]


def interfaces_below(plan: Plan, streams: list[str]) -> list[str]:
    scans = (r for name in streams for r in walk(plan[name].rel) if isinstance(r, Scan))
    return sorted({interface for scan in scans for interface in scan.interfaces})


def interface_entry(
    compiled: Compiled, name: str, reports: Mapping[str, ReadReport]
) -> dict[str, Any]:
    interface = compiled.bindings.interfaces[name]
    report = reports.get(name, ReadReport())
    return {
        "interface": name,
        "kind": interface.kind,
        "location": interface.location,
        "options": dict(interface.options),
        "files": [str(path) for path in interface.files],
        "tuples": report.tuples,
        "bytes_read": report.bytes_read,
        "malformed": dict(sorted(report.malformed.items())),
        "unusable_files": report.files,
    }
