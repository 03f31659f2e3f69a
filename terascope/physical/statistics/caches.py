"""The caches of this machine, into which the tables next to a source should fit.

In: the kernel's description of the processor. Out: the bytes of a core: its own caches, and its
share of caches that several cores share.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
UNKNOWN: Final = 4 << 20
"""The assumed bytes of a machine without a description."""


@cache
def cache_bytes(folder: Path = CACHES) -> int:
    """The largest data cache of a core, or its share of it."""
    found = [UNKNOWN] if not folder.is_dir() else []
    for level in sorted(folder.glob("index*")):
        try:
            if (level / "type").read_text().strip() == "Instruction":
                continue
            total = 1024 * int((level / "size").read_text().strip().removesuffix("K"))
            cores = len(cores_of((level / "shared_cpu_list").read_text().strip()))
        except (OSError, ValueError):
            continue
        found.append(total // max(1, min(cores, os.cpu_count() or 1)))
    return max(found, default=UNKNOWN)


def cores_of(text: str) -> list[int]:
    """The number of cores in a list such as `0-3,8`."""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores
