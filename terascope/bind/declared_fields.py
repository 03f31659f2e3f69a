"""The fields that a PROTOCOL declares: types, order, clocks, and hints without effect.

In: the declaration of a field. Out: a `SourceField`, and what is wrong with the declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from terascope.connectors.arrival import ACCESSOR, arrival_column
from terascope.connectors.packets import fields as packets
from terascope.diagnostic import Diagnostic
from terascope.functions.base import Slope, Trend
from terascope.plan.rel import ClockUnit, SourceField
from terascope.syntax import ast
from terascope.types import Type, type_names

FINEST_FIRST: tuple[ClockUnit, ...] = ("ns", "us", "ms", "s")


PROPERTIES: Mapping[str, Slope] = {
    "increasing": Slope(Trend.INCREASING),
    "nondecreasing": Slope(Trend.INCREASING),
    "strictly_increasing": Slope(Trend.INCREASING, strict=True),
    "decreasing": Slope(Trend.DECREASING),
    "nonincreasing": Slope(Trend.DECREASING),
    "strictly_decreasing": Slope(Trend.DECREASING, strict=True),
}


BANDED = {"banded_increasing": Trend.INCREASING, "banded_decreasing": Trend.DECREASING}


FIELD_HINTS: Mapping[str, str] = {
    "required": "what a query reads is decoded, no more",
    "snap_len": "what a query reads is decoded, no more",
    "low_cardinality": "how many values a field has is seen while it is read",
}
"""Properties of GS-Lite's schemas that steer how it runs, and why they are not needed here."""


UNPACKING = "what a query reads is unpacked, by functions of our own"


MISSPELT = 0.8
"""How alike an unknown property and a known one are, from which on it is a mistake."""


def declared_field(
    declared: ast.FieldDeclaration, mistakes: list[Diagnostic]
) -> SourceField | None:
    """The field that a PROTOCOL declares; what is wrong with it is added to the mistakes."""
    known = packets.FIELDS.get(packets.canonical(declared.name))
    type = declared_type(declared.type_name)
    if declared.type_name is None and known is not None:
        type = known.type
    if type is None:
        text = (
            f"unknown type '{declared.type_name}'"
            if declared.type_name
            else f"field '{declared.name}' has no type"
        )
        names = ", ".join(sorted({t.value for t in type_names.values()}))
        mistakes.append(Diagnostic("unknown-type", text, declared.span, help=f"types are {names}"))
        return None
    slope: Slope | None = None
    clock: ClockUnit | None = None
    for prop in declared.properties:
        word = prop.name.lower()
        if word in BANDED and (prop.argument or "").isdigit():
            slope = Slope(BANDED[word], band=int(prop.argument or 0))
        elif word in FIELD_HINTS:
            text = f"'{prop.name}' has no effect: {FIELD_HINTS[word]}"
            mistakes.append(Diagnostic("hint-without-effect", text, prop.span, severity="warning"))
        elif word in PROPERTIES and prop.argument is None:
            slope = PROPERTIES[word]
        elif word == "clock" and prop.argument in FINEST_FIRST:
            clock = next(u for u in FINEST_FIRST if u == prop.argument)
        else:
            mistakes.append(unknown_property(prop))
    if clock and slope is None:
        slope = PROPERTIES["increasing"]
    if slope and clock is None and declared.type_name is None and known and known.clock:
        clock = next(u for u in FINEST_FIRST if u == known.clock)
    if slope and not type.is_numeric:
        text = f"only a number can be ordered, '{declared.name}' is {type.label}"
        mistakes.append(Diagnostic("bad-property", text, declared.span))
    made = SourceField(declared.name, type, slope, clock)
    if declared.accessor != ACCESSOR:
        return made
    mistakes += arrival_mistakes(made, declared)
    return as_arrival(made)


def as_arrival(declared: SourceField) -> SourceField:
    """A field that tells when a tuple arrived: seconds, or ticks of the clock it is declared to be.
    Ordered, it is a clock.
    """
    unit = declared.clock or "s"
    clock = unit if declared.slope is not None else None
    return replace(declared, clock=clock, column=arrival_column(unit))


def arrival_mistakes(made: SourceField, declared: ast.FieldDeclaration) -> Iterable[Diagnostic]:
    """What cannot be said of the time at which a tuple arrived."""
    if not made.type.is_integer:
        text = f"the time of arrival is an integer, '{made.name}' is {made.type.value}"
        yield Diagnostic("wrong-type", text, declared.span, help="declare it UINT or ULLONG")
    elif made.type is Type.UINT and made.clock not in (None, "s"):
        text = f"'{made.name}' is UINT, which cannot hold the time of arrival in {made.clock}"
        yield Diagnostic("wrong-type", text, declared.span, help="declare it ULLONG")
    if made.slope is not None and (made.falls or made.slope.strict):
        text = f"'{made.name}' is the time of arrival, which many tuples have in common"
        if made.falls:
            text = f"'{made.name}' is the time of arrival, which does not fall"
        yield Diagnostic("bad-property", text, declared.span, help="declare it increasing")


def declared_type(name: str | None) -> Type | None:
    return None if name is None else type_names.get(name.split("(")[0].strip().upper())


def unpacking_lists(statement: ast.ProtocolStatement) -> list[ast.AccessList]:
    own = [statement.unpacked_by, *(each.unpacked_by for each in statement.fields)]
    return [each for each in own if each is not None]


def unpacked_by_us(unpacking: ast.AccessList) -> Diagnostic:
    text = f"'[{', '.join(unpacking.names)}]' has no effect: {UNPACKING}"
    return Diagnostic("hint-without-effect", text, unpacking.span, severity="warning")


def unknown_property(prop: ast.FieldProperty) -> Diagnostic:
    """A property that fields do not have: a hint for somebody else, unless it is a known one that
    is misspelt or has the wrong argument, which would change what the stream is.
    """
    text = prop.name + (f"({prop.argument})" if prop.argument is not None else "")
    known = ", ".join([*PROPERTIES, *(f"{b}(n)" for b in BANDED), "clock(s|ms|us|ns)"])
    words = (*PROPERTIES, *BANDED, "clock")
    message = f"unknown field property '{text}'"
    if prop.name in words:
        return Diagnostic("unknown-property", message, prop.span, help=f"known: {known}")
    if close := get_close_matches(prop.name, words, 1, MISSPELT):
        help = f"did you mean {close[0]}? known: {known}"
        return Diagnostic("unknown-property", message, prop.span, help=help)
    return Diagnostic(
        "unknown-hint",
        f"{message} has no effect",
        prop.span,
        help=f"known: {known}",
        severity="warning",
    )
