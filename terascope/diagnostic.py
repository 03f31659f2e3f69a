"""Mistakes, told the same way everywhere: a stable code, the place, the reason, a hint.

In: spans of a source text. Out: `Diagnostic`s, and the text a person reads:

    error[unbounded-group-by]: group-by never closes
      --> flows.gsql:4:10
       4 | GROUP BY srcIP, destIP
         |          ^^^^^^^^^^^^^
       note: none of the keys is derived from an ordered column of TCP
       help: add a window key such as time/60
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of the source text, as half-open character offsets."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Diagnostic:
    """One mistake, or one warning."""

    code: str
    message: str
    span: Span = NOWHERE
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = "error"


@dataclass(frozen=True)
class Source:
    """A text and its name, for showing where a span lies."""

    text: str
    name: str = "query"

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        before = self.text[:offset]
        line = before.count("\n") + 1
        return line, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1] if number <= len(lines) else ""


class QueryError(Exception):
    """A query set that cannot be used, with every mistake found in it."""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.code)))
        self.source = source
        super().__init__(render(self.diagnostics, source))

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(d.code for d in self.diagnostics)


class OutputError(Exception):
    """Results cannot be written; one clear line that says where and why."""


class SparkLost(Exception):
    """Spark is gone, and cannot be started again here; the message says what to do."""


def render(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    """All diagnostics as text, in the order given."""
    return "\n\n".join(render_one(d, source) for d in diagnostics)


def render_one(diagnostic: Diagnostic, source: Source) -> str:
    shown = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.span != NOWHERE:
        shown += render_place(diagnostic.span, source)
    shown += [f"   note: {note}" for note in diagnostic.notes]
    if diagnostic.help:
        shown.append(f"   help: {diagnostic.help}")
    return "\n".join(shown)


def render_place(span: Span, source: Source) -> list[str]:
    """Where a span begins, and its line with carets under it."""
    line, column = source.position(span.start)
    text = source.line(line).expandtabs(1)
    last = min(span.end, span.start + len(text) - column + 1)
    carets = "^" * max(1, last - span.start)
    return [
        f"  --> {source.name}:{line}:{column}",
        f"{line:>4} | {text}",
        f"     | {' ' * (column - 1)}{carets}",
    ]
