"""Words, numbers, strings and signs: the first cut through a GSQL text.

In: a `Source`. Out: a `TokenScan` with the tokens, the comments beside them, and the mistakes that
can be seen in one token alone (an unterminated string, a number that is none). A mistaken token is
replaced by a harmless one, so that the statement can still be examined for others. literals.py
reads constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from terascope.diagnostic import Diagnostic, Source, Span
from terascope.syntax.ast import Literal_
from terascope.syntax.keywords import LITERAL_PREFIXES, TWO_WORDS
from terascope.syntax.literals import BadLiteral, read_number, read_prefixed


@dataclass(frozen=True)
class Token:
    """`kind` is a terminal of the grammar, or WORD for what may be a keyword or a name.

    `text` is as written; `value` is what it stands for: a name without its quotes, a string's
    content.
    """

    kind: str
    text: str
    start: int
    end: int
    value: str
    literal: Literal_ | None = None

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @cached_property
    def word(self) -> str:
        """The word in upper case; empty for anything else."""
        return self.value.upper() if self.kind == "WORD" else ""


SIGNS: Final = {
    "=": "EQ", "!=": "NE", "<>": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE",
    "|": "BITOR", "^": "BITXOR", "&": "BITAND", "<<": "SHL", ">>": "SHR", "||": "CONCAT",
    "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH", "%": "PERCENT", "~": "TILDE", "!": "BANG",
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE",
    ",": "COMMA", ";": "SEMICOLON", ":": "COLON", ".": "DOT", "$": "DOLLAR",
}  # fmt: skip

BORROWED_SIGNS: Final = {"==": ("=", "EQ"), "&&": ("AND", "AND")}
"""Signs of other languages, what GSQL writes for them, and the terminal they are taken for."""

TYPOGRAPHIC_QUOTES: Final = "\u2018\u2019\u201c\u201d\u00b4"

PATTERN: Final = re.compile(
    r"""
      (?P<blank>\s+)
    | (?P<comment>(?:--|//)[^\n]*)
    | (?P<number>0[xX]\w*|\.?\d(?:[eE][+-]\d|[\w.])*)
    | (?P<word>[^\W\d]\w*)
    | (?P<string>'(?:[^'\n]|'')*' | "(?:[^"\n]|"")*")
    | (?P<quoted>`(?:[^`\n]|``)+`)
    | (?P<open>['"`][^\n]*)
    | \$(?P<parameter>[^\W\d]\w*)
    | \#(?P<constant>[^\W\d]\w*)(?:\#(?![^\W\d]))?
    | @(?P<property>[^\W\d]\w*)
    | (?P<borrowed>==|&&)
    | (?P<sign><=|>=|<>|!=|<<|>>|\|\||[-+*/%&|^~!=<>(){}\[\],;:.$])
    | (?P<unknown>.)
    """,
    re.VERBOSE,
)


class TokenScan:
    """Every token of the text, or of a stretch of it."""

    def __init__(self, source: Source, stretch: Span | None = None) -> None:
        self.text = source.text
        self.tokens: list[Token] = []
        self.comments: list[Token] = []
        self.diagnostics: list[Diagnostic] = []
        self.in_braces = False
        within = stretch or Span(0, len(self.text))
        for found in PATTERN.finditer(self.text, within.start, within.end):
            kind = found.lastgroup or "unknown"
            if kind == "blank":
                continue
            text, span = found.group(), Span(*found.span())
            match kind:
                case "comment":
                    comment = text.rstrip()
                    self.comments.append(Token("COMMENT", comment, *found.span(), comment))
                case "word":
                    self.word(text, span)
                case "number":
                    literal = self.literal(read_number, text, span)
                    plain = {"int": "NUMBER", "float": "FLOAT"} if not literal.type_name else {}
                    self.add(plain.get(literal.kind, "LITERAL"), text, span.start, text, literal)
                case "string":
                    self.string(text, span)
                case "quoted":
                    self.add("NAME", text, span.start, text[1:-1].replace("``", "`"))
                case "parameter" | "constant" | "property":
                    self.add(kind.upper(), text, span.start, found.group(kind))
                case "sign":
                    self.in_braces = text == "{" or (self.in_braces and text != "}")
                    self.add(SIGNS[text], text, span.start, text)
                case "borrowed":
                    ours, terminal = BORROWED_SIGNS[text]
                    self.mistake("syntax", f"'{text}' is not GSQL", span, f"write {ours}")
                    self.add("WORD" if ours.isalpha() else terminal, text, span.start, ours)
                case "open":
                    self.unterminated(text.rstrip(), span.start)
                case _:
                    help = "write a plain quote '" if text in TYPOGRAPHIC_QUOTES else None
                    self.mistake("syntax", f"'{text}' means nothing in GSQL", span, help)

    def add(
        self, kind: str, text: str, start: int, value: str, literal: Literal_ | None = None
    ) -> None:
        self.tokens.append(Token(kind, text, start, start + len(text), value, literal))

    def mistake(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, help=help))

    def literal(self, read: Callable[[str], Literal_], text: str, span: Span) -> Literal_:
        try:
            return read(text)
        except BadLiteral as bad:
            self.mistake("bad-literal", str(bad), span, bad.help)
            return Literal_("int", 0)

    def word(self, text: str, span: Span) -> None:
        """A word; a name for certain after a dot. `CLOSING WHEN` and the like become one token."""
        last = self.tokens[-1] if self.tokens else None
        joined = TWO_WORDS.get((last.word, text.upper())) if last else None
        if last and joined:
            whole = self.text[last.start : span.end]
            self.tokens[-1] = replace(last, text=whole, end=span.end, value=joined)
        else:
            self.add("NAME" if last and last.kind == "DOT" else "WORD", text, span.start, text)

    def string(self, text: str, span: Span) -> None:
        quote = text[0]
        content = text[1:-1].replace(quote * 2, quote)
        prefix = self.tokens[-1] if self.tokens else None
        if self.in_braces or prefix is None or prefix.word not in LITERAL_PREFIXES:
            self.add("STRING", text, span.start, content, Literal_("string", content))
            return
        literal = self.literal(partial(read_prefixed, prefix.text), content, prefix.span.to(span))
        self.tokens.pop()
        whole = self.text[prefix.start : span.end]
        self.add("LITERAL", whole, prefix.start, whole, literal)

    def unterminated(self, text: str, start: int) -> None:
        name = text[0] == "`"
        what = "quoted name" if name else "string"
        help = f"add a closing {text[0]} on the same line"
        span = Span(start, start + len(text))
        self.mistake("unterminated-string", f"this {what} is never closed", span, help)
        content = text[1:]
        literal = None if name else Literal_("string", content)
        self.add("NAME" if name else "STRING", text, start, content, literal)
