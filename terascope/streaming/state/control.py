"""Files by which the processes of a run speak to each other, each put in place by rename.

In the folder of the run: `links.json`, what the reader last saw of the interfaces; `idle`, which
is there when nothing more can come; `control/`, what people ask for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from terascope.connectors.live import LinkState
from terascope.files import PRIVATE
from terascope.streaming.state.runs import write_whole

IDLE: Final = "idle"


class Control:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note_links(self, states: Sequence[LinkState]) -> None:
        put(self.folder / "links.json", [asdict(state) for state in states])

    def note_idle(self, idle: bool) -> None:
        """Whether the sources have ended, and nothing is left to read."""
        path = self.folder / IDLE
        if idle:
            path.touch(PRIVATE)
        else:
            path.unlink(missing_ok=True)

    @property
    def is_idle(self) -> bool:
        return (self.folder / IDLE).exists()

    def links(self) -> list[LinkState]:
        """What the reader last saw; nothing before its first look."""
        try:
            found = json.loads((self.folder / "links.json").read_bytes())
        except (OSError, ValueError):
            return []
        return [LinkState(**state) for state in found]


def put(path: Path, told: Any) -> None:
    """A file of JSON, whole or not at all."""
    write_whole(path, json.dumps(told))
