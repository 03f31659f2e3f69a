"""Tuples a second over the last seconds. In: counts, batch by batch. Out: rates."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

SPAN_SECONDS: Final = 10.0
"""The last seconds that count."""


class Rates:
    """The rates of several things that are counted together."""

    def __init__(self, span: float = SPAN_SECONDS) -> None:
        self._span = span
        self._batches: deque[tuple[float, float, Mapping[str, int]]] = deque()
        """When each batch began and ended, and its counts."""

    def add(self, began: float, ended: float, counts: Mapping[str, int]) -> None:
        """Take a batch. The pause before it belongs to it: its tuples came in that time, too."""
        if self._batches:
            began = min(began, self._batches[-1][1])
        self._batches.append((began, ended, counts))

    def at(self, now: float) -> Mapping[str, float]:
        """Counts a second over the batches that ended in the last seconds."""
        while self._batches and self._batches[0][1] <= now - self._span:
            self._batches.popleft()
        if not self._batches:
            return {}
        total: Counter[str] = Counter()
        for _, _, counts in self._batches:
            total.update(counts)
        seconds = max(now - self._batches[0][0], 1e-3)
        return {name: count / seconds for name, count in total.items()}
