"""Random values of every type, in held form."""

from __future__ import annotations

from hypothesis import strategies as st

from terascope.types import INT_MAX, INT_MIN, Type

SMALL = st.integers(-5, 70)
INTEGERS = st.one_of(
    SMALL, st.integers(INT_MIN, INT_MAX), st.sampled_from([INT_MIN, INT_MAX, 0, -1, 2**32])
)
FLOATS = st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1e300]), st.floats())
TEXTS = st.one_of(
    st.sampled_from(["", "GET /", "a|b|3", "10.0.0.0/8", "12.5", "[a-z]+", "%x_", "é"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
ADDRESSES = st.one_of(
    st.binary(min_size=4, max_size=4).map(lambda b: b"\4" + b),
    st.binary(min_size=16, max_size=16).map(lambda b: b"\6" + b),
)

BY_TYPE: dict[Type, st.SearchStrategy[object]] = {
    Type.BOOL: st.booleans(),
    Type.INT: INTEGERS,
    Type.UINT: st.one_of(st.integers(0, 70), st.integers(0, INT_MAX)),
    Type.WIDE: st.integers(INT_MIN, INT_MAX),
    Type.FLOAT: FLOATS,
    Type.STRING: TEXTS,
    Type.IP: ADDRESSES,
    Type.BINARY: st.binary(max_size=8),
}

MODEST: dict[Type, st.SearchStrategy[object]] = BY_TYPE | {
    # sums of these neither overflow nor lose digits, so two orders of summing can be compared
    Type.INT: st.integers(-1000, 1000),
    Type.UINT: st.integers(0, 1000),
    Type.FLOAT: st.floats(-1e6, 1e6, allow_nan=False, width=32),
}
