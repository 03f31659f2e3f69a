r"""The regular expressions of GSQL: those that mean the same to Python and to the JVM.

In: a pattern as the user wrote it. Out: a pattern both engines read alike, or a ValueMistake that
says what to write instead.

`.` stops at a line's end, `^` and `$` stand at the ends of lines, `\d \w \s \b` are ASCII; that is
what GS-Lite asks of the POSIX library. POSIX classes such as [[:digit:]] are taken.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Final

from terascope.functions.base import ValueMistake

JAVA_FLAGS: Final = "(?dm)"
"""Put before the pattern for java.util.regex: only a line feed ends a line, ^ and $ see lines."""

POSIX_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\x0b",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}

_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_CLASS_NAME = re.compile(r"\[:([a-z]+):\]")


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready to search a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(portable(pattern), re.MULTILINE | re.ASCII)
    except (re.error, OverflowError, RecursionError, Warning) as mistake:
        raise ValueMistake(f"bad regular expression '{pattern}': {mistake}") from None


def java_pattern(pattern: str) -> str:
    """The same for java.util.regex."""
    compiled(pattern)
    return JAVA_FLAGS + portable(pattern)


def portable(pattern: str) -> str:
    """The pattern with POSIX classes spelt out; refuses what the two engines read differently."""
    out: list[str] = []
    at, in_class, class_start = 0, False, 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            out.append(_escape(pattern, pattern[at : at + 2], in_class))
            at += 2
            continue
        if in_class:
            in_class = c != "]" or at == class_start
            at = _copy_member(pattern, at, class_start, out)
            continue
        if c == "[":
            in_class = True
            out.append("[^" if pattern[at + 1 : at + 2] == "^" else "[")
            at += len(out[-1])
            class_start = at
            continue
        if c == "{" and not _REPEAT.match(pattern, at):
            raise _refused(pattern, "{", r"\{")
        if pattern.startswith("(?", at) and pattern[at + 2 : at + 3] in tuple("P(auL"):
            raise _refused(pattern, pattern[at : at + 3], "a plain group ( )")
        out.append(c)
        at += 1
    return "".join(out)


def _escape(pattern: str, escape: str, in_class: bool) -> str:
    """An escape sequence; the few that stand for different characters are spelt out."""
    if escape == r"\Z":
        raise _refused(pattern, escape, "$")
    if escape == r"\0":
        raise _refused(pattern, escape, r"\x00")
    if escape == r"\v":
        return r"\x0b"
    return r"\x08" if in_class and escape == r"\b" else escape


def _copy_member(pattern: str, at: int, start: int, out: list[str]) -> int:
    """Copy one member of a character class, or its end; the position behind it."""
    c = pattern[at]
    if c == "[":
        name = _CLASS_NAME.match(pattern, at)
        if name is None or name.group(1) not in POSIX_CLASSES:
            raise _refused(pattern, "[ inside [ ]", r"\[")
        out.append(POSIX_CLASSES[name.group(1)])
        return name.end()
    if c == "]" and at == start:
        raise _refused(pattern, "] first inside [ ]", r"\]")
    if pattern[at : at + 2] in ("&&", "--", "||", "~~"):
        raise _refused(pattern, f"{pattern[at : at + 2]} inside [ ]", "the character once")
    out.append(c)
    return at + 1


def _refused(pattern: str, part: str, instead: str) -> ValueMistake:
    return ValueMistake(
        f"bad regular expression '{pattern}': {part} does not mean the same everywhere; "
        f"write {instead}"
    )
