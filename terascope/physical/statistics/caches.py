"""The caches of this machine: what the tables next to a source had better fit in.

In: what the kernel says of a processor. Out: the bytes a core has: its own caches, and its share of
those that several cores have together.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
UNKNOWN: Final = 4 << 20
"""Of a machine that does not say."""


@cache
def cache_bytes(folder: Path = CACHES) -> int:
    """The largest cache of a core that holds data, or its share of it."""
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
    """`0-3,8`"""
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores
