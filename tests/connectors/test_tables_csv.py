from __future__ import annotations

import csv
import gzip
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from terascope.connectors.base import Column, ReadReport
from terascope.connectors.tables.csv import CsvConnector, CsvOptions, record_reader
from terascope.diagnostic import SourceError
from terascope.types import Type, parse_ip
from tests.connectors.table_reading import POSITION, SHARED, columns, read_all, splits_of, written

CSV = CsvConnector()
CELLS = st.text(alphabet='ab ,;"\n\ré#', max_size=6)


def as_csv(rows: Sequence[Sequence[str]], line_end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def test_every_type_and_pseudo_column(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.csv",
        "n,x,f,ok,ip,name,raw\n"
        "1,0x1F,1.5,yes,10.0.0.1,plain,\xe9\n"
        '-2,7.0,-1e3,F,2001:db8::1,"two ""words"", quoted",\n'
        ",,,,,,\n",
    )
    wanted = columns(
        raw=Type.BINARY, n=Type.INT, x=Type.ULLONG, f=Type.FLOAT, ok=Type.BOOL, ip=Type.IP
    )
    wanted += (Column("interface", Type.STRING), Column("name", Type.STRING), POSITION)
    seen = read_all(CSV, [path], wanted)
    assert seen.rows == [
        ("é".encode(), 1, 31, 1.5, True, parse_ip("10.0.0.1"), "if0", "plain", 21),
        (b"", -2, 7, -1000.0, False, parse_ip("2001:db8::1"), "if0", 'two "words", quoted', 54),
        (b"", None, None, None, None, None, "if0", "", path.read_bytes().index(b",,,,,,")),
    ]
    assert seen.horizon == {"n": 1, "x": 31}
    assert seen.tuples == 3
    assert seen.bytes_read == path.stat().st_size
    assert not seen.malformed


def test_position_holds_the_ordinal_of_the_file(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{k}.csv", "a\n1\n2\n") for k in range(3)]
    seen = read_all(CSV, files, (POSITION,))
    assert [row[0] for row in seen.rows] == [(k << 40) + at for k in range(3) for at in (2, 4)]


def test_malformed_rows_are_counted_by_reason_and_the_others_used(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.csv",
        b"t,len,src\n"
        b"1,60,10.0.0.1\n"
        b"2,sixty,10.0.0.1\n"
        b"3,60\n"
        b"4,60,10.0.0.1,extra\n"
        b"5,60,10.0.0.256\n"
        b"6,99999999999999999999,10.0.0.1\n"
        b"7,6\xff,10.0.0.1\n"
        b'8,"60"x,10.0.0.1\n'
        b"\n"
        b"9,61,10.0.0.2\n"
        b'10,"never closed,10.0.0.1\n'
        b"11,62,10.0.0.3\n",
    )
    seen = read_all(CSV, [path], columns(t=Type.UINT, len=Type.UINT, src=Type.IP))
    assert [row[:2] for row in seen.rows] == [(1, 60), (9, 61), (11, 62)]
    assert seen.malformed == {
        "column 'len': not an integer": 1,
        "wrong number of fields": 2,
        "column 'src': not an IP address": 1,
        "column 'len': integer out of range": 1,
        "invalid UTF-8": 1,
        "text after a closing quote": 1,
        "quote not closed": 1,
    }
    assert seen.tuples == 3
    assert seen.horizon == {"t": 11, "len": 62}


def test_a_row_with_two_bad_columns_is_counted_once(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\nx,y\n1,y\n")
    seen = read_all(CSV, [path], columns(a=Type.INT, b=Type.FLOAT))
    assert seen.malformed == {"column 'a': not an integer": 1, "column 'b': not a number": 1}


@pytest.mark.parametrize("content", [b"", b"\n\r\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_malformed(tmp_path: Path, content: bytes) -> None:
    empty = written(tmp_path / "a.csv", content)
    full = written(tmp_path / "b.csv", "a\n1\n")
    seen = read_all(CSV, [empty, full], columns(a=Type.INT))
    assert seen.rows == [(1,)]
    assert seen.malformed == {"empty file": 1}
    assert CSV.columns([empty, full], {}) == columns(a=Type.INT)
    with pytest.raises(SourceError, match="every file is empty"):
        CSV.columns([empty], {})


def test_a_header_alone_is_no_error(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b")
    seen = read_all(CSV, [path], columns(a=Type.INT))
    assert (seen.rows, seen.malformed) == ([], {})
    assert CSV.columns([path], {}) == columns(a=Type.STRING, b=Type.STRING)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=30),
    st.integers(1, 60),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_split_size_gives_the_rows_that_were_written(
    rows: list[list[str]], target: int, line_end: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "t.csv", as_csv([["a", "b", "c"], *rows], line_end))
        wanted = (*columns(c=Type.STRING, a=Type.STRING), POSITION)
        whole = read_all(CSV, [path], wanted)
        parts = read_all(CSV, [path], wanted, target_bytes=target)
    assert [row[:2] for row in whole.rows] == [(c, a) for a, _, c in rows]
    assert not whole.malformed
    assert parts.rows == whole.rows
    assert parts.bytes_read == whole.bytes_read
    positions = np.array([row[2] for row in whole.rows])
    assert (np.diff(positions) > 0).all()


@settings(max_examples=150, deadline=None)
@example(b'a,b\n"\n1,2\n3,4\n', 3, True)
@given(
    st.lists(st.sampled_from(b'aab,,"\n\n\r#\xff12'), max_size=120).map(bytes),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_bytes_read_the_same_however_they_are_split(
    data: bytes, target: int, newlines: bool
) -> None:
    options = {
        "names": "a,b",
        "header": "false",
        "comment": "#",
        "max_row_bytes": "20",
        "newlines_in_values": str(newlines),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "t.csv", data)
        wanted = (*columns(b=Type.STRING, a=Type.INT), POSITION)
        whole = read_all(CSV, [path], wanted, options)
        parts = read_all(CSV, [path], wanted, options, target)
    assert parts.rows == whole.rows
    assert parts.malformed == whole.malformed


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(b'ab,,"\n\n\r'), max_size=100).map(bytes),
    st.lists(st.integers(1, 20), min_size=1),
    st.integers(3, 30),
)
def test_records_do_not_depend_on_the_blocks_they_come_in(
    data: bytes, sizes: list[int], limit: int
) -> None:
    dialect = CsvOptions.of({"max_row_bytes": str(limit)}, "t.csv")
    reader = record_reader(dialect, (), rows=256)
    arrays = reader.arrays

    def records(chunks: list[bytes]) -> tuple[list[tuple[int, ...]], dict[str, int]]:
        report = ReadReport()
        found: list[tuple[int, ...]] = []
        for scanned in reader.read(chunks, 0, report):
            scanned.good_rows(report)
            good = arrays.status[: scanned.rows] == 0
            found += zip(
                scanned.offsets()[good].tolist(),
                arrays.counts[: scanned.rows][good].tolist(),
                strict=True,
            )
        return found, dict(report.malformed)

    chunks: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[at : at + size])
        at += size
    assert records(chunks) == records([data] if data else [])


def test_files_longer_than_a_block_and_rows_longer_than_allowed(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 10**9, 300_000)
    lines = [f'{n},"x{n}\n"' if n % 5 == 0 else f"{n},x{n}" for n in numbers.tolist()]
    lines.insert(1000, "1," + "y" * 9_000_000)
    path = written(tmp_path / "t.csv", "n,s\n" + "\n".join(lines))
    options = {"max_row_bytes": "4000000"}
    wanted = (*columns(n=Type.INT, s=Type.STRING), POSITION)
    whole = read_all(CSV, [path], wanted, options)
    assert [row[0] for row in whole.rows] == numbers.tolist()
    assert whole.malformed == {"row too long": 1}
    parts = read_all(CSV, [path], wanted, options, target_bytes=1_000_000)
    assert parts.splits > 5
    assert parts.rows == whole.rows
    assert parts.malformed == whole.malformed


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "n\n" + "7\n" * 150_000)
    (split,) = splits_of(CSV, "x", [path], {}, 1 << 30)
    sizes = [b.num_rows for b in CSV.read(split, columns(n=Type.INT), ReadReport())]
    assert sum(sizes) == 150_000
    assert max(sizes) == 65_536


def test_no_columns_still_count_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "n\n1\n2\n")
    (split,) = splits_of(CSV, "x", [path], {}, 1 << 30)
    assert [b.num_rows for b in CSV.read(split, (), ReadReport())] == [2]


def test_gzip_is_recognised_by_its_bytes_and_is_one_split(tmp_path: Path) -> None:
    text = "a,b\n" + "".join(f"{k},x\n" for k in range(5000))
    packed = written(tmp_path / "packed.csv", gzip.compress(text.encode()))
    plain = written(tmp_path / "plain.csv", text)
    wanted = (*columns(a=Type.INT), POSITION)
    seen = read_all(CSV, [packed], wanted, target_bytes=100)
    assert seen.splits == 1
    assert seen.bytes_read == packed.stat().st_size
    assert seen.rows == read_all(CSV, [plain], wanted, target_bytes=100).rows


def test_a_gzip_file_cut_short_gives_what_it_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 10**9, 20_000).tolist()
    packed = gzip.compress(("n\n" + "".join(f"{n}\n" for n in numbers)).encode())
    path = written(tmp_path / "t.csv.gz", packed[: len(packed) // 2])
    seen = read_all(CSV, [path], columns(n=Type.INT))
    assert 5000 < len(seen.rows) < 15_000
    assert [row[0] for row in seen.rows[:-1]] == numbers[: len(seen.rows) - 1]
    assert seen.malformed == {"damaged gzip stream": 1}


def test_own_columns(tmp_path: Path) -> None:
    path = written(
        tmp_path / "t.csv",
        "\ufeffi,f,b,ip,s,none,i,big\n"
        "1,1,true,10.0.0.1,x,,5,99999999999999999999\n"
        "0x2,2.5,no,::1,1,,6,1\n"
        ",,,,,,,\n",
    )
    types = [Type.INT, Type.FLOAT, Type.BOOL, Type.IP, Type.STRING, Type.STRING, Type.INT]
    names = ["i", "f", "b", "ip", "s", "none", "i_2"]
    found = CSV.columns([path], {})
    assert found[:7] == tuple(map(Column, names, types))
    assert found[7] == Column("big", Type.FLOAT)
    assert read_all(CSV, [path], columns(i=Type.INT, i_2=Type.INT)).rows[0] == (1, 5)


def test_numbers_of_both_kinds_are_no_addresses(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a\n12\n10.0.0.1\n")
    assert CSV.columns([path], {}) == columns(a=Type.STRING)
    seen = read_all(CSV, [path], columns(a=Type.IP))
    assert seen.rows == [(parse_ip("0.0.0.12"),), (parse_ip("10.0.0.1"),)]


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("t.csv", "a;b\n1;'x;y'\n", {"delimiter": ";", "quote": "'"}),
        ("t.tsv", 'a\tb\n1\t"x;y"\n', {}),
        ("t.csv", "a\tb\n1\tx;y\n", {"delimiter": "tab", "quote": "none"}),
        ("t.csv", '1,"x;y"\n', {"header": "false", "names": "a, b"}),
        ("t.csv", '#note\nA,B\n# "1\n1,"x;y"\n', {"names": "a,b", "comment": "#"}),
        ("t.csv", 'a,b\n1,"x;y"\nNULL,x\n', {"null": "NULL"}),
    ],
)
def test_dialects(tmp_path: Path, name: str, text: str, options: dict[str, str]) -> None:
    path = written(tmp_path / name, text)
    for target in (1, 1 << 30):
        seen = read_all(CSV, [path], columns(a=Type.INT, b=Type.STRING), options, target)
        assert seen.rows[0] == (1, "x;y")
        assert seen.rows[1:] in ([], [(None, "x")])
        assert not seen.malformed
    assert CSV.columns([path], options) == columns(a=Type.INT, b=Type.STRING)


def test_files_without_header_number_their_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "1,x\n2,y\n")
    assert CSV.columns([path], {"header": "false"}) == columns(
        column1=Type.INT, column2=Type.STRING
    )
    seen = read_all(CSV, [path], columns(column2=Type.STRING), {"header": "false"})
    assert seen.rows == [("x",), ("y",)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimeter": ";"}, "unknown option 'delimeter' of a csv source"),
        ({"delimiter": "ab"}, "option delimiter is one ASCII character, not 'ab'"),
        ({"header": "maybe"}, "option header is true or false, not 'maybe'"),
        ({"max_row_bytes": "x"}, "option max_row_bytes is a number"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = written(tmp_path / "t.csv", "a\n1\n")
    with pytest.raises(SourceError, match=message):
        splits_of(CSV, "x", [path], options, 1 << 20)


def test_what_cannot_be_read_says_so_in_one_line(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\n1,2\n")
    with pytest.raises(SourceError, match=r"has no column 'c'; its columns are a, b$"):
        read_all(CSV, [path], columns(c=Type.INT))
    with pytest.raises(SourceError, match=r"cannot read '.*gone.csv': no such file"):
        splits_of(CSV, "x", [tmp_path / "gone.csv"], {}, 1)
    with pytest.raises(SourceError, match=r"header of .*: quote not closed"):
        CSV.columns([written(tmp_path / "q.csv", '"a,b\n1,2\n')], {})


def test_a_column_of_the_file_goes_before_the_pseudo_column(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "interface\neth7\n")
    assert read_all(CSV, [path], columns(interface=Type.STRING)).rows == [("eth7",)]


def test_the_manifest_of_the_captures_reads_as_python_reads_it() -> None:
    path = SHARED / "data/MANIFEST.csv"
    if not path.exists():
        pytest.skip("the shared captures are not here")
    with path.open(newline="") as file:
        expected = list(csv.DictReader(file))
    own = CSV.columns([path], {})
    texts = tuple(Column(column.name, Type.STRING) for column in own)
    seen = read_all(CSV, [path], texts, target_bytes=2000)
    assert seen.splits > 3
    assert [list(row) for row in seen.rows] == [list(row.values()) for row in expected]
    typed = read_all(CSV, [path], own)
    assert not typed.malformed
    assert {c.name: c.type for c in own}["bytes"] is Type.INT


def test_agrees_with_arrow_on_a_large_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "n": rng.integers(-(2**63), 2**63 - 1, 20_000),
            "f": rng.standard_normal(20_000) * 1e12,
            "s": [f'v "{k}"\n' if k % 3 else "" for k in range(20_000)],
        }
    )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([table.column_names, *zip(*table.to_pydict().values(), strict=True)])
    path = written(tmp_path / "t.csv", out.getvalue())
    assert CSV.columns([path], {}) == columns(n=Type.INT, f=Type.FLOAT, s=Type.STRING)
    seen = read_all(CSV, [path], CSV.columns([path], {}), target_bytes=50_000)
    assert seen.rows == list(zip(*table.to_pydict().values(), strict=True))
