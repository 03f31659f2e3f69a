"""Splitting a source that is complete: every file once, from its beginning to its end.

In: `SplitSettings`. Out: the partitions and their manifest in a folder that was empty or absent.
The manifest is written last: a folder without one holds no split. After a failure the files that
were written are removed, and nothing else is.

With `even` the ranges of hashes are chosen for even loads, by a first pass over the source.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from terascope.connectors.base import Range, Split
from terascope.connectors.registry import FAULT_OPTION, Interface, unusable
from terascope.diagnostic import OutputError, as_mistake
from terascope.files import make_folder
from terascope.splitting.outputs import folder_name
from terascope.splitting.splitter import (
    SourceSplitter,
    SplitSettings,
    check_sizes,
    new_states,
    splitter_of,
)

WHOLE_FILE = 1 << 62
Told = Callable[[int, int], None]
"""Takes the bytes that were read, and those of all files."""


def split_finished(
    settings: SplitSettings, even: bool = False, told: Told | None = None
) -> SourceSplitter:
    """Split a source; the splitter that has done it.

    Raises:
        SourceError: the source cannot be read.
        OutputError: the folder is not empty, or cannot be written.
    """
    check_empty(settings.folder)
    splits = whole_files(settings.interface)
    made = not settings.folder.exists()
    try:
        with as_mistake(OutputError, f"cannot make '{settings.folder}'"):
            make_folder(settings.folder)
        if even and settings.rule.set is not None:
            settings = evened(settings, splits, told)
        splitter = splitter_of(settings, new_states(settings.rule.count))
        progress = Progress(splits, told)
        for split in splits:
            splitter.take(split, progress.seen)
            progress.next(split)
            splitter.rebalance()
        splitter.finish()
        check_sizes(splitter)
        splitter.fill_empty()
        if len(splitter.rule.generations) == 1:
            splitter.settings = replace(splitter.settings, edge=0)
        splitter.write_layout()
    except BaseException:
        remove_partial(settings, made)
        raise
    return splitter


def evened(settings: SplitSettings, splits: list[Split], told: Told | None) -> SplitSettings:
    """The settings with ranges that have even loads."""
    looking = splitter_of(settings, new_states(settings.rule.count))
    looking.one_in = 1
    progress = Progress(splits, told)
    for split in splits:
        looking.look(split, progress.seen)
        progress.next(split)
    if not looking.counts.total:
        return settings
    bounds = looking.counts.even_loads(settings.rule.count)
    return replace(settings, rule=settings.rule.with_bounds(bounds))


def whole_files(interface: Interface) -> list[Split]:
    """Each file as one split: captures are not walked to be cut.

    Raises:
        SourceError: nothing is there, or the one file that is named cannot be used.
    """
    found: list[Split] = []
    for ordinal, path in enumerate(path.absolute() for path in interface.files):
        fault = interface.fault(path)
        if fault is not None and interface.names_file:
            raise unusable(path, fault)
        if fault is not None:
            parts = [Range(0, 0, ((FAULT_OPTION, fault.value),))]
        elif interface.is_packets:
            parts = [Range(0, path.stat().st_size)]
        else:
            options = dict(interface.options)
            parts = list(interface.connector.ranges(path, options, WHOLE_FILE, None))
        found += [interface.split(path, ordinal, part) for part in parts]
    return found


class Progress:
    """The bytes that were read of all files."""

    def __init__(self, splits: list[Split], told: Told | None) -> None:
        self._told = told
        self._sizes = {split.path: Path(split.path).stat().st_size for split in splits}
        self._total = sum(self._sizes.values())
        self._before = 0

    def seen(self, number: int) -> None:
        if self._told is not None:
            self._told(min(self._before + number, self._total), self._total)

    def next(self, split: Split) -> None:
        self._before += self._sizes.pop(split.path, 0)
        self.seen(0)


def check_empty(folder: Path) -> None:
    """Refuse a folder that has something in it.

    Raises:
        OutputError: it has.
    """
    if folder.is_dir():
        if any(folder.iterdir()):
            raise OutputError(
                f"'{folder}' is not empty: name another folder, or remove what is in it"
            )
    elif folder.exists() or folder.is_symlink():
        raise OutputError(f"'{folder}' is a file: name a folder")
    elif not folder.absolute().parent.is_dir():
        raise OutputError(f"cannot make '{folder}': its directory does not exist")


def remove_partial(settings: SplitSettings, made: bool) -> None:
    """Remove the partitions of a split that failed. The folder was empty before."""
    count = settings.rule.count
    for number in range(count):
        shutil.rmtree(settings.folder / folder_name(number, count), ignore_errors=True)
    if made:
        with suppress(OSError):
            settings.folder.rmdir()
