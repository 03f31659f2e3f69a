"""What holds of every page: links lead somewhere, and no line names what is not there."""

from __future__ import annotations

import re
from pathlib import Path

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


NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]*\.(?:py|gsql|md|txt|toml|lark|svg))`")


@pytest.mark.parametrize(
    "path", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    """From the root, from the package, or from the folder of a connector."""
    named = set(NAMED.findall(path.read_text(encoding="utf-8")))
    places = [ROOT, ROOT / "terascope", ROOT / "terascope" / "connectors", ROOT / "docs"]
    own = {name for name in named if not name.startswith(("OUTPUT", "CHECKPOINT", "DIR"))}
    assert not {name for name in own if not any((place / name).exists() for place in places)}
