"""Random Scripts: every node of the syntax tree, in any combination that GSQL can write."""

from __future__ import annotations

from hypothesis import strategies as st

from terascope.syntax.ast import (
    AccessList,
    Between,
    Binary,
    BinaryOp,
    CallExpr,
    CaseExpr,
    CastExpr,
    CommonTable,
    ConstantRef,
    Duration,
    Expr,
    ExtractorDeclaration,
    FieldDeclaration,
    FieldProperty,
    From,
    FromItem,
    GroupBy,
    GroupingFunction,
    InList,
    InterfaceProperty,
    IsNull,
    Item,
    JoinRef,
    Like,
    Literal_,
    MergeQuery,
    Name,
    OrderItem,
    ParamDeclaration,
    ParameterRef,
    Property,
    ProtocolStatement,
    Query,
    QueryStatement,
    RangeWindow,
    Script,
    Select,
    SliceWindow,
    Star,
    Statement,
    StreamRef,
    SubqueryRef,
    UdafDeclaration,
    Unary,
    UnpackFunction,
    UnpackStatement,
    WatchlistStatement,
    With,
)
from terascope.syntax.keywords import ALL

WORDS = sorted(word.lower() for word in ALL)
plain_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True)
names = st.one_of(
    st.sampled_from(["a", "srcIP", "time", "len", "closing", "grouping", "ip", "x", "hex"]),
    plain_names,
    st.sampled_from(WORDS),
    st.sampled_from(["has blank", "back`quote", "1st", "a.b", "é"]),
)
line_text = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8)
types = st.sampled_from(["UINT", "IP", "FLOAT", "STRING", "CHAR(36)", "LLONG"])


def _maybe(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


literals: st.SearchStrategy[Expr] = st.one_of(
    st.builds(
        Literal_,
        st.just("int"),
        st.integers(0, 2**64 - 1).filter(lambda n: n != 2**63),
        st.sampled_from([None, "UINT", "ULLONG", "LLONG"]),
        hexadecimal=st.booleans(),
    ),
    st.just(Literal_("int", -(2**63))),
    st.floats(0, allow_nan=False, allow_infinity=False).map(lambda x: Literal_("float", abs(x))),
    line_text.map(lambda x: Literal_("string", x)),
    st.booleans().map(lambda x: Literal_("bool", x)),
    st.just(Literal_("null", None)),
    st.binary(min_size=4, max_size=4).map(lambda x: Literal_("ip", b"\x04" + x)),
    st.binary(min_size=16, max_size=16).map(lambda x: Literal_("ip", b"\x06" + x)),
    st.binary(min_size=16, max_size=16).map(lambda x: Literal_("ipv6", b"\x06" + x)),
    st.binary(max_size=5).map(lambda x: Literal_("binary", x)),
)
leaves: st.SearchStrategy[Expr] = st.one_of(
    st.builds(Name, names, _maybe(names)),
    literals,
    st.builds(ParameterRef, plain_names),
    st.builds(ConstantRef, plain_names),
    st.builds(InterfaceProperty, plain_names),
)
OPERATORS: list[BinaryOp] = [
    "OR", "AND", "=", "!=", "<", "<=", ">", ">=", "|", "^", "&", "<<", ">>",
    "+", "-", "*", "/", "%", "DIV", "||",
]  # fmt: skip


def _call(name: str, args: list[Expr], kind: int, super_: bool) -> CallExpr:
    match kind:
        case 2 if args:
            return CallExpr(name, tuple(args), super_=super_, strategy="hash+adaptive")
        case 0:
            return CallExpr(name, (), star=True, super_=super_)
        case 1 if args:
            return CallExpr(name, tuple(args), distinct=True, super_=super_)
        case _:
            return CallExpr(name, tuple(args), super_=super_)


def _inner(child: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    some = st.lists(child, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Unary, st.sampled_from(["-", "~", "NOT"]), child),
        st.builds(Binary, st.sampled_from(OPERATORS), child, child),
        st.builds(Between, child, child, child, st.booleans()),
        st.builds(InList, child, some, st.booleans()),
        st.builds(Like, child, child, st.booleans()),
        st.builds(IsNull, child, st.booleans()),
        st.builds(
            CaseExpr,
            st.none() | child,
            st.lists(st.tuples(child, child), min_size=1, max_size=2).map(tuple),
            st.none() | child,
        ),
        st.builds(CastExpr, child, types),
        st.builds(_call, names, st.lists(child, max_size=3), st.integers(0, 3), st.booleans()),
    )


expressions: st.SearchStrategy[Expr] = st.recursive(leaves, _inner, max_leaves=12)
small = st.recursive(leaves, _inner, max_leaves=4)

durations = st.builds(
    Duration,
    st.integers(1, 10**6) | st.floats(0.001, 1e6, allow_nan=False),
    st.sampled_from([None, "ns", "us", "ms", "s", "min", "h", "d"]),
)
windows = st.one_of(
    st.builds(RangeWindow, durations, st.none() | durations, _maybe(names)),
    st.builds(SliceWindow, st.lists(durations, min_size=1, max_size=3).map(tuple), _maybe(names)),
)
stream_names = names.filter(lambda name: "/" not in name)
streams = st.one_of(
    st.builds(StreamRef, stream_names, alias=_maybe(names), window=st.none() | windows),
    st.builds(
        StreamRef,
        stream_names,
        interface=names,
        interface_set=st.booleans(),
        alias=_maybe(names),
        window=st.none() | windows,
    ),
    st.just(StreamRef("lib/flows", alias="f")),
)


def _sources(query: st.SearchStrategy[Query]) -> st.SearchStrategy[FromItem]:
    single = streams | st.builds(SubqueryRef, query, _maybe(names), st.none() | windows)
    kinds = st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL"])
    outer = st.sampled_from(["LEFT", "RIGHT", "FULL"])
    return st.recursive(
        single,
        lambda side: (
            st.builds(JoinRef, kinds, side, side, st.none() | small)
            | st.builds(JoinRef, outer, side, side, st.none() | small, st.just(True))
        ),
        max_leaves=3,
    )


items = st.builds(Item, small, _maybe(names))
some_items = st.lists(items, min_size=1, max_size=3).map(tuple)
group_items = st.one_of(
    items,
    st.builds(
        GroupingFunction,
        st.sampled_from(["CUBE", "ROLLUP"]),
        st.tuples(some_items),
    ),
    st.builds(
        GroupingFunction,
        st.just("GROUPING_SETS"),
        st.lists(st.lists(items, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple),
    ),
)


def _selects(query: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    sources = st.lists(_sources(query), min_size=1, max_size=2).map(tuple)
    return st.builds(
        Select,
        items=st.lists(items | st.builds(Star, _maybe(names)), min_size=1, max_size=3).map(tuple),
        source=st.one_of(
            st.builds(
                From,
                sources,
                st.sampled_from([None, "INNER", "LEFT", "RIGHT", "FULL", "WATCHLIST"]),
            ),
            st.builds(From, sources, st.just("FILTER"), names, durations),
        ),
        distinct=st.booleans(),
        where=st.none() | small,
        group_by=st.none()
        | st.lists(group_items, min_size=1, max_size=3).map(tuple).map(lambda x: GroupBy(x)),
        every=st.none() | durations,
        supergroup=st.just(()) | some_items,
        having=st.none() | small,
        cleaning_when=st.none() | small,
        cleaning_by=st.none() | small,
        closing_when=st.none() | small,
        order_by=st.lists(st.builds(OrderItem, small, st.booleans()), max_size=2).map(tuple),
        limit=st.none() | st.integers(0, 1000),
    )


def _queries(query: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    fields = st.builds(Name, names, _maybe(names))
    return st.one_of(
        _selects(query),
        st.builds(
            MergeQuery,
            st.lists(fields, min_size=2, max_size=3).map(tuple),
            st.lists(_sources(query), min_size=1, max_size=2).map(tuple),
            st.none() | st.integers(0, 100),
        ),
        st.builds(
            With,
            st.lists(st.builds(CommonTable, names, query), min_size=1, max_size=2).map(tuple),
            query,
        ),
    )


_flat: st.SearchStrategy[Query] = st.builds(
    Select,
    st.tuples(items),
    st.builds(From, st.tuples(streams)),
)
queries: st.SearchStrategy[Query] = _queries(st.deferred(lambda: _flat))

properties = st.builds(Property, names.filter(lambda key: key.lower() != "query_name"), line_text)
defines = st.lists(properties, max_size=2).map(tuple)
params = st.lists(st.builds(ParamDeclaration, plain_names, types), max_size=2).map(tuple)
field_properties = st.sampled_from(
    [FieldProperty("increasing"), FieldProperty("clock", "ns"), FieldProperty("sorted")]
)
property_lists = st.lists(field_properties, max_size=2).map(tuple)
our_fields = st.builds(FieldDeclaration, plain_names, st.none() | types, property_lists)
access_lists = st.none() | st.lists(names, min_size=1, max_size=2).map(
    lambda x: AccessList(tuple(x))
)
their_fields = st.builds(
    FieldDeclaration,
    plain_names,
    types,
    property_lists,
    st.none() | st.just("get_it"),
    access_lists,
)
name_lists = st.lists(names, max_size=2).map(tuple)
type_lists = st.lists(types, max_size=2).map(tuple)
statements: st.SearchStrategy[Statement] = st.one_of(
    st.builds(QueryStatement, queries, _maybe(names), defines, params),
    st.builds(
        ProtocolStatement,
        names,
        name_lists,
        st.lists(our_fields, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        ProtocolStatement,
        names,
        name_lists,
        st.lists(their_fields, max_size=3).map(tuple),
        st.sampled_from(["PROTOCOL", "STREAM"]),
        access_lists,
    ),
    st.lists(st.builds(UnpackFunction, names, names, st.integers(0, 99)), max_size=2).map(
        lambda x: UnpackStatement(tuple(x))
    ),
    st.builds(
        WatchlistStatement, st.lists(their_fields, max_size=3).map(tuple), _maybe(names), defines
    ),
    st.builds(UdafDeclaration, names, types, types, type_lists, st.just("low"), st.just("high")),
    st.builds(UdafDeclaration, names, types, types, type_lists),
    st.builds(ExtractorDeclaration, names, types, names, names, type_lists, type_lists),
)
scripts = st.lists(statements, max_size=3).map(lambda x: Script(tuple(x)))
