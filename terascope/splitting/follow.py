"""Splitting a source while it grows, each tuple exactly once.

In: `SplitSettings` of a file or folder that is followed. Out: partitions that grow, which a stream
can follow in turn.

Work is done in batches of the journal of the live source (`connectors.live`): offsets between which
the splits are always the same. Before a batch its plan is put in place as a whole: where it starts
and ends in the source, how long each output is before it, and the ranges of hashes that hold. A
process that dies leaves the plan of the batch it was in. The next one runs the batch again from the
lengths in the plan: it writes the same bytes to the same places. So outputs never shrink and never
change under those who read them, and a batch that was done twice is in them once. The plan of the
next batch says that the one before is complete; a batch is on disk before that is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from terascope.connectors.base import Column, ReadReport
from terascope.connectors.live import Links, LiveSettings, Offset
from terascope.diagnostic import OutputError, SourceError, as_mistake, reason_of
from terascope.files import make_folder, sync
from terascope.partitioning.layout import Generation, read_layout
from terascope.splitting.finished import check_empty
from terascope.splitting.outputs import OutputState
from terascope.splitting.splitter import (
    PacketSplitter,
    SourceSplitter,
    SplitSettings,
    TableSplitter,
    new_states,
    splitter_of,
)
from terascope.types import Type

FOLDER: Final = ".split"
"""The folder, among the partitions, of what is needed to go on."""
PLAN: Final = "plan.json"
VERSION: Final = 1
STATUS_EVERY: Final = 10
"""Batches after which the manifest states the sizes of partitions."""


@dataclass(frozen=True)
class BatchPlan:
    """A batch, and everything as it is before it."""

    identity: dict[str, Any]
    """The split that it belongs to."""
    columns: tuple[Column, ...]
    """The columns of the source when the split began."""
    start: Offset
    end: Offset
    """The start again: there is no batch."""
    states: tuple[OutputState, ...]
    generations: tuple[Generation, ...]
    latest: int = -1
    """The largest time of all tuples before."""
    turn: int = 0
    as_text: tuple[str, ...] = ()
    unread: int = 0
    tuples: int = 0
    malformed: tuple[tuple[str, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        return counts(self.start) == counts(self.end)

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("identity", "latest", "turn", "unread")},
            "version": VERSION,
            "columns": [[one.name, one.type.value] for one in self.columns],
            "start": self.start.to_json(),
            "end": self.end.to_json(),
            "states": [list(asdict(state).values()) for state in self.states],
            "generations": [
                [one.from_time, [str(bound) for bound in one.bounds]] for one in self.generations
            ],
            "as_text": list(self.as_text),
            "tuples": self.tuples,
            "malformed": list(self.malformed),
        }

    @staticmethod
    def from_json(held: dict[str, Any]) -> BatchPlan:
        """Raises:
        KeyError, TypeError, ValueError: it is no plan.
        """
        if held["version"] != VERSION:
            raise ValueError(f"version {held['version']} is unknown, this program reads {VERSION}")
        return BatchPlan(
            held["identity"],
            tuple(Column(name, Type(type)) for name, type in held["columns"]),
            Offset.from_json(held["start"]),
            Offset.from_json(held["end"]),
            tuple(OutputState(*state) for state in held["states"]),
            tuple(
                Generation(tuple(map(int, bounds)), start) for start, bounds in held["generations"]
            ),
            held["latest"],
            held["turn"],
            tuple(held["as_text"]),
            held["unread"],
            held["tuples"],
            tuple((why, count) for why, count in held["malformed"]),
        )


def counts(offset: Offset) -> dict[str, int]:
    """The entries of the journal up to an offset."""
    return {name: link.count for name, link in offset.links.items()}


def write_plan(folder: Path, plan: BatchPlan) -> None:
    """Put the plan in place as a whole, on disk when this returns."""
    path = folder / FOLDER / PLAN
    draft = path.with_suffix(".new")
    with as_mistake(OutputError, f"cannot write '{path}'"):
        draft.write_text(json.dumps(plan.to_json()), encoding="utf-8")
        sync(draft)
        draft.replace(path)
        sync(path.parent)


def read_plan(folder: Path) -> BatchPlan | None:
    """The plan of an earlier process; None: there was none.

    Raises:
        SourceError: it cannot be read.
    """
    path = folder / FOLDER / PLAN
    if not path.is_file():
        return None
    try:
        return BatchPlan.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as problem:
        raise SourceError(f"cannot read '{path}': {reason_of(problem)}") from problem
    except (KeyError, TypeError, ValueError) as problem:
        raise SourceError(f"'{path}' is no plan of a split: {problem}") from problem


class FollowedSplit:
    """A split that goes on until it is stopped, or until the source gives nothing more."""

    def __init__(self, settings: SplitSettings, until_idle: bool = False) -> None:
        """Raises:
        OutputError: the folder has something else in it.
        SourceError: the folder has another split, or the source cannot be read.
        """
        self._folder = settings.folder
        identity = identity_of(settings)
        plan = read_plan(settings.folder)
        if plan is None:
            check_unbegun(settings.folder)
            make_folder(settings.folder / FOLDER)
        elif plan.identity != identity:
            raise SourceError(
                f"'{settings.folder}' was split otherwise: {difference(plan.identity, identity)};"
                " give the same flags, or another folder"
            )
        interface = settings.interface
        self._links = Links(
            [interface],
            {interface.name: None},
            None,
            LiveSettings(until_idle=until_idle, heartbeat_ns=0),
            settings.folder / FOLDER / "journal",
        )
        if plan is None:
            initial = self._links.initial()
            states = tuple(new_states(settings.rule.count))
            generations = settings.rule.generations
            plan = BatchPlan(identity, settings.columns, initial, initial, states, generations)
            write_plan(settings.folder, plan)  # before any file has these columns
        rule = replace(settings.rule, generations=plan.generations)
        self._settings = replace(settings, rule=rule)
        self.splitter: SourceSplitter = restored(self._settings, plan)
        self.stalled: str | None = None
        """Why the source cannot be read."""
        self.ended = False
        """Whether nothing more can come."""
        self._batches = 0
        self._offset = plan.start
        if not plan.is_empty:
            self._run(plan.start, plan.end)
        cut(self.splitter)
        self._offset = replace(plan.end, ended=False)  # more may have come since
        self._write_plan(self._offset)
        self.splitter.write_layout()

    def step(self) -> bool:
        """Split what is there now; whether there was anything.

        Raises:
            SourceError: the source cannot be read any more.
            OutputError: a partition cannot be written.
        """
        self._links.poll()
        found = self._links.latest(self._offset)
        states = self._links.states()
        self.stalled = next((one.stalled for one in states if one.stalled), None)
        self.ended = found.ended
        if counts(self._offset) == counts(found):
            return False
        if self.splitter.rebalance():
            self.splitter.write_layout()  # before any tuple is placed by the new ranges
        self._write_plan(found)
        self._links.commit(self._offset)
        self._run(self._offset, found)
        self._offset = found
        self._batches += 1
        if self._batches % STATUS_EVERY == 0:
            self.splitter.write_layout()
        return True

    def close(self) -> None:
        """Everything is complete: the next process has nothing to do again."""
        self._write_plan(self._offset)
        self.splitter.write_layout()

    def _run(self, start: Offset, end: Offset) -> None:
        for split in self._links.splits(start, end):
            self.splitter.take(split)
        self.splitter.finish(force=True)

    def _write_plan(self, end: Offset) -> None:
        splitter = self.splitter
        rebalancer, form = splitter.rebalancer, None
        if isinstance(splitter, TableSplitter):
            form = splitter.form
        plan = BatchPlan(
            identity_of(self._settings),
            self._settings.columns,
            self._offset,
            end,
            tuple(splitter.states),
            splitter.rule.generations,
            -1 if rebalancer is None else rebalancer.latest,
            splitter.placed.turn,
            () if form is None else tuple(sorted(form.as_text)),
            splitter.unread,
            splitter.report.tuples,
            tuple(splitter.report.malformed.items()),
        )
        write_plan(self._folder, plan)


def restored(settings: SplitSettings, plan: BatchPlan) -> SourceSplitter:
    """A splitter that goes on where a plan begins."""
    splitter = splitter_of(settings, list(plan.states))
    splitter.placed.turn = plan.turn
    splitter.unread = plan.unread
    splitter.report = ReadReport(tuples=plan.tuples)
    splitter.report.malformed.update(dict(plan.malformed))
    if splitter.rebalancer is not None:
        splitter.rebalancer.latest = plan.latest
    if isinstance(splitter, TableSplitter):
        if splitter.form is not None:
            splitter.form.as_text |= set(plan.as_text)
        if all(state.segment < 0 for state in plan.states):
            splitter.fill_empty()  # so that a stream can be bound to the partitions at once
    return splitter


def cut(splitter: SourceSplitter) -> None:
    if isinstance(splitter, PacketSplitter | TableSplitter):
        splitter.outputs.cut()


def identity_of(settings: SplitSettings) -> dict[str, Any]:
    interface = settings.interface
    return {
        "source": f"{interface.kind}:{Path(interface.location).absolute()}",
        "options": [list(option) for option in interface.options],
        "by": settings.by,
        "into": settings.rule.count,
        "edge": settings.edge,
    }


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    name = next((name for name in now if before.get(name) != now[name]), "it")
    return f"{name} was {before.get(name)!r} and is {now.get(name)!r}"


def check_unbegun(folder: Path) -> None:
    """Refuse a folder with something in it that no split to be followed has begun.

    Raises:
        OutputError: it has.
    """
    begun = folder / FOLDER
    if begun.is_dir() and read_layout(folder) is None:
        # An earlier process has died before its first plan: nothing was split yet.
        for path in folder.iterdir():
            if path != begun and not is_empty_partition(path):
                check_empty(folder)
        return
    check_empty(folder)


def is_empty_partition(path: Path) -> bool:
    """Whether a path is a folder of a partition in which no tuple can be yet."""
    return path.is_dir() and path.name.startswith("p") and path.name[1:].isdigit()


Waits = Callable[[float], bool]
"""Waits for some seconds; whether it was asked to stop."""
BETWEEN_LOOKS: Final = 0.2
"""Seconds from one look at a source that has nothing new to the next one."""


def follow(
    split: FollowedSplit, wait: Waits, told: Callable[[str | None], None] | None = None
) -> None:
    """Split until it is asked to stop, or until nothing more can come. `told` takes the reason why
    the source cannot be read, whenever it changes.
    """
    stalled: str | None = None
    while True:
        found = split.step()
        if split.stalled != stalled:
            stalled = split.stalled
            if told is not None:
                told(stalled)
        if not found and split.ended:
            break
        if wait(0.0 if found else BETWEEN_LOOKS):
            break
    split.close()
