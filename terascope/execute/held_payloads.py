"""Payloads that wait until they are wanted, in memory or on disk.

In: payloads, each of a stream. Out: the payloads of one stream after the other. Tasks that merge or
finish many streams hold the packed rows of all of them, and compute one stream at a time: packed
rows are a fraction of the tables that they become, and each stream has the whole memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
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


def by_stream(packed: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Give each stream with all of its payloads, one stream after the other. The payloads of the
    first stream are given as they come, those of all others are held meanwhile: the payloads of a
    stream have to be taken before the next stream.
    """
    store = PayloadStore()
    held: dict[int, list[HeldPayload]] = {}
    remaining = iter(packed)
    for first, payload in remaining:
        yield first, chain([payload], held_others(first, remaining, store, held))
    for stream in sorted(held):
        waiting = held.pop(stream)[::-1]
        yield stream, (store.payload(waiting.pop()) for _ in range(len(waiting)))


def held_others(
    stream: int,
    packed: Iterable[tuple[int, bytes]],
    store: PayloadStore,
    held: dict[int, list[HeldPayload]],
) -> Iterator[bytes]:
    """Give the payloads of one stream, and hold those of all others."""
    for number, payload in packed:
        if number == stream:
            yield payload
        else:
            held.setdefault(number, []).append(store.hold(payload))
