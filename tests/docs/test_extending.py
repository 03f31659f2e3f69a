"""docs/extending.md: its code runs, and the lines it changes are where it says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
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
IN_THE_COPY = ("terascope/physical/rules/hold_first_rows.py", "terascope/execute/rows/first.py")
"""Files that need the changed lines of others."""
FILES = {name: b for b in BLOCKS if (name := b.option("file")) and b.kind == "python"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page, loaded as the modules they are meant to be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "KINDS", registry.KINDS)
    for name, block in FILES.items():
        if name in IN_THE_COPY:
            continue
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


# ---- a copy of Terascope in which all steps were done --------------------------------------------

SET = """
PROTOCOL FLOW (ts UINT increasing clock(s), host STRING, n UINT);
QUERY busiest:
SELECT tb, host, SUM(n) AS total FROM flows.FLOW GROUP BY ts/60 AS tb, host
ORDER BY total DESC LIMIT 1;
QUERY capped: SELECT tb, capped_sum(n) AS total FROM flows.FLOW GROUP BY ts/60 AS tb;
QUERY hosts: SELECT DISTINCT tb, host FROM (SELECT DISTINCT ts/60 AS tb, host FROM flows.FLOW) x;
"""
ROWS = """
import pyarrow as pa

table = pa.table({"ts": [0, 4, 5, 61, 70], "host": list("abbac"), "n": [5, 2, 4, 3, 4]})
with pa.OSFile("flows.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
    file.write_table(table)
"""


def applied(text: str, diff: str) -> str:
    """A file after the hunks of a diff."""
    for hunk in diff.split("\n@@\n"):
        lines = hunk.split("\n")
        before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
        after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
        assert text.count(before) == 1, (
            f"these lines stand there {text.count(before)} times:\n{hunk}"
        )
        text = text.replace(before, after)
    return text


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the files and the changed lines of the page."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "terascope", root / "terascope", ignore=shutil.ignore_patterns("*.pyc"))
    for name, block in FILES.items():
        (root / name).write_text(block.text + "\n", encoding="utf-8")
    for block in DIFFS:
        path = root / (block.option("file") or "")
        path.write_text(applied(path.read_text(encoding="utf-8"), block.text), encoding="utf-8")
    (root / "set.gsql").write_text(SET, encoding="utf-8")
    exec(compile(ROWS.replace("flows.arrow", str(root / "flows.arrow")), "rows", "exec"))
    return root


def terascope(root: Path, *words: str) -> str:
    source = ("set.gsql", "--source", "flows=arrow:flows.arrow")
    done = subprocess.run(
        [sys.executable, "-m", "terascope", *words, *source],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_stranger_who_follows_the_page_gets_answers(changed: Path) -> None:
    shown = terascope(changed, "run", "--engine", "local", "--format", "csv", "--output", "out")
    assert not shown
    rows = {
        path.stem: path.read_text().splitlines()[1:] for path in (changed / "out").glob("*.csv")
    }
    assert rows == {
        "busiest": ["0,b,6", "1,c,4"],
        "capped": ["0,11", "1,7"],
        "hosts": ["0,a", "0,b", "1,a", "1,c"],
    }


def test_the_operator_stands_in_the_job_as_the_page_shows_it(changed: Path) -> None:
    (block,) = (b for b in BLOCKS if b.words[:2] == ("text", "operators"))
    lines = [line.split() for line in terascope(changed, "explain", "--stage", "job").splitlines()]
    for line in block.text.splitlines():
        assert line.split() in lines
    assert ["rank", "busiest"] not in [line[:2] for line in lines]


def test_a_diff_that_does_not_fit_is_told() -> None:
    with pytest.raises(AssertionError, match="0 times"):
        applied("one\ntwo\n", " three\n+four")
    assert applied("one\ntwo\n", "-one\n+1\n@@\n two\n+three") == "1\ntwo\nthree\n"


def test_what_is_registered_where_is_there() -> None:
    for names, file in [
        ("BATCHES", "terascope/optimize/driver.py"),
        ("KINDS", "terascope/connectors/registry.py"),
        ("GROWTHS", "terascope/connectors/live/growth.py"),
    ]:
        assert names in TEXT
        assert re.search(rf"^{names}\b", (ROOT / file).read_text(), re.MULTILINE), names


def test_every_label_of_an_aggregate_is_told() -> None:
    labels = set(signature(aggregate).parameters)
    told = set(re.findall(r"`(\w+)`", TEXT))
    assert labels - told == {"name", "returns", "example_parameters"}
