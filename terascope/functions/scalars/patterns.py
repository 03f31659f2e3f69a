"""Functions with regular expressions, in the dialect of terascope.functions.regex.

BINARY is searched as latin-1 text: one character per byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from terascope.functions.base import Value, ValueMistake
from terascope.functions.regex import compiled, java_pattern
from terascope.functions.roles import Extraction, TextTest
from terascope.functions.scalars.text import spark_beginning
from terascope.functions.signatures import INTEGER, TEXT, builtin
from terascope.functions.spark_form import Operand, SparkArguments, SparkColumn
from terascope.functions.values import Text, as_text
from terascope.types import Type


def _check_group(pattern: str, group: int) -> None:
    groups = compiled(pattern).groups
    if not 0 <= group <= groups:
        raise ValueMistake(f"regular expression '{pattern}' has {groups} groups, not {group}")


def _check_pattern(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        compiled(as_text(constants[1]))


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
