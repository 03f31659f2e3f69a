from __future__ import annotations

from pathlib import Path

import pytest

from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.registry import Functions
from terascope.types import INT_MIN, Type, format_ip, parse_ip


def scalar(name: str) -> Scalar:
    found = Functions.builtin().scalar(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("str_match_start", (b"GET /", "GET"), True),
        ("str_match_start", ("GET /", "get"), False),
        ("str_match_start", ("é", b"\xc3"), True),
        ("str_exists_substr", (b"\x00GET\xff", "GET"), True),
        ("str_exists_substr", ("abc", "c"), True),  # GS-Lite misses a match at the end
        ("str_exists_substr", ("abc", "d"), False),
        ("str_compare", ("abc", "abc"), True),
        ("str_compare", ("abc", b"abd"), False),
        ("str_match_offset", (2, "c", "abc"), True),
        ("str_match_offset", (3, "", "abc"), True),
        ("str_match_offset", (4, "", "abc"), False),
        ("str_match_offset", (-1, "c", "abc"), False),
        ("byte_match_offset", (1, 0x1FF, b"\x00\xff"), True),
        ("byte_match_offset", (2, 0, b"\x00\xff"), False),
        ("str_truncate", ("abc", 2), "ab"),
        ("str_prefix", (b"\xffbc", 1), "\xff"),
        ("str_truncate", ("abc", -1), ""),
        ("str_suffix", ("abc", 2), "bc"),
        ("str_suffix", ("abc", 9), "abc"),
        ("str_suffix", ("abc", 0), ""),
        ("length", ("né",), 2),
        ("len", (b"\xc3\xa9",), 2),
        ("upper", ("straße",), "STRASSE"),
        ("lower", ("GET",), "get"),
        ("substr", ("hello", 2, 3), "ell"),
        ("substr", ("hello", -3), "llo"),
        ("substr", ("hello", 0, 2), "he"),
        ("substr", ("hello", -9, 5), "h"),
        ("substr", ("hello", 3, -1), ""),
        ("trim", ("  a b ",), "a b"),
        ("replace", ("aXbX", "X", "--"), "a--b--"),
        ("replace", ("ab", "", "-"), "ab"),
        ("concat", ("a", b"b", "c"), "abc"),
        ("concat", ("a", None), None),
        ("to_hex_string", (b"\x00\xab",), "00ab"),
        ("string_hash", ("abc",), 0x352441C2),
        ("string_hash", (b"abc",), 0x352441C2),
        ("string_hash_long", ("abc",), 0x900150983CD24FB),
        ("get_list_entry", ("a|b|c", "|", 1), "b"),
        ("get_list_entry", ("a|b|c", "|", 3), None),
        ("get_list_entry", ("a::b", "::", 1), "b"),
        ("sum_uint_in_list", ("34|45|56", "|"), 135),
        ("sum_uint_in_list", ("|8|x", "|"), 8),
        ("strtoi", ("port 443/tcp",), 443),
        ("strtoi", ("none",), None),
        ("strtoip", ("10.0.0.1",), b"\4\n\0\0\1"),
        ("strtoip", ("10.0.0",), None),
        ("str_regex_match", (b"GET / HTTP/1.1", "HTTP/[0-9.]+$"), True),
        ("str_regex_match", ("a\nb", "^b$"), True),
        ("str_regex_match", ("a\nb", "a.b"), False),
        ("str_regex_match", ("٣", r"\d"), False),
        ("str_partial_regex_match", ("abcdef", "de", 4), False),
        ("str_partial_regex_match", ("abcdef", "de", 5), True),
        ("str_extract_regex", (b"Host: a.b\r\n", "[Hh]ost: [a-z.]*"), "Host: a.b"),
        ("str_extract_regex", ("Host: a.b", "Host: ([a-z.]*)", 1), "a.b"),
        ("str_extract_regex", ("GET", "Host"), None),
        ("str_extract_regex", ("b", "(a)?b", 1), None),
    ],
)
def test_text(name: str, args: tuple[Value, ...], expected: Value) -> None:
    result = scalar(name)(*args)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("abs", (-3,), 3),
        ("abs", (-0.5,), 0.5),
        ("sign", (-0.1,), -1),
        ("floor", (-1.5,), -2),
        ("ceil", (-1.5,), -1),
        ("trunc", (-1.5,), -1),
        ("floor", (7,), 7),
        ("floor", (1e300,), None),
        ("round", (2.5,), 3),
        ("round", (-2.5,), -3),
        ("round", (0.49999999999999994,), 0),
        ("round", (2.675, 2), 2.68),
        ("round", (-2.345, 2), -2.35),
        ("round", (1e300, 2), 1e300),
        ("round", (155, -1), 160),
        ("round", (155, 3), 155),
        ("sqrt", (2.25,), 1.5),
        ("sqrt", (-1,), None),
        ("pow", (2, 10), 1024.0),
        ("pow", (-8, 0.5), None),
        ("pow", (0, -1), None),
        ("exp", (1000,), None),
        ("ln", (1,), 0.0),
        ("log", (0,), None),
        ("log2", (8,), 3.0),
        ("log10", (1000,), 3.0),
        ("least", (3, None, 2), 2),
        ("greatest", ("a", "b"), "b"),
        ("greatest", (None, None), None),
        ("umin", (3, 2.9), 2),
        ("ullmax", (3, 5), 5),
        ("fmax", (3, 2), 3.0),
        ("lmax", (1e300, 0), None),
        ("mod", (-1, 5), 4),
        ("if", (True, 1, 2), 1),
        ("if_else_i", (0, 1, 2), 2),
        ("if", (None, 1, 2), 2),
        ("nullif", (1, 1), None),
        ("nullif", (1, None), 1),
        ("ifnull", (None, 4), 4),
        ("EQ", (2, 2.0), 1),
        ("GEQ", (2, 3), 0),
        ("GE", (3, 3), 0),
        ("LEQ", (3, 3), 1),
        ("LE", (2, 3), 1),
        ("endian_swap_ui", (0x01020304,), 0x04030201),
        ("endian_swap_ui", (-1,), 0xFFFFFFFF),
    ],
)
def test_numbers_and_choices(name: str, args: tuple[Value, ...], expected: Value) -> None:
    result = scalar(name)(*args)
    assert result == expected
    assert type(result) is type(expected)


def test_absolute_value_that_does_not_fit() -> None:
    with pytest.raises(ValueMistake, match="integer overflow in abs"):
        scalar("abs")(INT_MIN)


def test_addresses() -> None:
    v4, v6 = parse_ip("10.1.2.3"), parse_ip("2001:db8:1:2::3")
    assert format_ip(scalar("prefix")(v4, 24, 48)) == "10.1.2.0"
    assert format_ip(scalar("prefix")(v6, 24, 48)) == "2001:db8:1::"
    assert format_ip(scalar("prefix")(v6, 24, 0)) == "::"
    assert scalar("prefix")(v4, 32) == v4
    assert scalar("prefix")(v6, 24) is None
    assert scalar("prefix")(v4, 33) is None
    assert scalar("in_subnet")(v4, "10.0.0.0/8") is True
    assert scalar("in_subnet")(v4, "10.1.2.9/24") is True
    assert scalar("in_subnet")(v4, "2001:db8::/32") is False
    assert scalar("in_subnet")(v6, "2001:db8::/32") is True
    assert scalar("ip_version")(v6) == 6
    assert scalar("is_private")(v4) is True
    assert scalar("is_private")(parse_ip("172.32.0.1")) is False
    assert scalar("is_private")(parse_ip("fd00::1")) is True


def test_longest_prefix_match(tmp_path: Path) -> None:
    file = tmp_path / "peers.tbl"
    file.write_text("# peers\n10.0.0.0/8|1\n10.1.0.0/16,2\n\n2001:db8::/32|6\n0.0.0.0/0|9\n")
    lookup = scalar("getlpmid")
    for address, peer in [
        ("10.1.2.3", 2),
        ("10.2.0.1", 1),
        ("8.8.8.8", 9),
        ("2001:db8::5", 6),
        ("2001:db9::5", None),
    ]:
        assert lookup(parse_ip(address), str(file)) == peer
    file.unlink()
    assert lookup(parse_ip("10.1.2.3"), str(file)) == 2, "a file is read once"


def test_integer_names(tmp_path: Path) -> None:
    file = tmp_path / "protocols.csv"
    file.write_text("6,TCP\n17, UDP\n")
    assert scalar("int_to_string_map")(17, str(file)) == "UDP"
    assert scalar("int_to_string_map")(1, str(file)) is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("getlpmid", "10.0.0.0/8\n", "line 1 is not of the form key|value"),
        ("getlpmid", "10.0.0.0/8|x\n", "line 1: 'x' is not an integer"),
        ("getlpmid", "\n10.0.0/8|1\n", "line 2: '10.0.0/8' is not a subnet"),
        ("int_to_string_map", "x,TCP\n", "line 1: 'x' is not an integer"),
    ],
)
def test_bad_tables(name: str, content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text(content)
    check = scalar(name).check_constants
    assert check is not None
    with pytest.raises(ValueMistake) as caught:
        check([None, str(file)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("getlpmid", (None, "nowhere.tbl"), "cannot read 'nowhere.tbl': no such file or directory"),
        ("str_regex_match", (None, "("), "bad regular expression '(': missing )"),
        ("str_extract_regex", (None, "(a)", 2), "regular expression '(a)' has 1 groups, not 2"),
        ("in_subnet", (None, "10.0.0/8"), "'10.0.0/8' is not a subnet; write one as '10.0.0.0/8'"),
        ("prefix", (None, 33, 64), "prefix length 33 does not lie between 0 and 32"),
        ("prefix", (None, 24, 129), "prefix length 129 does not lie between 0 and 128"),
    ],
)
def test_constants_are_checked(name: str, constants: tuple[Value, ...], message: str) -> None:
    check = scalar(name).check_constants
    assert check is not None
    check([None] * len(constants))
    with pytest.raises(ValueMistake) as caught:
        check(constants)
    assert str(caught.value).startswith(message)


def test_no_built_in_function_discards_tuples() -> None:
    """What they find no answer for is NULL; only a user's function may ask for more."""
    assert not [s.name for s in Functions.builtin().scalars.values() if s.partial]


def test_messages_name_the_argument() -> None:
    with pytest.raises(Exception, match="str_truncate takes an integer as second argument, not IP"):
        scalar("str_truncate").type_rule((Type.STRING, Type.IP))
    with pytest.raises(Exception, match="upper takes one argument, not 2"):
        scalar("upper").type_rule((Type.STRING, Type.STRING))
