"""Kernels that one process used are loaded by another before it is asked for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from terascope.kernels.codegen.generated_modules import VARIABLE

USING = """
import numpy as np
from terascope.kernels.merge.merge_table import combine_kernel
from terascope.kernels.codegen.generated_modules import report_used
from terascope.kernels.tables.slots import Shape
combine_kernel(Shape(1, ()), True).compile()

report_used()
report_used()
"""
FORKING = """
import sys
from terascope.machine_code import loaded
from terascope.kernels.codegen import generated_modules as preload
preload.load_used()
preload.load_used()
print(len(loaded), loaded[-1][1], any(name.startswith("terascope_kernel_") for name in sys.modules))
from terascope.kernels.merge.merge_table import combine_kernel
from terascope.kernels.tables.slots import Shape
combine_kernel(Shape(1, ()), True).compile()
print(len(loaded))
preload.report_used()
"""


def run(script: str, used: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, VARIABLE: str(used)},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_what_was_used_is_loaded_once(tmp_path: Path) -> None:
    used = tmp_path / "used"
    run(USING, used)
    lines = used.read_text(encoding="ascii").splitlines()
    assert len(lines) == len(set(lines)) >= 1
    first, second = run(FORKING, used)
    assert first == f"{len(lines)} combine True"
    assert second == str(len(lines)), "nothing was loaded again"
    assert used.read_text(encoding="ascii").splitlines() == lines, "nor told again"


def test_what_cannot_be_loaded_is_left_to_whoever_needs_it(tmp_path: Path) -> None:
    used = tmp_path / "used"
    used.write_text("nonsense\n", encoding="ascii")
    script = (
        "from terascope.kernels.codegen.generated_modules import load_used\n"
        "import sys; sys.stderr = sys.stdout\n"
    )
    assert "Error" in run(script + "load_used()", used)[-1]
