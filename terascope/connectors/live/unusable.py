"""Named files that can never become usable for their source: an error before a stream starts.

In: interfaces, and whether the existing data is all that will come. Out: an error for the first
file that cannot be used. Faults that the next bytes may repair are waited for: a file that is
empty, whose header is not complete, or whose gzip stream has no end yet. A run that ends when
everything is read waits until then. Files of folders are counted and named when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from terascope.connectors.base import find_files
from terascope.connectors.malformed import FileFault
from terascope.connectors.registry import GENERATE, Interface, unusable

NEVER_MENDED: Final = frozenset({FileFault.NOT_A_CAPTURE})
"""Faults of a file that stay, whatever is written to its end."""


def check_read_files(interfaces: Iterable[Interface]) -> None:
    """Look at sources that were read to their end and gave nothing.

    Raises:
        SourceError: a batch could not have read one of them either.
    """
    for interface in interfaces:
        if interface.kind != GENERATE:
            fresh = replace(interface)  # what was there at the start may have changed
            check_named_files([fresh], replayed=True)
            find_files(fresh.location, fresh.connector.suffixes)


def check_named_files(interfaces: Iterable[Interface], replayed: bool) -> None:
    """Look at the files that are named one by one.

    Raises:
        SourceError: one of them cannot be used.
    """
    for interface in interfaces:
        if not interface.names_file:
            continue
        fault = interface.fault(interface.files[0])
        if fault is not None and (replayed or fault in NEVER_MENDED):
            raise unusable(interface.files[0].absolute(), fault)
