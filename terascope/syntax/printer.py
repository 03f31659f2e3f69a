"""A Script as canonical GSQL text, such that parse(print(script)) == script.

In: nodes of the Script. Out: text with upper-case keywords, aliases with AS, one clause per line.
`statement_lines` gives the lines with their places in the source, for the formatter, which puts
comments back.
"""

from __future__ import annotations

import re
from typing import assert_never

from terascope.syntax import ast
from terascope.syntax.keywords import FIELD_PROPERTIES, RESERVED
from terascope.syntax.print_expressions import print_expr, quote_name, quote_string
from terascope.syntax.print_queries import INDENT, Line, print_query, query_lines

__all__ = ["print_expr", "print_query", "print_script", "print_statement", "statement_lines"]


def print_script(script: ast.Script) -> str:
    """All statements, with an empty line between them."""
    return "\n".join(print_statement(statement) + "\n" for statement in script.statements)


def print_statement(statement: ast.Statement) -> str:
    """One statement, with its semicolon."""
    return "\n".join(line.text for line in statement_lines(statement))


def statement_lines(statement: ast.Statement) -> list[Line]:
    lines = _lines(statement)
    last = lines[-1]
    return [*lines[:-1], Line(last.text + ";", last.anchor)]


def _lines(statement: ast.Statement) -> list[Line]:
    match statement:
        case ast.QueryStatement(query):
            return [*_headers(statement), *query_lines(query)]
        case ast.WatchlistStatement():
            head = Line("WATCHLIST FIELDS {")
            return [*_headers(statement), head, *_block(statement.fields), Line("}")]
        case ast.ProtocolStatement():
            return _protocol(statement)
        case ast.UnpackStatement():
            return _unpacking(statement)
        case ast.UdafDeclaration():
            return [Line(_udaf(statement), statement.span.start)]
        case ast.ExtractorDeclaration():
            return [Line(_extractor(statement), statement.span.start)]
        case _:
            assert_never(statement)


def _headers(statement: ast.QueryStatement | ast.WatchlistStatement) -> list[Line]:
    """`QUERY name:` where a name is all there is to say; otherwise the name goes into DEFINE."""
    params = statement.params if isinstance(statement, ast.QueryStatement) else ()
    lines: list[Line] = []
    start = statement.span.start
    if statement.define:
        lines.append(Line("DEFINE {", start))
        if statement.name is not None:
            lines.append(Line(_property(ast.Property("query_name", statement.name))))
        lines += (Line(_property(each), each.span.start) for each in statement.define)
        lines.append(Line("}"))
    elif statement.name is not None:
        lines.append(Line(f"QUERY {quote_name(statement.name)}:", start))
    if params:
        lines.append(Line("PARAM {"))
        lines += (Line(_param(each), each.span.start) for each in params)
        lines.append(Line("}"))
    return lines


def _property(each: ast.Property) -> str:
    return f"{INDENT}{quote_name(each.key)} {quote_string(each.value)};"


def _param(each: ast.ParamDeclaration) -> str:
    return f"{INDENT}{quote_name(each.name)} {each.type_name};"


# ---- PROTOCOL and WATCHLIST ----------------------------------------------------------------------


def _protocol(statement: ast.ProtocolStatement) -> list[Line]:
    """GS-Lite's form when there are accessors to keep, ours otherwise."""
    fields = statement.fields
    parents = f" ({', '.join(map(quote_name, statement.parents))})" if statement.parents else ""
    head = f"{statement.kind} {quote_name(statement.name)}{parents}"
    head += _access_list(statement.unpacked_by)
    theirs = statement.unpacked_by is not None and not parents
    if not fields or theirs or any(each.accessor is not None for each in fields):
        return [Line(f"{head} {{", statement.span.start), *_block(fields), Line("}")]
    lines = [
        Line(f"{INDENT}{_field(each)}{',' if each is not fields[-1] else ''}", each.span.start)
        for each in fields
    ]
    return [Line(f"{head} (", statement.span.start), *lines, Line(")")]


def _field(each: ast.FieldDeclaration) -> str:
    words = [quote_name(each.name)]
    properties = [*map(_field_property, each.properties)]
    if each.type_name is not None:
        words.append(each.type_name)
    elif properties and each.properties[0].name.upper() not in FIELD_PROPERTIES:
        properties = [f"({', '.join(properties)})"]  # or it would be taken for a type
    return " ".join(words + properties) + _access_list(each.unpacked_by)


def _block(fields: tuple[ast.FieldDeclaration, ...]) -> list[Line]:
    return [Line(f"{INDENT}{_block_field(each)};", each.span.start) for each in fields]


def _block_field(each: ast.FieldDeclaration) -> str:
    words = [each.type_name or "", quote_name(each.name)]
    if each.accessor is not None:
        words.append(quote_name(each.accessor))
    if each.properties:
        words.append(f"({', '.join(map(_field_property, each.properties))})")
    return " ".join(words) + _access_list(each.unpacked_by)


def _access_list(each: ast.AccessList | None) -> str:
    return "" if each is None else f" [{', '.join(map(quote_name, each.names))}]"


def _unpacking(statement: ast.UnpackStatement) -> list[Line]:
    lines = [
        Line(
            f"{INDENT}{quote_name(each.name)} {quote_name(each.function)} {each.cost};",
            each.span.start,
        )
        for each in statement.functions
    ]
    return [Line("UNPACK_FCNS {", statement.span.start), *lines, Line("}")]


def _field_property(each: ast.FieldProperty) -> str:
    if each.argument is None:
        return each.name
    plain = re.fullmatch(r"\d+|[^\W\d]\w*", each.argument) and each.argument.upper() not in RESERVED
    return f"{each.name}({each.argument if plain else quote_string(each.argument)})"


# ---- aggregates ----------------------------------------------------------------------------------


def _udaf(each: ast.UdafDeclaration) -> str:
    halves = ""
    if each.sub_aggregate is not None and each.super_aggregate is not None:
        halves = f" [{quote_name(each.sub_aggregate)}, {quote_name(each.super_aggregate)}]"
    parameters = ", ".join(each.parameters)
    return f"{each.returns} UDAF {each.scratchpad}{halves} {_declared(each.name)}({parameters})"


def _declared(name: str) -> str:
    """UDAF and EXTR behind another name would begin a declaration of their own."""
    return quote_name(name, always=name.upper() in ("UDAF", "EXTR"))


def _extractor(each: ast.ExtractorDeclaration) -> str:
    names = " ".join(map(_declared, (each.function, each.aggregate, each.name)))
    parameters = ", ".join(each.aggregate_parameters)
    if each.extra_parameters:
        parameters += "; " + ", ".join(each.extra_parameters)
    return f"{each.returns} EXTR {names}({parameters})"
