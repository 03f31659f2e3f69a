"""From matched rules to statements: named queries, PROTOCOL, WATCHLIST, UDAF and EXTR declarations.

A field is matched as a row of words, because `time UINT increasing` (ours), `time increasing`
(without a type) and `uint time get_time (increasing)` (GS-Lite's) start alike; the words are told
apart here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from terascope.diagnostic import mistake
from terascope.syntax import ast
from terascope.syntax.keywords import FIELD_PROPERTIES
from terascope.syntax.parts import Children, Matched, nodes, of_type, span_of, words


@dataclass(frozen=True)
class Word(Matched[str]):
    """A word of a field declaration, and the rows of words in brackets after it."""

    arguments: tuple[tuple[Word, ...], ...] = ()
    quoted: bool = False
    """A string: the value of a hint, no name."""
    unpacked_by: ast.AccessList | None = None
    """What stands in square brackets behind the last word of a field."""

    @property
    def is_value(self) -> bool:
        return self.quoted or self.value.isdigit()


class Headers(Matched[tuple[Any, ...]]):
    """DEFINE and PARAM blocks, and `QUERY name:`."""


class Fields(Matched[tuple[tuple[Word, ...], ...]]):
    """`( field, ... )`, still as words."""


class FieldBlock(Fields):
    """`{ field; ... }`, GS-Lite's way round: the type first."""


class DeclarationRules:
    # ---- named queries

    def query_name(self, children: Children) -> Headers:
        span = span_of(children)
        return Headers((ast.Property("query_name", str(children[1]), span=span),), span)

    def define_block(self, children: Children) -> Headers:
        return Headers(tuple(of_type(children, ast.Property)), span_of(children))

    def param_block(self, children: Children) -> Headers:
        return Headers(tuple(of_type(children, ast.ParamDeclaration)), span_of(children))

    def define_property(self, children: Children) -> ast.Property:
        key, *value = children
        return ast.Property(str(key), "".join(map(str, value)), span=span_of(children))

    def param(self, children: Children) -> ast.ParamDeclaration:
        name, type_ = children
        return ast.ParamDeclaration(str(name), type_.value, span=span_of(children))

    def query_statement(self, children: Children) -> ast.QueryStatement:
        name, define, params = read_headers(of_type(children, Headers))
        return ast.QueryStatement(children[-1], name, define, params, span=span_of(children))

    def watchlist_statement(self, children: Children) -> ast.WatchlistStatement:
        name, define, params = read_headers(of_type(children, Headers))
        if params:
            raise mistake("syntax", "a watch list takes no parameters", params[0].span)
        fields = tuple(map(type_first, children[-1].value))
        return ast.WatchlistStatement(fields, name, define, span=span_of(children))

    # ---- protocols

    def protocol_statement(self, children: Children) -> ast.ProtocolStatement:
        kind, name, *groups = children
        *before, last = of_type(groups, Fields)
        parents = tuple(parent(row) for group in before for row in group.value)
        read = type_first if isinstance(last, FieldBlock) else name_first
        fields = tuple(map(read, last.value))
        unpacked_by = next(iter(of_type(groups, ast.AccessList)), None)
        return ast.ProtocolStatement(
            str(name), parents, fields, kind.type, unpacked_by, span=span_of(children)
        )

    def access_list(self, children: Children) -> ast.AccessList:
        return ast.AccessList(tuple(words(children)), span=span_of(children))

    def unpack_statement(self, children: Children) -> ast.UnpackStatement:
        return ast.UnpackStatement(
            tuple(of_type(children, ast.UnpackFunction)), span=span_of(children)
        )

    def unpack_function(self, children: Children) -> ast.UnpackFunction:
        name, function, cost = children
        value = cost.literal.value
        return ast.UnpackFunction(str(name), str(function), value, span=span_of(children))

    def field_group(self, children: Children) -> Fields:
        return Fields(tuple(part.value for part in of_type(children, Matched)), span_of(children))

    def field_block(self, children: Children) -> FieldBlock:
        return FieldBlock(
            tuple(part.value for part in of_type(children, Matched)), span_of(children)
        )

    def field(self, children: Children) -> Matched[tuple[Word, ...]]:
        *row, last = of_type(children, Word)
        for unpacked_by in of_type(children, ast.AccessList):
            last = replace(last, unpacked_by=unpacked_by)
        return Matched((*row, last), span_of(children))

    def field_word(self, children: Children) -> Word:
        rows = tuple(part.value for part in of_type(children, Matched))
        return Word(str(children[0]), span_of(children), rows, children[0].type == "STRING")

    # ---- aggregates (paper 1, 3.2)

    def udaf_halves(self, children: Children) -> Matched[tuple[str, str]]:
        low, high = words(children)
        return Matched((low, high), span_of(children))

    def types(self, children: Children) -> Matched[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The types before and after a semicolon."""
        split = next(
            (i for i, child in enumerate(children) if getattr(child, "type", "") == "SEMICOLON"),
            len(children),
        )
        before, after = (
            tuple(part.value for part in nodes(half))
            for half in (children[:split], children[split:])
        )
        return Matched((before, after), span_of(children))

    def udaf_statement(self, children: Children) -> ast.UdafDeclaration:
        returns, scratchpad, *halves, types = nodes(children)
        low, high = halves[0].value if halves else (None, None)
        parameters, extra = types.value
        if extra:
            raise mistake(
                "syntax",
                "the parameters of a UDAF have no second part",
                types.span,
                "write a comma instead of the semicolon, or declare an EXTR",
            )
        return ast.UdafDeclaration(
            words(children)[-1],
            returns.value,
            scratchpad.value,
            parameters,
            low,
            high,
            span=span_of(children),
        )

    def extractor_statement(self, children: Children) -> ast.ExtractorDeclaration:
        returns, types = nodes(children)
        function, aggregate, name = words(children)
        return ast.ExtractorDeclaration(
            name, returns.value, function, aggregate, *types.value, span=span_of(children)
        )


def read_headers(
    headers: list[Headers],
) -> tuple[str | None, tuple[ast.Property, ...], tuple[ast.ParamDeclaration, ...]]:
    """The query's name (`QUERY name:` or DEFINE), its other properties, its parameters."""
    name: str | None = None
    define: list[ast.Property] = []
    params: list[ast.ParamDeclaration] = []
    for header in headers:
        for entry in header.value:
            if isinstance(entry, ast.ParamDeclaration):
                params.append(entry)
            elif entry.key.lower() != "query_name":
                define.append(entry)
            elif name not in (None, entry.value):
                raise mistake(
                    "duplicate-clause", f"this query is already named '{name}'", entry.span
                )
            else:
                name = entry.value
    return name, tuple(define), tuple(params)


def parent(row: tuple[Word, ...]) -> str:
    if len(row) > 1 or row[0].arguments or row[0].unpacked_by:
        raise mistake(
            "syntax",
            "the parents of a protocol are names only",
            span_of(row),
            "write PROTOCOL name (parent, ...) ( field TYPE, ... )",
        )
    return row[0].value


def is_property(word: Word) -> bool:
    return word.value.upper() in FIELD_PROPERTIES


def name_first(row: tuple[Word, ...]) -> ast.FieldDeclaration:
    """`time UINT increasing clock(s)`; brackets around the properties are welcome."""
    name, *rest = row
    check_names(row[:2])
    properties = list(bracketed(name))
    type_name = None
    if rest and not is_property(rest[0]):
        type_name, more = read_type(rest[0])
        properties += more
        rest = rest[1:]
    properties += read_properties(rest)
    return ast.FieldDeclaration(
        name.value, type_name, tuple(properties), None, row[-1].unpacked_by, span=span_of(row)
    )


def type_first(row: tuple[Word, ...]) -> ast.FieldDeclaration:
    """`uint time get_time (increasing, clock(s))`; the accessor may be missing."""
    if len(row) < 2:
        raise mistake(
            "syntax", "a field needs a type and a name", span_of(row), "write for example 'IP ip'"
        )
    type_, name, *rest = row
    check_names(row[:2])
    type_name, _ = read_type(type_)
    properties = list(bracketed(name))
    accessor = None
    if rest and not is_property(rest[0]):
        accessor = rest[0].value
        properties += bracketed(rest[0])
        rest = rest[1:]
    properties += read_properties(rest)
    return ast.FieldDeclaration(
        name.value, type_name, tuple(properties), accessor, row[-1].unpacked_by, span=span_of(row)
    )


def check_names(row: tuple[Word, ...]) -> None:
    """Strings are values of hints, never names or types."""
    for word in row:
        if word.quoted:
            raise mistake(
                "syntax",
                f"expected a name, found '{word.value}'",
                word.span,
                f"to use it as a name, write `{word.value}`",
            )


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
        if word.is_value and found and found[-1].argument is None:
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
