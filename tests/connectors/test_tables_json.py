from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from terascope.connectors.base import Column
from terascope.connectors.registry import parse_interface
from terascope.connectors.tables.jsonlines import JsonConnector
from terascope.diagnostic import SourceError
from terascope.types import Type, parse_ip
from tests.connectors.table_reading import POSITION, SHARED, columns, read_all, splits_of, written

JSON = JsonConnector()
HALVES = re.compile("[\ud800-\udfff]")
WIKITICKER = SHARED / "data/events/wikiticker-2015-09-12-sampled.json.gz"

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", "é", 'q"', ""])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=2),
    VALUES,
    max_size=4,
)


def rejected(constant: str) -> object:
    raise ValueError(constant)


def reference(line: bytes) -> dict[str, object] | set[str]:
    """What Python's own parser says, or the reasons for which the line may be called malformed."""
    if not line.strip(b" \t\r").startswith(b"{"):
        return {"not a JSON object"} if line.strip(b" \t\r") else set()
    try:
        value = json.loads(line.decode(), parse_constant=rejected)
    except UnicodeDecodeError:
        return {"invalid JSON", "invalid UTF-8"}
    except ValueError:
        return {"invalid JSON"}
    assert isinstance(value, dict)
    return value


def as_text(value: object) -> object:
    """A JSON value as a STRING column holds it; numbers and nested ones apart."""
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case _:
            return ...


def mutated(line: bytes, edits: list[tuple[int, int]]) -> bytes:
    for at, byte in edits:
        place = at % (len(line) + 1)
        line = line[:place] + bytes([byte]) + line[place + at % 2 :]
    return line


@settings(max_examples=400, deadline=None)
@example({"a": "\ud83d\ude00"}, [], True)
@example({"a": "\\", "b": '"'}, [], True)
@example({"a": "\ud800\udc00"}, [(7, ord("{"))], True)
@given(
    OBJECTS,
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from(b'{}[]",:0123eE+-.\\utfn \xff')), max_size=3
    ),
    st.booleans(),
)
def test_every_line_is_judged_as_python_judges_it(
    row: dict[str, object], edits: list[tuple[int, int]], ascii: bool
) -> None:
    line = mutated(json.dumps(row, ensure_ascii=ascii).encode(), edits)
    wanted = (
        *columns(a=Type.STRING, b=Type.STRING),
        Column("é", Type.STRING),
        Column('q"', Type.STRING),
        Column("", Type.STRING),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "t.json", b'{"a": "first"}\n' + line + b'\n{"a": "last"}')
        seen = read_all(JSON, [path], wanted)
    nothing = (None,) * 4
    assert seen.rows[0] == ("first", *nothing)
    assert seen.rows[-1] == ("last", *nothing)
    expected = reference(line)
    if isinstance(expected, set):
        assert len(seen.rows) == 2
        assert seen.malformed.total() == (1 if expected else 0)
        assert set(seen.malformed) <= expected
        return
    assert not seen.malformed
    (found,) = seen.rows[1:-1]
    for column, value in zip(wanted, found, strict=True):
        text = as_text(expected.get(column.name))
        if text is not ...:
            # Half a surrogate pair is no character.
            assert value == (HALVES.sub("\ufffd", text) if isinstance(text, str) else text)
        else:
            assert isinstance(value, str)
            assert json.loads(value) == expected[column.name]


def test_every_type(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.json",
        '{"n": 1, "f": 2, "ok": true, "ip": "10.0.0.1", "s": "a\\u00e9\\n", "raw": "x"}\r\n'
        "\n"
        '{"n": "0x10", "f": 1e3, "ok": 0, "ip": 167772161, "s": 1.50, "raw": ""}\n'
        '{"n": 60.0, "f": "2.5", "ok": "no", "ip": "::1", "s": {"k": [1]}, "n": 61}\n'
        '{"n": null, "s": false}\n',
    )
    wanted = columns(
        n=Type.INT, f=Type.FLOAT, ok=Type.BOOL, ip=Type.IP, s=Type.STRING, raw=Type.BINARY
    )
    seen = read_all(JSON, [path], wanted)
    assert seen.rows == [
        (1, 2.0, True, parse_ip("10.0.0.1"), "aé\n", b"x"),
        (16, 1000.0, False, parse_ip("10.0.0.1"), "1.50", b""),
        (61, 2.5, False, parse_ip("::1"), '{"k": [1]}', None),
        (None, None, None, None, "false", None),
    ]
    assert not seen.malformed
    assert seen.horizon == {"n": 61}
    assert seen.bytes_read == path.stat().st_size


def test_malformed_lines_are_counted_by_reason_and_the_others_used(tmp_path: Path) -> None:
    deep = '{"x": ' + "[" * 2000 + "]" * 2000 + ', "n": 1}'
    lines = [
        b'{"n": 1}',
        b'{"n": "one"}',
        b'{"n": 1.5}',
        b'{"n": 9223372036854775808}',
        b'{"n": 2',
        b'{"n": 2} {"n": 3}',
        b"[1, 2]",
        b'{"n": 2, "s": "\xff"}',
        b'{"n": NaN}',
        deep.encode(),
        b'{"n": 2}',
    ]
    path = written(tmp_path / "t.json", b"\n".join(lines))
    seen = read_all(JSON, [path], columns(n=Type.INT))
    assert seen.rows == [(1,), (2,)]
    assert seen.malformed == {
        "column 'n': not an integer": 2,
        "column 'n': integer out of range": 1,
        "invalid JSON": 4,
        "not a JSON object": 1,
        "invalid UTF-8": 1,
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(OBJECTS, max_size=25), st.integers(1, 80), st.booleans())
def test_any_split_size_gives_the_same_rows(
    rows: list[dict[str, object]], target: int, mark: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = "".join(json.dumps(row) + "\n\n" for row in rows)
        path = written(Path(folder) / "t.json", ("\ufeff" if mark else "") + text)
        wanted = (*columns(a=Type.STRING, b=Type.STRING), POSITION)
        whole = read_all(JSON, [path], wanted)
        parts = read_all(JSON, [path], wanted, target_bytes=target)
    assert len(whole.rows) == len(rows)
    assert parts.rows == whole.rows
    assert parts.malformed == whole.malformed


def test_rows_longer_than_allowed_and_than_a_block(tmp_path: Path) -> None:
    long = json.dumps({"n": 1, "s": "y" * 9_000_000})
    path = written(tmp_path / "t.json", f'{{"n": 0}}\n{long}\n{{"n": 2}}\n')
    wanted = (*columns(n=Type.INT), POSITION)
    assert [row[0] for row in read_all(JSON, [path], wanted).rows] == [0, 1, 2]
    short = read_all(JSON, [path], wanted, {"max_row_bytes": "1000"})
    assert short.rows == [(0, 0), (2, 9 + 1 + len(long))]
    assert short.malformed == {"row too long": 1}
    assert read_all(JSON, [path], wanted, {"max_row_bytes": "1000"}, 5).rows == short.rows


def test_own_columns_leave_nested_values_out(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.json",
        '{"i": 1, "f": 1, "ip": "10.0.0.1", "s": "12", "mix": 1, "none": null, "o": {"k": 1}}\n'
        "broken\n"
        '{"b": true, "f": 1.5, "ip": "::1", "i": null, "mix": "x", "o": null}\n',
    )
    assert JSON.columns([path], {}) == columns(
        i=Type.INT,
        f=Type.FLOAT,
        ip=Type.IP,
        s=Type.STRING,
        mix=Type.STRING,
        none=Type.STRING,
        b=Type.BOOL,
    )


def test_interface_is_the_objects_own_or_the_one_read(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", '{"interface": "eth7"}\n{"n": 1}\n')
    seen = read_all(JSON, [path], columns(interface=Type.STRING, n=Type.INT))
    assert seen.rows == [("eth7", None), ("if0", 1)]


def test_empty_files(tmp_path: Path) -> None:
    empty = written(tmp_path / "a.json", "")
    assert read_all(JSON, [empty], columns(n=Type.INT)).malformed == {"empty file": 1}
    with pytest.raises(SourceError, match="every file is empty"):
        JSON.columns([empty], {})


def test_synonyms_and_unknown_options(tmp_path: Path) -> None:
    assert {parse_interface(f"{kind}:x").kind for kind in ("jsonl", "ndjson", "json")} == {"json"}
    with pytest.raises(SourceError, match="unknown option 'header' of a json source"):
        splits_of(JSON, "x", [written(tmp_path / "t.json", "{}")], {"header": "true"}, 1)


def test_wikiticker() -> None:
    if not WIKITICKER.exists():
        pytest.skip("the shared events are not here")
    own = JSON.columns([WIKITICKER], {})
    seen = read_all(JSON, [WIKITICKER], (*own, POSITION))
    assert seen.tuples == len(seen.rows) == 39_244
    assert not seen.malformed
    with gzip.open(WIKITICKER) as lines:
        expected = [json.loads(line) for line in lines]
    names = [column.name for column in own]
    assert [row[:-1] for row in seen.rows] == [tuple(r[n] for n in names) for r in expected]


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a": ' * 100_000, '{"a": ' + "[" * 100_000])
def test_a_line_nested_without_end_is_one_malformed_row(tmp_path: Path, deep: str) -> None:
    path = written(tmp_path / "t.json", f'{{"a": 1}}\n{deep}\n{{"a": 3}}\n')
    assert JSON.columns([path], {}) == columns(a=Type.INT)
    seen = read_all(JSON, [path], columns(a=Type.INT))
    assert seen.rows == [(1,), (3,)]
    assert sum(seen.malformed.values()) == 1
    alone = written(tmp_path / "u.json", f'{deep}\n{{"a": 3}}\n')
    assert JSON.columns([alone], {}) == columns(a=Type.INT)
