"""Write the answers of the documentation's examples anew: python -m tests.docs.bless.

An example that fails keeps its old answer; the tests tell why.
"""

from __future__ import annotations

import os
import sys

from terascope.diagnostic import QueryError
from tests.docs.blocks import DOCS, EXAMPLES, blocks
from tests.docs.outcome import kind_of, outcome


def blessed(text: str) -> str:
    lines = text.split("\n")
    for block in reversed(blocks(text)):
        if not kind_of(block):
            continue
        try:
            answer = outcome(block)
        except (AssertionError, QueryError) as mistake:
            sys.stderr.write(f"line {block.line}: {mistake}\n")
            continue
        if block.answer:
            lines[block.answer.line : block.answer.end - 1] = answer.split("\n")
    return "\n".join(lines)


if __name__ == "__main__":
    os.chdir(EXAMPLES)
    for name in ("language.md",):
        path = DOCS / name
        path.write_text(blessed(path.read_text(encoding="utf-8")), encoding="utf-8")
