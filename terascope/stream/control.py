"""Files by which the processes of a run speak to each other, each put in place by rename.

In the folder of the run: `links.json`, what the reader last saw of the interfaces; `control/`,
what people ask for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from terascope.connectors.live import LinkState


class Control:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note_links(self, states: Sequence[LinkState]) -> None:
        put(self.folder / "links.json", [asdict(state) for state in states])

    def links(self) -> list[LinkState]:
        """What the reader last saw; nothing before its first look."""
        try:
            found = json.loads((self.folder / "links.json").read_bytes())
        except (OSError, ValueError):
            return []
        return [LinkState(**state) for state in found]


def put(path: Path, told: Any) -> None:
    """A file of JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(told), encoding="utf-8")
    temporary.replace(path)
