"""The fenced blocks of a Markdown file, and the tables in it.

In: the text of a page. Out: `Block`s with the words after their opening fence, and the cells of
tables that stand below a heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Block:
    """A fenced block. `answer` is the ```text block right below it, if there is one."""

    words: tuple[str, ...]
    text: str
    line: int
    """Of the opening fence, from 1."""
    end: int
    """Of the closing fence."""
    answer: Block | None = None

    @property
    def kind(self) -> str:
        return self.words[0] if self.words else ""

    def option(self, name: str) -> str | None:
        """`value` of a word `name=value`."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), None)

    @property
    def place(self) -> str:
        return f"line{self.line}"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    found = list(plain_blocks(text))
    lines = text.split("\n")
    paired = []
    for i, block in enumerate(found):
        following = found[i + 1] if i + 1 < len(found) else None
        between = lines[block.end : following.line - 1] if following else ["x"]
        if following and following.words == ("text",) and not "".join(between).strip():
            block = Block(block.words, block.text, block.line, block.end, following)
        paired.append(block)
    return paired


def plain_blocks(text: str) -> Iterator[Block]:
    start = 0
    words: tuple[str, ...] = ()
    held: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("```"):
            held.append(line)
        elif start:
            yield Block(words, "\n".join(held), start, number)
            start, words = 0, ()
        else:
            start, words, held = number, tuple(line[3:].split()), []
    assert not start, f"the block of line {start} is never closed"


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The rows of all tables below a heading, down to the next heading of any level."""
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"no heading '{heading}'"
    body = re.split(r"\n#+ ", rest)[0]
    rows = [line for line in body.split("\n") if line.startswith("|")]
    cells = [[c.strip().replace("\\|", "|") for c in CELL.split(row)[1:-1]] for row in rows]
    return [row for row in cells if row[0] and not set(row[0]) <= {"-", ":"}]


def code_spans(text: str) -> list[str]:
    """What stands between backquotes."""
    return re.findall(r"`([^`]+)`", text)
