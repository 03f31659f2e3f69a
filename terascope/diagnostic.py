"""Mistakes, reported the same way everywhere: a stable code, the place, the reason, a hint.

In: spans of a source text. Out: `Diagnostic`s, and the text a person reads:

    error[unbounded-group-by]: group-by never closes
      --> flows.gsql:4:10
       4 | GROUP BY srcIP, destIP
         |          ^^^^^^^^^^^^^
       note: none of the keys is derived from an ordered column of TCP
       help: add a window key such as time/60
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

S = TypeVar("S")
T = TypeVar("T")

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


class Mistake(Exception):
    """Raised where a part of a query set is found to be wrong, with all that is wrong with it; with
    no diagnostics when they have been recorded already.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*(each.message for each in diagnostics))
        self.diagnostics = diagnostics


def mistake(
    code: str, message: str, span: Span, help: str | None = None, notes: tuple[str, ...] = ()
) -> Mistake:
    return Mistake(Diagnostic(code, message, span, notes, help))


def each(step: Callable[[S], T], items: Iterable[S]) -> tuple[T, ...]:
    """Apply a step to every item. Mistakes of several items are raised together."""
    made: list[T] = []
    found: list[Mistake] = []
    for item in items:
        try:
            made.append(step(item))
        except Mistake as wrong:
            found.append(wrong)
    if found:
        raise Mistake(*(one for wrong in found for one in wrong.diagnostics))
    return tuple(made)


@dataclass(frozen=True)
class Source:
    """A text and its name, for showing where a span lies. The text of a set in several files is
    that of all of them, one behind the other, with a line break between them.
    """

    text: str
    name: str = "query"
    files: tuple[Source, ...] = ()
    """The files, where there are several."""

    @classmethod
    def joined(cls, files: Sequence[Source]) -> Source:
        """One set in several files."""
        if len(files) == 1:
            return files[0]
        text = "\n".join(file.text for file in files)
        return cls(text, ", ".join(file.name for file in files), tuple(files))

    @property
    def title(self) -> str:
        """Its name without folders."""
        return ", ".join(Path(file.name).name for file in self.files or (self,))

    def stretches(self) -> Iterator[tuple[Span, Source]]:
        """The stretch of the text that each file is."""
        start = 0
        for file in self.files or (self,):
            yield Span(start, start + len(file.text)), file
            start += len(file.text) + 1

    def at(self, offset: int) -> tuple[Source, int]:
        """The file that a character is in, and its place there."""
        for stretch, file in self.stretches():
            if offset <= stretch.end:
                return file, offset - stretch.start
        return self, offset

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character in its file, both from 1."""
        file, offset = self.at(offset)
        before = file.text[:offset]
        line = before.count("\n") + 1
        return line, offset - (before.rfind("\n") + 1) + 1


class QueryError(Exception):
    """A query set that cannot be used, with every mistake found in it."""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.code)))
        self.source = source
        super().__init__(render(self.diagnostics, source))

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(d.code for d in self.diagnostics)


def reason_of(problem: OSError) -> str:
    """The reason of the file system, in lower case."""
    return (problem.strerror or str(problem)).lower()


@contextmanager
def as_mistake(kind: type[Exception], what: str) -> Iterator[None]:
    """Turn file system errors inside into one-line mistakes: the action and the reason."""
    try:
        yield
    except OSError as problem:
        raise kind(f"{what}: {reason_of(problem)}") from problem


class OutputError(Exception):
    """Results cannot be written; one clear line that says where and why."""


class SparkLost(Exception):
    """Spark is gone, and cannot be started again here; the message has the remedy."""


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
    """The start of a span, and its line with carets under it."""
    file = source.at(span.start)[0]
    line, column = source.position(span.start)
    text = file.text.split("\n")[line - 1].expandtabs(1)
    last = min(span.end, span.start + len(text) - column + 1)
    carets = "^" * max(1, last - span.start)
    return [
        f"  --> {file.name}:{line}:{column}",
        f"{line:>4} | {text}",
        f"     | {' ' * (column - 1)}{carets}",
    ]


class SourceError(Exception):
    """A source that cannot be used: missing, unreadable, of the wrong kind. One clear line."""


class StreamError(Exception):
    """A run, its status or its results are not to be had; the message says why."""
