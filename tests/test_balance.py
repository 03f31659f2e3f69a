"""The order of test files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.balance import ROOT, longest_first


@dataclass(frozen=True)
class PlainItem:
    path: Path
    name: str


def test_the_longest_file_comes_first_and_files_stay_whole() -> None:
    names = ["quick.py a", "long.py b", "quick.py c", "new.py d", "long.py e"]
    items = [PlainItem(ROOT / name.split()[0], name.split()[1]) for name in names]
    longest_first(cast("list[pytest.Item]", items), {"quick.py": 0.5, "long.py": 60.0})
    assert [item.name for item in items] == ["b", "e", "d", "a", "c"]
