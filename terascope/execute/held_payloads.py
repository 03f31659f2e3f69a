"""Payloads that wait until they are wanted, in memory or on disk.

In: payloads, each of a stream. Out: the payloads of one stream after the other. Tasks that merge or
finish many streams hold the packed rows of all of them, and compute one stream at a time: packed
rows are a fraction of the tables that they become, and each stream has the whole memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from terascope.execute.spill import SpillFile, temporary_file

HELD_BYTES: Final = 64 << 20
"""The bytes of payloads that wait in memory; more are on disk."""


@dataclass(frozen=True)
class HeldPayload:
    """A payload, or its place on disk."""

    payload: bytes | None
    at: int
    size: int


@dataclass
class PayloadStore:
    """Payloads, the first ones in memory, all others on disk."""

    held_bytes: int = 0
    _file: SpillFile = field(default_factory=temporary_file)

    def hold(self, payload: bytes) -> HeldPayload:
        """Hold a payload.

        Raises:
            OutputError: the disk is full.
        """
        at = self._file.size
        self.held_bytes += len(payload)
        on_disk = self.held_bytes > HELD_BYTES
        if on_disk:
            self._file.append(payload)
        return HeldPayload(None if on_disk else payload, at, len(payload))

    def payload(self, held: HeldPayload) -> bytes:
        if held.payload is not None:
            return held.payload
        return self._file.read(held.at, held.size).tobytes()


class PayloadsByStream:
    """The payloads of several streams. Those of a stream are gone when they have been taken."""

    def __init__(self) -> None:
        self._store = PayloadStore()
        self._held: dict[int, list[HeldPayload]] = {}

    def add_others(self, stream: int, packed: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
        """The payloads of one stream as they come; those of all others are held."""
        for number, payload in packed:
            if number == stream:
                yield payload
            else:
                self._held.setdefault(number, []).append(self._store.hold(payload))

    def take_streams(self) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Each stream with its payloads, in the order of their numbers."""
        for stream in sorted(self._held):
            yield stream, self._taken(self._held.pop(stream))

    def _taken(self, held: list[HeldPayload]) -> Iterator[bytes]:
        held.reverse()
        while held:
            yield self._store.payload(held.pop())
