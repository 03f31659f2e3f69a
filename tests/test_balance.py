"""The order of test files, and the processor seconds it follows from."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.balance import ROOT, longest_first, processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.3: pass"


@dataclass(frozen=True)
class PlainItem:
    path: Path
    name: str


def test_the_longest_file_comes_first_and_files_stay_whole() -> None:
    names = ["quick.py a", "long.py b", "quick.py c", "new.py d", "long.py e"]
    items = [PlainItem(ROOT / name.split()[0], name.split()[1]) for name in names]
    longest_first(cast("list[pytest.Item]", items), {"quick.py": 0.5, "long.py": 60.0})
    assert [item.name for item in items] == ["b", "e", "d", "a", "c"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells the time used")
def test_the_seconds_of_a_process_that_has_ended_count() -> None:
    before = processor_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert processor_seconds(os.getpid()) - before >= 0.25
