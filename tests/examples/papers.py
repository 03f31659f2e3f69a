"""The example files, and how their first lines say they are run.

-- run: --source eth0=pcap:trace.pcap --set both=a,b
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from terascope.connectors.registry import parse_interface
from terascope.diagnostic import Source
from terascope.pipeline import Bindings

PAPERS = Path(__file__).resolve().parents[2] / "examples" / "papers"


@dataclass(frozen=True)
class Example:
    path: Path

    @property
    def source(self) -> Source:
        return Source(self.path.read_text(encoding="utf-8"), str(self.path))

    def header(self, key: str) -> str | None:
        found = re.search(rf"^-- {key}: (.*)$", self.source.text, re.MULTILINE)
        return found[1] if found else None

    def bindings(self, traffic: Path) -> Bindings:
        """As its `run` line says, with the files taken from a folder."""
        line = self.header("run") or ""
        interfaces = {}
        for text in re.findall(r"--source (\S+)", line):
            interface = parse_interface(text.replace("=pcap:", f"=pcap:{traffic}/"))
            interfaces[interface.name] = interface
        sets = {
            name: tuple(members.split(","))
            for name, members in re.findall(r"--set (\w+)=(\S+)", line)
        }
        return Bindings(interfaces, sets)


EXAMPLES = tuple(Example(path) for path in sorted(PAPERS.glob("*.gsql")))


def title(example: Example) -> str:
    return example.path.stem
