"""docs/papers.md: nothing that stands in examples/papers is left out, and its corrections hold."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from math import gcd, lcm

from tests.docs.blocks import ROOT, page, table_rows

TEXT = page("papers.md")


def edges(slices: tuple[int, ...], period: int) -> set[int]:
    """Where slices that repeat end, from 0 to the period."""
    times = period // sum(slices)
    return set(accumulate(slices * times))


def test_every_example_is_named() -> None:
    files = {path.name for path in (ROOT / "examples" / "papers").iterdir()}
    named = set(re.findall(r"`examples/papers/([\w.-]+)`", TEXT))
    assert named == files


def test_every_section_has_a_module_and_a_test() -> None:
    """Each paper has a table of its own."""
    part = TEXT.partition("\n## Section, module, test, experiment\n")[2].partition("\n## ")[0]
    headings = re.findall(r"^### .*$", part, re.MULTILINE)
    rows = [row for heading in headings for row in table_rows(TEXT, heading)[1:]]
    assert len(rows) > 40
    for section, _, module, test, _ in rows:
        assert module, section
        assert "`tests/" in test, section


def test_composed_slices_are_as_we_say() -> None:
    """Paper 0, figure 5."""
    printed, ours = (
        tuple(map(int, found.split(","))) for found in re.findall(r"\((6,3,3,3,3,6,[\d,]+)\)", TEXT)
    )
    period = lcm(15, 9)
    ends = sorted(edges((12, 3), period) | edges((6, 3), period))
    assert ours == tuple(b - a for a, b in pairwise([0, *ends]))
    assert sum(ours) == period
    assert sum(printed) == 42


def test_pairs_are_never_worse_than_panes() -> None:
    """Paper 0, 3.3: 1/g >= 2/s unless s divides r."""
    for slide in range(1, 40):
        for range_ in range(slide, 80):
            pane = gcd(range_, slide)
            assert range_ % slide == 0 or slide // pane >= 2
