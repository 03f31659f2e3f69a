"""Golden files: a script, then sections that say what must become of it.

    SELECT tb, COUNT(*) FROM PKT GROUP BY time/10 AS tb;
    ---- plan
    query1:
      ...
    ---- split
    ...
    ---- rows in=eth0,eth1 set=both:eth0,eth1 param=limit:5
    [query1] tb UINT, count ULLONG
    0, 3

In: a file. Out: a `Case`: its script, its sections, and its bindings. `plan` and `optimized` hold
Plans; `split`, `job` and `stream` hold what `explain` prints for these stages. `in` names files of
tests/golden/data, each an interface of that name; without it no source is bound. `share=always`
shares tables and builds aggregate trees even where that does not pay, as in files of ten tuples.
Values are written as GSQL writes constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from terascope.connectors.registry import Interface
from terascope.diagnostic import QueryError, Source, render
from terascope.explain import explain
from terascope.functions.registry import Functions
from terascope.functions.user import load_functions
from terascope.pipeline import Bindings, Compiled, compile_set
from terascope.plan.show import show_plan, show_value
from tests.agreement import Answers
from tests.settings import config_with

GOLDEN = Path(__file__).resolve().parent
DATA = GOLDEN / "data"
MARK = re.compile(r"^---- (\w+)(.*)$", re.MULTILINE)
PLANNING_TIME = re.compile(r"planned in [\d.]+ s")
SHARING = {
    "cost": {},
    "always": {
        "share_tables": "always",
        "share_trees": "operations",
        "tree_memory": 1 << 20,
        "share_sample": "always",
    },
}
FUNCTIONS = Functions.builtin().extended(load_functions(DATA / "functions.py"))


@dataclass(frozen=True)
class Section:
    kind: str
    options: Mapping[str, str]
    header: str
    text: str


@dataclass(frozen=True)
class Case:
    path: Path
    script: str
    sections: tuple[Section, ...] = field(compare=False)

    @property
    def title(self) -> str:
        return self.path.relative_to(GOLDEN).with_suffix("").as_posix()

    @cached_property
    def options(self) -> Mapping[str, str]:
        """Those of all its sections: a case is bound to one thing."""
        return {k: v for section in self.sections for k, v in section.options.items()}

    @cached_property
    def bindings(self) -> Bindings:
        names = self.options["in"].split(",") if "in" in self.options else []
        sets = dict(pair.split(":") for pair in self.options.get("set", "").split(";") if pair)
        given = dict(pair.split(":") for pair in self.options.get("param", "").split(",") if pair)
        return Bindings(
            {name: interface(name) for name in names},
            {name: tuple(members.split(",")) for name, members in sets.items()},
            given,
            FUNCTIONS,
            config=config_with(**SHARING[self.options.get("share", "cost")]),
        )

    @cached_property
    def compiled(self) -> Compiled:
        """The set through all stages.

        Raises:
            QueryError: it has mistakes.
        """
        return compile_set(Source(self.script, str(self.path)), self.bindings)

    def has(self, kind: str) -> bool:
        return any(section.kind == kind for section in self.sections)

    def outcome(self, section: Section) -> str:
        """What a section of this kind holds now; rows are computed elsewhere."""
        match section.kind:
            case "plan":
                text = show_plan(self.compiled.plan)
            case "optimized":
                text = show_plan(self.compiled.optimized)
            case "split" | "job" | "stream":
                text = explain(self.compiled, section.kind).strip("\n")
            case "warning":
                text = render(self.compiled.warnings, self.compiled.source)
            case "error":
                text = self.mistakes()
            case _:
                raise ValueError(f"{self.title}: unknown section '{section.kind}'")
        text = text.replace(str(self.path), self.path.name).replace(f"{GOLDEN}/", "")
        return PLANNING_TIME.sub("planned in ... s", text)

    def mistakes(self) -> str:
        try:
            compile_set(Source(self.script, str(self.path)), self.bindings)
        except QueryError as mistake:
            return str(mistake)
        return ""


def interface(name: str) -> Interface:
    """A file of tests/golden/data as an interface of its own name."""
    path = next(DATA.glob(f"{name}.*"))
    return Interface(name, path.suffix[1:], str(path))


def read_case(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    marks = list(MARK.finditer(text))
    ends = [m.start() for m in marks[1:]] + [len(text)]
    sections = tuple(
        Section(mark[1], options_of(mark[2]), mark[0], text[mark.end() : end].strip("\n"))
        for mark, end in zip(marks, ends, strict=True)
    )
    return Case(path, text[: marks[0].start()] if marks else text, sections)


def options_of(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split())
    return {key: value for key, _, value in pairs}


def all_cases() -> tuple[Case, ...]:
    return tuple(read_case(path) for path in sorted(GOLDEN.rglob("*.gsql")))


def bless(case: Case, outcomes: Sequence[str]) -> None:
    """Write what came out of each section into the file."""
    parts = [case.script]
    for section, text in zip(case.sections, outcomes, strict=True):
        parts.append(f"{section.header}\n{text}\n" if text else f"{section.header}\n")
    case.path.write_text("".join(parts), encoding="utf-8")


def show_answers(answers: Answers) -> str:
    return "\n".join(shown_lines(answers))


def shown_lines(answers: Answers) -> Iterator[str]:
    for name, answer in answers.items():
        columns = ", ".join(f"{f.name} {f.type.label}" for f in answer.fields)
        yield f"[{name}] {columns}"
        for row in answer.rows:
            values = zip(row, answer.fields, strict=True)
            yield ", ".join(show_value(value, f.type) for value, f in values)
