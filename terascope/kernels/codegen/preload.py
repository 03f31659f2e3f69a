"""Kernels that were used are loaded in advance.

In: the kernels that the processes of a session have loaded, a line for each in a file of the
session. Out: the same kernels in the process that forks workers. Loading one from disk takes
milliseconds, and a large query set has dozens of them.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
import traceback
from pathlib import Path
from typing import Final

from terascope.kernels.codegen.generated_modules import load_kernel
from terascope.machine_code import loaded

VARIABLE: Final = "TERASCOPE_KERNELS_USED"
"""Names the file; it stands in a folder that only its owner can read and write."""

_told = 0
"""The number of entries of `loaded` that are in the file, or came from there."""
_read = 0
"""The position up to which the file was read."""
_known: set[str] = set()


def report_used() -> None:
    """Append the kernels that this process has loaded since the last call."""
    global _told
    new, _told = loaded[_told:], len(loaded)
    path = os.environ.get(VARIABLE)
    if path is None or not new:
        return
    lines = "".join(base64.b64encode(pickle.dumps(kernel)).decode() + "\n" for kernel in new)
    with Path(path).open("a", encoding="ascii") as file:
        file.write(lines)


def load_used() -> None:
    """Load the kernels that other processes have reported since the last call."""
    global _told, _read
    path = os.environ.get(VARIABLE)
    try:
        if path is None or Path(path).stat().st_size <= _read:
            return
        with Path(path).open("rb") as file:
            file.seek(_read)
            text = file.read()
        complete = text.rfind(b"\n") + 1
        _read += complete
        for line in text[:complete].decode("ascii").splitlines():
            if line not in _known:
                _known.add(line)
                load_kernel(*pickle.loads(base64.b64decode(line)))
    except Exception:  # whoever needs a kernel loads it; nobody must fail of one that is not needed
        traceback.print_exc(file=sys.stderr)
    _told = len(loaded)
