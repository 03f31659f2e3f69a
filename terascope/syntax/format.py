"""A GSQL file in canonical form, with every comment kept.

In: a `Source` without syntax mistakes. Out: its canonical text. A comment before a statement stays
before it; one at the end of a line stays at the end of the line that its clause is printed on; one
on a line of its own inside a statement goes above the clause that followed it. Formatting twice
changes nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from terascope.diagnostic import QueryError, Source
from terascope.syntax.ast import Statement
from terascope.syntax.lexical import Token, TokenScan
from terascope.syntax.parser import parse_recovering
from terascope.syntax.printer import Line, statement_lines
from terascope.syntax.split import StatementTokens, split


def format_source(source: Source) -> str:
    """The file as `terascope fmt` writes it."""
    script, diagnostics = parse_recovering(source)
    if diagnostics:
        raise QueryError(diagnostics, source)
    scanned = TokenScan(source)
    chunks = split(scanned.tokens)
    comments = scanned.comments
    blocks: list[str] = []
    for chunk, statement in zip(chunks, script.statements, strict=True):
        last = chunk.semicolon or chunk.tokens[-1]
        end_of_line = (source.text + "\n").find("\n", last.end)
        count = sum(comment.start < end_of_line for comment in comments)
        blocks.append(_block(chunk, statement, comments[:count], source.text))
        del comments[:count]
    if comments:
        blocks.append("\n".join(_spaced(comments, source.text)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


@dataclass
class _Annotated:
    """A printed line with the comments above it and behind it."""

    line: Line
    above: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def texts(self) -> list[str]:
        indent = self.line.text[: len(self.line.text) - len(self.line.text.lstrip())]
        *early, last = self.behind or [""]
        text = f"{self.line.text}  {last}" if last else self.line.text
        return [*(indent + each for each in (*self.above, *early)), text]


def _block(chunk: StatementTokens, statement: Statement, comments: list[Token], text: str) -> str:
    start = chunk.tokens[0].start
    leading = [comment for comment in comments if comment.start < start]
    lines = [_Annotated(line) for line in statement_lines(statement)]
    tokens = [*chunk.tokens, *([chunk.semicolon] if chunk.semicolon else [])]
    for comment in comments[len(leading) :]:
        before = _token_on_line(tokens, comment, text)
        if before is None:
            _following(lines, comment.start).above.append(comment.text)
        elif before is chunk.semicolon:
            lines[-1].behind.append(comment.text)
        else:
            _containing(lines, before.start).behind.append(comment.text)
    printed = _spaced(leading, text)
    if leading and text.count("\n", leading[-1].end, start) > 1:
        printed.append("")
    return "\n".join([*printed, *(each for line in lines for each in line.texts())])


def _token_on_line(tokens: Sequence[Token], comment: Token, text: str) -> Token | None:
    """The token that the comment stands behind, on the same line."""
    before = [token for token in tokens if token.end <= comment.start]
    if before and "\n" not in text[before[-1].end : comment.start]:
        return before[-1]
    return None


def _following(lines: list[_Annotated], offset: int) -> _Annotated:
    """The line of the clause that begins next after an offset; the last line when none does."""
    later = [each for each in lines if each.line.anchor is not None and each.line.anchor > offset]
    return min(later, key=lambda each: each.line.anchor or 0, default=lines[-1])


def _containing(lines: list[_Annotated], offset: int) -> _Annotated:
    """The line of the clause that an offset lies in."""
    found = lines[0]
    for each in lines:
        anchor, best = each.line.anchor, found.line.anchor
        if anchor is not None and anchor <= offset and (best is None or anchor >= best):
            found = each
    return found


def _spaced(comments: Sequence[Token], text: str) -> list[str]:
    """Comments as lines, with an empty line wherever the source had some."""
    lines: list[str] = []
    for index, comment in enumerate(comments):
        if index and text.count("\n", comments[index - 1].end, comment.start) > 1:
            lines.append("")
        lines.append(comment.text)
    return lines
