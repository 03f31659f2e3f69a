"""From matched rules to statements: named queries, PROTOCOL, WATCHLIST, UDAF and EXTR declarations.

A field is matched as a row of words, because `time UINT increasing` (ours), `time increasing`
(without a type) and `uint time get_time (increasing)` (GS-Lite's) start alike; the words are told
apart here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from terascope.diagnostic import mistake
from terascope.syntax import ast
from terascope.syntax.keywords import FIELD_PROPERTIES
from terascope.syntax.transform import (
    Children,
    Matched,
    first,
    is_kind,
    nodes,
    of_type,
    placed,
    span_of,
    values,
    whole_number,
    words,
)


@dataclass(frozen=True)
class Word(Matched):
    """A word of a field declaration, and the rows of words in brackets after it."""

    arguments: tuple[tuple[Word, ...], ...] = ()
    quoted: bool = False
    """A string: the value of a hint, no name."""
    unpacked_by: ast.AccessList | None = None
    """The square brackets behind the last word of a field."""


class Headers(Matched):
    """DEFINE and PARAM blocks, and `QUERY name:`."""


class Fields(Matched):
    """`( field, ... )`, still as words."""


class FieldBlock(Fields):
    """`{ field; ... }`, GS-Lite's way round: the type first."""


# ---- named queries -------------------------------------------------------------------------------


def query_name(children: Children) -> Headers:
    return Headers((ast.Property("query_name", str(children[1]), span=span_of(children)),))


def query_statement(children: Children) -> ast.QueryStatement:
    return ast.QueryStatement(children[-1], *read_headers(children))


def watchlist_statement(children: Children) -> ast.WatchlistStatement:
    name, define, params = read_headers(children)
    if params:
        raise mistake("syntax", "a watch list takes no parameters", params[0].span)
    return ast.WatchlistStatement(tuple(map(type_first, children[-1].value)), name, define)


def read_headers(
    children: Children,
) -> tuple[str | None, tuple[ast.Property, ...], tuple[ast.ParamDeclaration, ...]]:
    """The query's name (`QUERY name:` or DEFINE), its other properties, its parameters."""
    entries = [entry for header in of_type(children, Headers) for entry in header.value]
    properties = of_type(entries, ast.Property)
    names = [entry for entry in properties if entry.key.lower() == "query_name"]
    name = names[0].value if names else None
    for other in names:
        if other.value != name:
            message = f"this query is already named '{name}'"
            raise mistake("duplicate-clause", message, other.span)
    define = tuple(entry for entry in properties if entry.key.lower() != "query_name")
    return name, define, of_type(entries, ast.ParamDeclaration)


# ---- protocols -----------------------------------------------------------------------------------


def protocol_statement(children: Children) -> ast.ProtocolStatement:
    kind, name, *groups = children
    *before, last = of_type(groups, Fields)
    parents = tuple(parent(row) for group in before for row in group.value)
    read = type_first if isinstance(last, FieldBlock) else name_first
    unpacked_by = first(of_type(groups, ast.AccessList))
    return ast.ProtocolStatement(
        str(name), parents, tuple(map(read, last.value)), kind.type, unpacked_by
    )


def field(children: Children) -> Matched:
    *row, last = of_type(children, Word)
    unpacked_by = first(of_type(children, ast.AccessList))
    return Matched((*row, replace(last, unpacked_by=unpacked_by)))


def field_word(children: Children) -> Word:
    word = children[0]
    return Word(str(word), arguments=values(children), quoted=word.type == "STRING")


def parent(row: tuple[Word, ...]) -> str:
    if len(row) > 1 or row[0].arguments or row[0].unpacked_by:
        message = "the parents of a protocol are names only"
        help = "write PROTOCOL name (parent, ...) ( field TYPE, ... )"
        raise mistake("syntax", message, span_of(row), help)
    return str(row[0].value)


def is_property(word: Word) -> bool:
    return word.value.upper() in FIELD_PROPERTIES


def name_first(row: tuple[Word, ...]) -> ast.FieldDeclaration:
    """`time UINT increasing clock(s)`; brackets around the properties are welcome."""
    name, *rest = row
    check_names(row[:2])
    type_name: str | None = None
    more: tuple[ast.FieldProperty, ...] = ()
    if rest and not is_property(rest[0]):
        type_name, more = read_type(rest.pop(0))
    properties = (*bracketed(name), *more, *read_properties(rest))
    return ast.FieldDeclaration(
        name.value, type_name, properties, None, row[-1].unpacked_by, span=span_of(row)
    )


def type_first(row: tuple[Word, ...]) -> ast.FieldDeclaration:
    """`uint time get_time (increasing, clock(s))`; the accessor may be missing."""
    if len(row) < 2:
        message, help = "a field needs a type and a name", "write for example 'IP ip'"
        raise mistake("syntax", message, span_of(row), help)
    type_, name, *rest = row
    check_names(row[:2])
    type_name, _ = read_type(type_)
    accessor = rest.pop(0) if rest and not is_property(rest[0]) else None
    more = () if accessor is None else bracketed(accessor)
    properties = (*bracketed(name), *more, *read_properties(rest))
    return ast.FieldDeclaration(
        name.value,
        type_name,
        properties,
        None if accessor is None else accessor.value,
        row[-1].unpacked_by,
        span=span_of(row),
    )


def check_names(row: tuple[Word, ...]) -> None:
    """Strings are values of hints, never names or types."""
    for word in row:
        if word.quoted:
            message = f"expected a name, found '{word.value}'"
            help = f"to use it as a name, write `{word.value}`"
            raise mistake("syntax", message, word.span, help)


def read_type(word: Word) -> tuple[str, tuple[ast.FieldProperty, ...]]:
    """A type and, for `IP (key)`, the properties that look like its size."""
    upper = word.value.upper()
    size = word.arguments[0][0].value if len(word.arguments) == 1 else ""
    if size.isdigit():
        return f"{upper}({size})", ()
    return upper, bracketed(word)


def bracketed(word: Word) -> tuple[ast.FieldProperty, ...]:
    return tuple(each for row in word.arguments for each in read_properties(list(row)))


def read_properties(row: list[Word]) -> list[ast.FieldProperty]:
    """`increasing`, `clock(s)`, GS-Lite's `snap_len 134` and `subnet 'lab'`."""
    found: list[ast.FieldProperty] = []
    for word in row:
        if (word.quoted or word.value.isdigit()) and found and found[-1].argument is None:
            last = found.pop()
            found.append(ast.FieldProperty(last.name, word.value, span=last.span.to(word.span)))
            continue
        check_names((word,))
        argument = None
        if word.arguments:
            if len(word.arguments) > 1 or len(word.arguments[0]) > 1:
                raise mistake(
                    "syntax", f"'{word.value}' takes one argument", word.span, "such as clock(s)"
                )
            argument = word.arguments[0][0].value
        found.append(ast.FieldProperty(word.value.lower(), argument, span=word.span))
    return found


# ---- aggregates (paper 1, 3.2) -------------------------------------------------------------------


def types(children: Children) -> Matched:
    """The types before and after a semicolon."""
    semicolons = (i for i, child in enumerate(children) if is_kind(child, "SEMICOLON"))
    split = next(semicolons, len(children))
    return Matched((values(children[:split]), values(children[split:])))


def udaf_statement(children: Children) -> ast.UdafDeclaration:
    returns, scratchpad, *halves, types = nodes(children)
    parameters, extra = types.value
    if extra:
        message = "the parameters of a UDAF have no second part"
        help = "write a comma instead of the semicolon, or declare an EXTR"
        raise mistake("syntax", message, types.span, help)
    low, high = halves[0].value if halves else (None, None)
    name = words(children)[-1]
    return ast.UdafDeclaration(name, returns.value, scratchpad.value, parameters, low, high)


def extractor_statement(children: Children) -> ast.ExtractorDeclaration:
    returns, types = values(children)
    function, aggregate, name = words(children)
    return ast.ExtractorDeclaration(name, returns, function, aggregate, *types)


DECLARATION_RULES: Final = placed(
    {
        "query_name": query_name,
        "define_block": lambda found: Headers(of_type(found, ast.Property)),
        "define_property": lambda found: ast.Property(str(found[0]), "".join(map(str, found[1:]))),
        "param_block": lambda found: Headers(of_type(found, ast.ParamDeclaration)),
        "param": lambda found: ast.ParamDeclaration(str(found[0]), found[1].value),
        "query_statement": query_statement,
        "watchlist_statement": watchlist_statement,
        "protocol_statement": protocol_statement,
        "access_list": lambda found: ast.AccessList(tuple(words(found))),
        "unpack_statement": lambda found: ast.UnpackStatement(of_type(found, ast.UnpackFunction)),
        "unpack_function": lambda found: ast.UnpackFunction(
            str(found[0]), str(found[1]), whole_number(found[2])
        ),
        "field_group": lambda found: Fields(values(found)),
        "field_block": lambda found: FieldBlock(values(found)),
        "field": field,
        "field_word": field_word,
        "udaf_halves": lambda found: Matched(words(found)),
        "types": types,
        "udaf_statement": udaf_statement,
        "extractor_statement": extractor_statement,
    }
)
