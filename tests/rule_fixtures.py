"""Fixture files of rules: what a rule is given and what it makes of it, as text.

    PROTOCOL S (ts UINT increasing clock(s), a INT);

    # title: two filters are one
    # after: push_filters
    QUERY q: SELECT ts FROM (SELECT * FROM S WHERE a > 1) x WHERE a < 9;
    ---- before
    q:
      ...
    ---- after
    q:
      ...

A file has the name of its rule. Text before the first title belongs to every case. `# after:` names
rules that run first, so that the rule meets what it would meet in the list. A case that the rule
does not change has one section, `---- unchanged`, instead of two. `--bless` writes the sections.

`Rules` knows nothing of plans: the rules of any stage (a Plan, a Job) have such files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pytest

T = TypeVar("T")

TITLE = re.compile(r"^# title: (.+)\n", re.MULTILINE)
AFTER = re.compile(r"^# after: (.+)\n", re.MULTILINE)
SECTION = re.compile(r"^---- (before|after|unchanged)\n", re.MULTILINE)


@dataclass(frozen=True)
class RuleCase:
    title: str
    head: str
    """The case up to its first section, word for word."""
    before: str
    after: str

    @property
    def earlier(self) -> tuple[str, ...]:
        """The rules that run first."""
        return tuple(name for line in AFTER.findall(self.head) for name in line.split(", "))

    @property
    def script(self) -> str:
        return AFTER.sub("", self.head)

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def text(self) -> str:
        sections = {"before": self.before, "after": self.after}
        shown = sections if self.changes else {"unchanged": self.before}
        parts = "".join(f"---- {name}\n{text}\n" for name, text in shown.items())
        return f"# title: {self.title}\n{self.head}{parts}"


@dataclass(frozen=True)
class Fixture:
    """The cases of one rule, and what they have in common."""

    preamble: str
    cases: tuple[RuleCase, ...]

    @property
    def text(self) -> str:
        return self.preamble + "\n".join(case.text for case in self.cases)


def read_fixture(text: str) -> Fixture:
    preamble, *rest = TITLE.split(text)
    titles, bodies = rest[::2], rest[1::2]
    return Fixture(preamble, tuple(map(read_rule_case, titles, bodies)))


def read_rule_case(title: str, body: str) -> RuleCase:
    head, *rest = SECTION.split(body)
    sections: dict[str, str] = dict(
        zip(rest[::2], (text.strip("\n") for text in rest[1::2]), strict=True)
    )
    unchanged = sections.get("unchanged", "")
    return RuleCase(
        title,
        head.rstrip("\n") + "\n",
        sections.get("before", unchanged),
        sections.get("after", unchanged),
    )


@dataclass(frozen=True)
class Rules(Generic[T]):
    """An ordered list of rules, and the folder of their fixtures."""

    folder: Path
    names: tuple[str, ...]
    read: Callable[[str], T]
    apply: Callable[[str, T], T]
    """Applies one rule alone, by name."""
    show: Callable[[T], str]
    in_order: bool = False
    """Whether all rules before one in the list run first, without being named."""

    def path(self, rule: str) -> Path:
        return self.folder / f"{rule}.gsql"

    def fixture(self, rule: str) -> Fixture:
        return read_fixture(self.path(rule).read_text(encoding="utf-8"))

    def outcome(self, rule: str, preamble: str, case: RuleCase) -> RuleCase:
        """The case with the sections that it has now."""
        given = self.read(preamble + case.script)
        before_it = self.names[: self.names.index(rule)] if self.in_order else case.earlier
        for name in before_it:
            given = self.apply(name, given)
        before, after = self.show(given), self.show(self.apply(rule, given))
        return RuleCase(case.title, case.head, before, after)

    def check(self, rule: str, config: pytest.Config) -> None:
        """Compare each case of a rule with its file; with `--bless`, rewrite the file."""
        fixture = self.fixture(rule)
        found = [self.outcome(rule, fixture.preamble, case) for case in fixture.cases]
        if config.getoption("--bless"):
            made = Fixture(fixture.preamble, tuple(found)).text
            self.path(rule).write_text(made, encoding="utf-8")
            return
        for case, outcome in zip(fixture.cases, found, strict=True):
            assert outcome.text == case.text, case.title

    def incomplete(self) -> dict[str, str]:
        """The rules without a file, or without a case that changes and one that does not."""
        return dict(self._incomplete())

    def _incomplete(self) -> Iterator[tuple[str, str]]:
        for rule in self.names:
            if not self.path(rule).exists():
                yield rule, "no file"
                continue
            kinds = {case.changes for case in self.fixture(rule).cases}
            if kinds != {True, False}:
                yield rule, f"cases that change: {kinds}"

    def strays(self) -> set[str]:
        """Files of the folder that belong to no rule."""
        return {path.stem for path in self.folder.iterdir()} - set(self.names)
