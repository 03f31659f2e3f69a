"""What holds of every page: links lead somewhere, and no line names what is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.registry import EXPERIMENTS
from tests.docs.blocks import DOCS, ROOT, page

PAGES = tuple(sorted(path.name for path in DOCS.glob("*.md")))


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
        assert not path or (DOCS / path).exists(), target
        assert not anchor or anchor in anchors(page(path) if path else text), target


NAMED = re.compile(r"`((?:[\w.-]+/)+[\w.-]*\.(?:py|gsql|md|txt|toml|lark|svg))`")


EVERY_PAGE = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
PLACES = [ROOT, ROOT / "terascope", ROOT / "terascope" / "connectors", ROOT / "docs"]
"""The folders that a path in a page may start from."""


@pytest.mark.parametrize("path", EVERY_PAGE, ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    """From the root, from the package, or from the folder of a connector."""
    named = set(NAMED.findall(path.read_text(encoding="utf-8")))
    own = {name for name in named if not name.startswith(("OUTPUT", "CHECKPOINT", "DIR"))}
    assert not {name for name in own if not any((place / name).exists() for place in PLACES)}


MODULE = re.compile(r"`((?:terascope|bench)(?:\.\w+)+)")
FOLDER = re.compile(r"`((?:terascope|bench|tests|docs|examples)(?:/\w[\w.-]*)+)/?`")


@pytest.mark.parametrize("path", EVERY_PAGE, ids=lambda path: path.name)
def test_every_module_and_folder_that_is_named_is_there(path: Path) -> None:
    """`terascope.a.b` is a module, or a name in one; `bench/trees` is a folder."""
    text = path.read_text(encoding="utf-8")
    missing = [name for name in MODULE.findall(text) if not is_module(name)]
    missing += [name for name in FOLDER.findall(text) if not (ROOT / name).exists()]
    assert not missing


def is_module(name: str) -> bool:
    """Whether a dotted name is a module or a package, or a name defined in one."""
    whole = ROOT.joinpath(*name.split("."))
    if whole.is_dir() or whole.with_suffix(".py").exists():
        return True
    module = whole.parent.with_suffix(".py") if not whole.parent.is_dir() else whole.parent
    source = module / "__init__.py" if module.is_dir() else module
    return source.exists() and bool(
        re.search(rf"\b{whole.name}\b", source.read_text(encoding="utf-8"))
    )


EXPERIMENT = re.compile(r"terascope bench ([a-z][\w-]+)")


def test_every_experiment_is_described() -> None:
    text = page("benchmarks.md")
    assert not [name for name in EXPERIMENTS if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize("path", EVERY_PAGE, ids=lambda path: path.name)
def test_every_experiment_that_is_named_is_there(path: Path) -> None:
    named = set(EXPERIMENT.findall(path.read_text(encoding="utf-8")))
    assert named <= set(EXPERIMENTS)


def test_the_folders_that_the_readme_lists_are_there() -> None:
    listed = (ROOT / "README.md").read_text(encoding="utf-8").partition("To read the code")[2]
    folders = re.findall(r"`(\w+)`", listed)
    assert len(folders) > 10
    assert not [name for name in folders if not (ROOT / "terascope" / name).is_dir()]
