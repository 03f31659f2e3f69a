"""What holds of every page: links lead somewhere, and no line names what is not there."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import DOCS, ROOT, page

PAGES = ("language.md", "extending.md", "papers.md", "operations.md")
LATER = frozenset({"architecture.md", "decisions.md"})
"""Pages beside these, which have tests of their own."""


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as they are made on the web."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = page(name)
    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"`[^`\n]*`", "", text))
    for target in targets:
        path, _, anchor = target.partition("#")
        if path in LATER:
            continue
        assert not path or (DOCS / path).exists(), target
        assert not anchor or anchor in anchors(page(path) if path else text), target


@pytest.mark.parametrize("name", PAGES)
def test_named_files_exist(name: str) -> None:
    """A path in backquotes that starts in a folder of the project is there."""
    named = re.findall(r"`((?:terascope|tests|docs|examples)/[\w./-]+)`", page(name))
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing
