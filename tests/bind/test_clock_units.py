"""One column of a file is one clock, whatever the number of protocols that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from terascope.connectors.registry import Interface
from terascope.diagnostic import Source, SourceError
from terascope.pipeline import Bindings, compile_set

QUERIES = """
PROTOCOL A (t UINT increasing clock(s));
PROTOCOL B (t ULLONG increasing clock({unit}));
SELECT t FROM A;
SELECT t FROM B;
"""


def bindings(folder: Path) -> Bindings:
    path = folder / "t.csv"
    path.write_text("t\n2015-09-12T00:46:58Z\n")
    return Bindings({"f": Interface("f", "csv", str(path))})


def test_two_units_of_one_column_are_refused(tmp_path: Path) -> None:
    compiled = compile_set(Source(QUERIES.format(unit="ms")), bindings(tmp_path))
    with pytest.raises(SourceError, match=r"clock\(s\) in one PROTOCOL and clock\(ms\)"):
        compiled.job()


def test_the_same_unit_twice_is_fine(tmp_path: Path) -> None:
    compiled = compile_set(Source(QUERIES.format(unit="s")), bindings(tmp_path))
    assert len(compiled.job().reads) == 1
