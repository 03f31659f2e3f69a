"""docs/extending.md: its code runs, and the lines it changes are where it says."""

from __future__ import annotations

import importlib.util
import re
import sys
from inspect import signature
from pathlib import Path
from types import ModuleType

import pytest

from terascope.connectors import registry
from terascope.functions.registry import Functions
from terascope.functions.user import aggregate, load_functions
from tests.docs.blocks import ROOT, Block, blocks, page
from tests.docs.outcome import kind_of, outcome

TEXT = page("extending.md")
BLOCKS = blocks(TEXT)
QUERIES = [b for b in BLOCKS if kind_of(b)]
DIFFS = [b for b in BLOCKS if b.kind == "diff"]
PROGRAMS = [b for b in BLOCKS if b.words[:2] == ("python", "run")]
FILES = {name: b for b in BLOCKS if (name := b.option("file")) and b.kind == "python"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page, loaded as the modules they are meant to be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "KINDS", registry.KINDS)
    for name, block in FILES.items():
        path = tmp_path / Path(name).name
        path.write_text(block.text + "\n", encoding="utf-8")
        module = name.removesuffix(".py").replace("/", ".")
        monkeypatch.setitem(sys.modules, module, loaded(module, path))
    return tmp_path


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda b: b.place)
def test_program(block: Block, folder: Path) -> None:
    assert "assert" in block.text or "laws." in block.text
    exec(compile(block.text, f"docs/extending.md, {block.place}", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("block", QUERIES, ids=lambda b: b.place)
def test_query(block: Block, folder: Path) -> None:
    mine = load_functions(folder / (block.option("functions") or ""))
    assert block.answer is not None
    assert outcome(block, Functions.builtin().extended(mine)) == block.answer.text


@pytest.mark.parametrize("block", DIFFS, ids=lambda b: b.place)
def test_diff_fits_its_file(block: Block) -> None:
    lines = block.text.split("\n")
    kept = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    assert any(line.startswith("+") for line in lines)
    assert kept in (ROOT / (block.option("file") or "")).read_text(encoding="utf-8")


def test_what_is_registered_where_is_there() -> None:
    for names, file in [
        ("BATCHES", "terascope/optimize/driver.py"),
        ("KINDS", "terascope/connectors/registry.py"),
        ("GROWTHS", "terascope/connectors/live/file_link.py"),
    ]:
        assert names in TEXT
        assert re.search(rf"^{names}\b", (ROOT / file).read_text(), re.MULTILINE), names


def test_every_label_of_an_aggregate_is_told() -> None:
    labels = set(signature(aggregate).parameters)
    told = set(re.findall(r"`(\w+)`", TEXT))
    assert labels - told == {"name", "returns", "example_parameters"}
