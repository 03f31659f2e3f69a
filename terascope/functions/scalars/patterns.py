"""Functions with regular expressions, in the dialect of terascope.functions.regex.

BINARY is searched as latin-1 text: one character per byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.regex import compiled, java_pattern
from terascope.functions.roles import Extraction, TextTest
from terascope.functions.scalars.text import spark_beginning
from terascope.functions.signatures import INTEGER, TEXT, signature
from terascope.functions.spark_form import SparkArguments, SparkColumn, SparkOperand
from terascope.functions.values import Text, as_text
from terascope.types import Type


def _found(value: Text, pattern: Text) -> bool:
    return compiled(as_text(pattern)).search(as_text(value)) is not None


def _found_early(value: Text, pattern: Text, count: int) -> bool:
    return compiled(as_text(pattern)).search(as_text(value)[: max(count, 0)]) is not None


def _extracted(value: Text, pattern: Text, group: int = 0) -> str | None:
    regex = compiled(as_text(pattern))
    _check_group(as_text(pattern), group)
    match = regex.search(as_text(value))
    return match.group(group) if match else None


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


# ---- in Spark ------------------------------------------------------------------------------------


def _java(pattern: SparkOperand) -> str | None:
    """A constant regular expression in Java's dialect."""
    if not pattern.constant or pattern.value is None:
        return None
    return java_pattern(as_text(pattern.value))


def _spark_found(call: SparkArguments) -> SparkColumn | None:
    pattern = _java(call.operands[1])
    return call.texts[0].rlike(pattern) if pattern is not None else None


def _spark_found_early(call: SparkArguments) -> SparkColumn | None:
    pattern = _java(call.operands[1])
    if pattern is None:
        return None
    return spark_beginning(call, call.texts[0], call.columns[2]).rlike(pattern)


def _spark_extracted(call: SparkArguments) -> SparkColumn | None:
    """The whole match; Spark cannot tell a group that took no part from an empty one."""
    _, regex, *group = call.operands
    pattern = _java(regex)
    if pattern is None or (group and group[0].value != 0):
        return None
    return call.F.regexp_substr(call.texts[0], call.F.lit(pattern))


SCALARS: Final = (
    Scalar(
        "str_regex_match",
        signature("str_regex_match", TEXT, TEXT, returns=Type.BOOL),
        _found,
        cost_ns=1000,
        check_constants=_check_pattern,
        role=TextTest("regex"),
        spark=_spark_found,
        doc="whether the regular expression is found anywhere in the text",
    ),
    Scalar(
        "str_partial_regex_match",
        signature("str_partial_regex_match", TEXT, TEXT, INTEGER, returns=Type.BOOL),
        _found_early,
        cost_ns=1000,
        check_constants=_check_pattern,
        spark=_spark_found_early,
        doc="str_partial_regex_match(text, regex, n): the same, in the first n characters only",
    ),
    Scalar(
        "str_extract_regex",
        signature("str_extract_regex", TEXT, TEXT, INTEGER, returns=Type.STRING, optional=1),
        _extracted,
        cost_ns=1000,
        check_constants=_check_extraction,
        role=Extraction(),
        spark=_spark_extracted,
        doc="str_extract_regex(text, regex[, group]): the stretch found, or a group; else NULL",
    ),
)

SYNONYMS: Final = {"regex_match": "str_regex_match"}
