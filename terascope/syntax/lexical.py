"""Words, numbers, strings and signs: the first cut through a GSQL text.

In: a `Source`. Out: a `TokenScan` with the tokens, the comments beside them, and the mistakes that
can be seen in one token alone (an unterminated string, a number that is none). A mistaken token is
replaced by a harmless one, so that the statement can still be examined for others.

Constants are read here, from their spelling to the value they hold. `HEX` is UINT and `LHEX`
ULLONG, as in GS-Lite; `TIMEVAL'1.5'` (seconds) is a ULLONG of nanoseconds, so that it compares with
`timestamp`; `X'0aff'` is BINARY.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property, partial
from typing import Final, Literal, TypeAlias

from terascope.diagnostic import Diagnostic, Source, Span
from terascope.syntax.ast import Duration, Literal_
from terascope.syntax.keywords import LITERAL_PREFIXES, TWO_WORDS
from terascope.types import INT_MAX, WIDE_MAX, parse_ip


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


# ---- constants -----------------------------------------------------------------------------------

Unit: TypeAlias = Literal["ns", "us", "ms", "s", "min", "h", "d"]


class BadLiteral(ValueError):
    """A constant that means nothing; the message says why, `help` what to write."""

    def __init__(self, reason: str, help_: str | None = None) -> None:
        super().__init__(reason)
        self.help = help_


SUFFIX_TYPES: Final = {
    "": None,
    "U": "UINT",
    "UL": "UINT",
    "L": "LLONG",
    "LL": "LLONG",
    "ULL": "ULLONG",
}
INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uU]?[lL]{0,2})")
FLOAT: Final = re.compile(r"(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
DOTTED: Final = re.compile(r"\d+\.\d+\.[\d.]+")


def read_number(text: str) -> Literal_:
    """`42`, `0xFFF0`, `17UL`, `1.5`, `5.`, `1e9`, or the IPv4 address `10.0.0.1`."""
    if matched := INTEGER.fullmatch(text):
        digits, suffix = matched.groups()
        hexadecimal = digits[:2] in ("0x", "0X")
        if len(digits) > 40:
            raise BadLiteral(f"'{digits[:12]}...' does not fit in 64 bits")
        value = int(digits, 16 if hexadecimal else 10)
        return whole(value, SUFFIX_TYPES[suffix.upper()], hexadecimal=hexadecimal)
    if FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise BadLiteral(f"'{text}' is too large for a FLOAT")
        return Literal_("float", number)
    if DOTTED.fullmatch(text):
        return address(text, "ip")
    raise BadLiteral(f"'{text}' is not a number", "a name cannot start with a digit")


def whole(value: int, type_name: str | None = None, *, hexadecimal: bool = False) -> Literal_:
    if value > WIDE_MAX:
        raise BadLiteral(f"'{value}' does not fit in 64 bits", f"the largest is {WIDE_MAX}")
    return Literal_("int", value, type_name, hexadecimal=hexadecimal)


def read_prefixed(prefix: str, content: str) -> Literal_:
    """A string with a word of `LITERAL_PREFIXES` before it; `content` is without its quotes."""
    match prefix.upper():
        case "IP" | "IP_VAL":
            return address(content, "ip")
        case "IPV6" | "IPV6_VAL":
            return address(content, "ipv6")
        case "HEX" | "LHEX" as size:
            digits = content[2:] if content[:2] in ("0x", "0X") else content
            if not re.fullmatch(r"[0-9a-fA-F]{1,32}", digits):
                raise BadLiteral(f"'{content}' is not a hexadecimal number")
            type_name = "UINT" if size == "HEX" else "ULLONG"
            return whole(int(digits, 16), type_name, hexadecimal=True)
        case "TIMEVAL":
            return timeval(content)
        case _:
            try:
                return Literal_("binary", bytes.fromhex(content))
            except ValueError:
                raise BadLiteral(f"'{content}' is not a row of hexadecimal bytes") from None


def address(text: str, kind: Literal["ip", "ipv6"]) -> Literal_:
    value = parse_ip(text)
    if value is None:
        raise BadLiteral(f"'{text}' is not an IP address")
    if kind == "ipv6" and value[0] != 6:
        raise BadLiteral(f"'{text}' is not an IPv6 address", f"write IP '{text}'")
    return Literal_(kind, value)


def timeval(text: str) -> Literal_:
    try:
        nanoseconds = Decimal(text.strip()) * 1_000_000_000
    except InvalidOperation:
        nanoseconds = Decimal(-1)
    if not nanoseconds.is_finite() or nanoseconds < 0 or nanoseconds > INT_MAX:
        raise BadLiteral(f"'{text}' is not a time in seconds", "write for example TIMEVAL'1.5'")
    return whole(int(nanoseconds), "ULLONG")


SPELLINGS: Final[dict[Unit, str]] = {
    "ns": "ns nsec nsecs nanosecond nanoseconds",
    "us": "us usec usecs microsecond microseconds",
    "ms": "ms msec msecs millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
}
UNITS: Final = {word: unit for unit, words in SPELLINGS.items() for word in words.split()}
UNIT_HELP: Final = "units are ns, us, ms, sec, min, hour and day, as in '18 sec'"
DURATION: Final = re.compile(r"\s*(\d+\.\d*|\.\d+|\d+)\s*([^\W\d]+)?\s*")


def read_duration(text: str) -> Duration:
    """`18 sec`, `1.5h`, `3`."""
    matched = DURATION.fullmatch(text)
    if matched is None:
        raise BadLiteral(f"'{text}' is not a length of time", UNIT_HELP)
    number, word = matched.groups()
    amount = read_number(number).value
    assert isinstance(amount, int | float)
    return duration(amount, word)


def duration(amount: int | float, word: str | None) -> Duration:
    if amount <= 0:
        raise BadLiteral("a length of time must be more than zero")
    unit = None if word is None else UNITS.get(word.lower())
    if word is not None and unit is None:
        raise BadLiteral(f"'{word}' is not a unit of time", UNIT_HELP)
    return Duration(amount, unit)
