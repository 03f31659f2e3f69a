"""Stored data, partitioned by the advice (dissertation 7.2(6)).

In: an advice and a folder. Out: a folder of partitions for each source, with its manifest, as
`terascope split` writes them. Values are placed by the types that the queries give to the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from terascope.advise.advice import Advice
from terascope.diagnostic import OutputError, SourceError, as_mistake
from terascope.files import make_folder
from terascope.splitting.finished import Told, split_finished
from terascope.splitting.rule import SplitRule
from terascope.splitting.splitter import SourceSplitter, SplitSettings

if TYPE_CHECKING:
    from terascope.connectors.base import Column
    from terascope.connectors.registry import Interface
    from terascope.partitioning.sets import PartitionSet


def write_partitions(
    advice: Advice, folder: Path, told: Told | None = None
) -> dict[str, SourceSplitter]:
    """Split every source of the set into a folder of its own, and say how by its name.

    Raises:
        SourceError: a source is not bound, is partitioned already, or cannot be read.
        OutputError: the folder is not empty, or cannot be written.
    """
    settings = {name: settings_of(advice, name, folder / name) for name in advice.columns}
    with as_mistake(OutputError, f"cannot make '{folder}'"):
        make_folder(folder)
    return {name: split_finished(one, told=told) for name, one in settings.items()}


def settings_of(advice: Advice, source: str, folder: Path) -> SplitSettings:
    """What is split into a folder."""
    by = advice.recommended.candidate.placement[source]
    rule = SplitRule.even(by if by.expressions else None, advice.wishes.into)
    interface = unpartitioned(advice, source)
    return SplitSettings(
        interface, split_columns(interface, by, advice.columns[source]), rule, folder
    )


def split_columns(
    interface: Interface, by: PartitionSet, declared: Sequence[Column]
) -> tuple[Column, ...]:
    """The columns of a source; those that the set reads have the types that queries give them."""
    typed = {column.name: column for column in declared if column.name in by.columns}
    return tuple(typed.get(column.name, column) for column in interface.columns)


def unpartitioned(advice: Advice, source: str) -> Interface:
    """The interface of a source that can be split."""
    interface = advice.interfaces.get(source)
    if interface is None:
        raise SourceError(f"'{source}' is not bound: give it with --source {source}=KIND:LOCATION")
    if not interface.hosts_low_level:
        raise SourceError(f"'{source}' is a DataFrame: have Spark write it, then split the files")
    if interface.partition is not None:
        raise SourceError(
            f"'{source}' is partitioned already: bind the source that it was split from"
        )
    return interface
