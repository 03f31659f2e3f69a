r"""Functions with regular expressions, in a dialect that means the same to Python and to the JVM.

A pattern as the user wrote it becomes one that both engines read alike, or a ValueMistake that says
what to write instead. `.` stops at a line's end, `^` and `$` stand at the ends of lines, `\d \w \s
\b` are ASCII; that is what GS-Lite asks of the POSIX library. POSIX classes such as [[:digit:]] are
taken. BINARY is searched as latin-1 text: one character per byte.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from terascope.functions.base import Value, ValueMistake
from terascope.functions.roles import Extraction, TextTest
from terascope.functions.scalars.text import spark_beginning
from terascope.functions.signatures import INTEGER, TEXT, builtin, parses
from terascope.functions.spark_form import Operand, SparkArguments, SparkColumn
from terascope.functions.values import Text, as_text
from terascope.types import Type

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

_PIECE: Final = re.compile(
    r"\\.?|\[:[a-z]+:\]|\[\^?|&&|--|\|\||~~|\{[0-9]+(?:,[0-9]*)?\}|\(\?[P(auL]?|.", re.DOTALL
)
"""A part of a pattern: an escape, a POSIX class, the begin of a class, a repetition."""


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
    in_class = is_first = False
    for piece in _PIECE.findall(pattern):
        opens = False
        if piece[0] == "\\":
            out.append(_escape(pattern, piece, in_class))
        elif in_class:
            out.append(_member(pattern, piece, is_first))
            in_class = piece != "]"
        elif piece == "{":
            raise _refused(pattern, "{", r"\{")
        elif piece.startswith("(?") and len(piece) == 3:
            raise _refused(pattern, piece, "a plain group ( )")
        else:
            out.append(piece)
            in_class = opens = piece in ("[", "[^")
        is_first = opens
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


def _member(pattern: str, piece: str, is_first: bool) -> str:
    """A member of a character class, or its end."""
    if piece[0] == "[":
        if piece[2:-2] not in POSIX_CLASSES:
            raise _refused(pattern, "[ inside [ ]", r"\[")
        return POSIX_CLASSES[piece[2:-2]]
    if piece == "]" and is_first:
        raise _refused(pattern, "] first inside [ ]", r"\]")
    if piece in ("&&", "--", "||", "~~"):
        raise _refused(pattern, f"{piece} inside [ ]", "the character once")
    return piece


def _refused(pattern: str, part: str, instead: str) -> ValueMistake:
    return ValueMistake(
        f"bad regular expression '{pattern}': {part} does not mean the same everywhere; "
        f"write {instead}"
    )


# ---- the functions -------------------------------------------------------------------------------


def _check_group(pattern: str, group: int) -> None:
    groups = compiled(pattern).groups
    if not 0 <= group <= groups:
        raise ValueMistake(f"regular expression '{pattern}' has {groups} groups, not {group}")


_check_pattern: Final = parses(compiled)


def _check_extraction(constants: Sequence[Value]) -> None:
    _check_pattern(constants)
    if len(constants) == 3 and constants[1] is not None and constants[2] is not None:
        _check_group(as_text(constants[1]), constants[2])


def _java(pattern: Operand) -> str | None:
    """A constant regular expression in Java's dialect."""
    if not pattern.constant or pattern.value is None:
        return None
    return java_pattern(as_text(pattern.value))


def _spark_found(call: SparkArguments) -> SparkColumn | None:
    """Searches the text, or as many of its first characters as the third argument says."""
    count = call.columns[2:]
    pattern = _java(call.operands[1])
    if pattern is None:
        return None
    text = spark_beginning(call, call.texts[0], count[0]) if count else call.texts[0]
    return text.rlike(pattern)


@builtin(
    TEXT, TEXT, returns=Type.BOOL, cost_ns=1000, check_constants=_check_pattern,
    role=TextTest("regex"), spark=_spark_found,
)  # fmt: skip
def str_regex_match(value: Text, pattern: Text) -> bool:
    """Whether the regular expression is found anywhere in the text."""
    return compiled(as_text(pattern)).search(as_text(value)) is not None


@builtin(
    TEXT, TEXT, INTEGER, returns=Type.BOOL, cost_ns=1000, check_constants=_check_pattern,
    spark=_spark_found,
)  # fmt: skip
def str_partial_regex_match(value: Text, pattern: Text, count: int) -> bool:
    """str_partial_regex_match(text, regex, n): the same, in the first n characters only."""
    return compiled(as_text(pattern)).search(as_text(value)[: max(count, 0)]) is not None


def _spark_extracted(call: SparkArguments) -> SparkColumn | None:
    """The whole match; Spark cannot tell a group that took no part from an empty one."""
    _, regex, *group = call.operands
    pattern = _java(regex)
    if pattern is None or (group and group[0].value != 0):
        return None
    return call.F.regexp_substr(call.texts[0], call.F.lit(pattern))


@builtin(
    TEXT, TEXT, INTEGER, returns=Type.STRING, optional=1, cost_ns=1000,
    check_constants=_check_extraction, role=Extraction(), spark=_spark_extracted,
)  # fmt: skip
def str_extract_regex(value: Text, pattern: Text, group: int = 0) -> str | None:
    """str_extract_regex(text, regex[, group]): the stretch found, or a group; else NULL."""
    regex = compiled(as_text(pattern))
    _check_group(as_text(pattern), group)
    match = regex.search(as_text(value))
    return match.group(group) if match else None


SYNONYMS: Final = {"regex_match": "str_regex_match"}
