from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.base import Column, ReadReport
from terascope.connectors.tables.parquet import ParquetConnector
from terascope.diagnostic import SourceError
from terascope.types import Type, parse_ip
from tests.connectors.table_reading import POSITION, WHOLE, columns, read_all, splits_of, written

PARQUET = ParquetConnector()
V4 = ipaddress.ip_address("10.0.0.200")
V6 = ipaddress.ip_address("2001:db8::1")


def stored(path: Path, row_group_size: int | None = None, **arrays: pa.Array) -> Path:
    pq.write_table(pa.table(arrays), path, row_group_size=row_group_size)
    return path


def one(tmp_path: Path, array: pa.Array, type: Type) -> tuple[list[object], dict[str, int]]:
    path = stored(tmp_path / "t.parquet", x=array)
    seen = read_all(PARQUET, [path], columns(x=type))
    return [row[0] for row in seen.rows], dict(seen.malformed)


def test_own_columns(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "t.parquet",
        i=pa.array([1], pa.int16()),
        u=pa.array([1], pa.uint32()),
        l=pa.array([1], pa.int64()),
        ul=pa.array([1], pa.uint64()),
        f=pa.array([1], pa.float32()),
        d=pa.array([decimal.Decimal("1.5")]),
        b=pa.array([True]),
        t=pa.array([1], pa.timestamp("us", tz="UTC")),
        s=pa.array(["x"]).dictionary_encode(),
        raw=pa.array([b"x"]),
        nested=pa.array([{"k": 1}]),
        many=pa.array([[1]]),
    )
    assert PARQUET.columns([path], {}) == columns(
        i=Type.INT,
        u=Type.UINT,
        l=Type.LLONG,
        ul=Type.ULLONG,
        f=Type.FLOAT,
        d=Type.FLOAT,
        b=Type.BOOL,
        t=Type.LLONG,
        s=Type.STRING,
        raw=Type.BINARY,
    )
    seen = read_all(PARQUET, [path], PARQUET.columns([path], {}))
    assert seen.rows == [(1, 1, 1, 1, 1.0, 1.5, True, 1000, "x", b"x")]


INSTANT = dt.datetime(2020, 1, 2, 3, 4, 5, 678000)
NANOSECONDS = 1577934245678000000


def test_decimals_become_the_nearest_float(tmp_path: Path) -> None:
    texts = [f"{n // 100}.{n % 100:02}" for n in range(0, 10**9, 7_654_321)]
    array = pa.array(map(decimal.Decimal, texts), pa.decimal128(10, 2))
    assert one(tmp_path, array, Type.FLOAT) == ([float(text) for text in texts], {})


@pytest.mark.parametrize("type", [Type.INT, Type.LLONG])
@pytest.mark.parametrize(
    ("array", "values", "malformed"),
    [
        (pa.array([1, None, -5], pa.int8()), [1, None, -5], {}),
        (pa.array([7, 2**63], pa.uint64()), [7], {"integer out of range": 1}),
        (
            pa.array([1.0, None, 1.5, float("nan"), 1e19, float("inf")]),
            [1, None],
            {"not an integer": 2, "integer out of range": 2},
        ),
        (pa.array(["12", "x", "", " 0x1f "]), [12, None, 31], {"not an integer": 1}),
        (pa.array([True, False]), [1, 0], {}),
        (pa.array([INSTANT], pa.timestamp("ms")), [NANOSECONDS], {}),
        (pa.array([INSTANT, None], pa.timestamp("us", tz="UTC")), [NANOSECONDS, None], {}),
        (pa.array([2**62, 1], pa.timestamp("ms")), [10**6], {"integer out of range": 1}),
        (pa.array([dt.date(1970, 1, 2)]), [86400 * 10**9], {}),
        (pa.array([3], pa.time32("ms")), [3 * 10**6], {}),
        (pa.array([3], pa.duration("us")), [3000], {}),
        (
            pa.array([decimal.Decimal("60.00"), decimal.Decimal("0.50")]),
            [60],
            {"not an integer": 1},
        ),
        (
            pa.array([2**53 + 1, 2**63 - 1, 2**63, -(2**63), None], pa.decimal128(20, 0)),
            [2**53 + 1, 2**63 - 1, -(2**63), None],
            {"integer out of range": 1},
        ),
        (pa.array([None, None], pa.null()), [None, None], {}),
        (pa.array([b"12", b"\xff"]), [12], {"not UTF-8": 1}),
    ],
)
def test_integers(
    tmp_path: Path,
    array: pa.Array,
    values: list[object],
    malformed: dict[str, int],
    type: Type,
) -> None:
    found, reasons = one(tmp_path, array, type)
    assert found == values
    assert reasons == {f"column 'x': {reason}": n for reason, n in malformed.items()}


@pytest.mark.parametrize(
    ("array", "type", "values", "malformed"),
    [
        (pa.array([1, None], pa.uint8()), Type.FLOAT, [1.0, None], {}),
        (pa.array(["1.5", "x"]), Type.FLOAT, [1.5], {"not a number": 1}),
        (pa.array([1, 0, 2, None]), Type.BOOL, [True, False, None], {"not a boolean": 1}),
        (pa.array(["T", "no", "maybe"]), Type.BOOL, [True, False], {"not a boolean": 1}),
        (pa.array([1, None]), Type.STRING, ["1", None], {}),
        (pa.array([True]), Type.STRING, ["true"], {}),
        (pa.array([b"x", b"\xff", None]), Type.STRING, ["x", None], {"not UTF-8": 1}),
        (pa.array(["x", ""]), Type.BINARY, [b"x", b""], {}),
        (pa.array(["x", ""], pa.large_string()), Type.STRING, ["x", ""], {}),
        (pa.array([b"ab"], pa.binary(2)), Type.BINARY, [b"ab"], {}),
    ],
)
def test_other_types(
    tmp_path: Path, array: pa.Array, type: Type, values: list[object], malformed: dict[str, int]
) -> None:
    found, reasons = one(tmp_path, array, type)
    assert found == values
    assert reasons == {f"column 'x': {reason}": n for reason, n in malformed.items()}


@pytest.mark.parametrize(
    "array",
    [
        pa.array([str(V4), None]),
        pa.array([int(V4), None], pa.uint32()),
        pa.array([int(V4) - 2**32 if int(V4) >= 2**31 else int(V4), None], pa.int32()),
        pa.array([int(V4), None], pa.int64()),
        pa.array([V4.packed, None]),
        pa.array([V4.packed, None], pa.binary(4)),
        pa.array([b"\x04" + V4.packed, None]),
        pa.array([str(V4).encode(), None]),
        pa.array([str(V4), None]).dictionary_encode(),
    ],
)
def test_addresses_of_any_form(tmp_path: Path, array: pa.Array) -> None:
    assert one(tmp_path, array, Type.IP) == ([parse_ip(str(V4)), None], {})
    found, reasons = one(tmp_path, array, Type.IPV6)
    assert (found, reasons) == ([None], {"column 'x': not an IPv6 address": 1})


def test_ipv4_numbers_with_the_high_bit_set(tmp_path: Path) -> None:
    array = pa.array([-1, 1], pa.int32())
    assert one(tmp_path, array, Type.IP)[0] == [parse_ip("255.255.255.255"), parse_ip("0.0.0.1")]


@pytest.mark.parametrize("array", [pa.array([str(V6)]), pa.array([V6.packed])])
@pytest.mark.parametrize("type", [Type.IP, Type.IPV6])
def test_ipv6_addresses(tmp_path: Path, array: pa.Array, type: Type) -> None:
    assert one(tmp_path, array, type) == ([parse_ip(str(V6))], {})


def test_bad_addresses(tmp_path: Path) -> None:
    mixed = pa.array([V4.packed, V6.packed, b"abc", b"\xff" * 5, b"\x06" + V6.packed])
    expected = [parse_ip(str(V4)), parse_ip(str(V6)), parse_ip(str(V6))]
    assert one(tmp_path, mixed, Type.IP) == (expected, {"column 'x': not an IP address": 2})
    numbers = pa.array([2**32, -1, 5])
    reasons = {"column 'x': not an IP address": 2}
    assert one(tmp_path, numbers, Type.IP) == ([parse_ip("0.0.0.5")], reasons)


@pytest.mark.parametrize("target", [1, 500, 5000, 1 << 30])
def test_row_groups_make_splits_and_positions_are_row_numbers(tmp_path: Path, target: int) -> None:
    texts = [f"{k}" if k % 100 else "bad" for k in range(10_000)]
    files = [
        stored(tmp_path / "a.parquet", row_group_size=777, n=pa.array(texts)),
        stored(tmp_path / "b.parquet", row_group_size=5000, n=pa.array(["1"])),
    ]
    seen = read_all(PARQUET, files, (*columns(n=Type.INT), POSITION), target_bytes=target)
    good = [(k, k) for k in range(10_000) if k % 100]
    assert seen.rows == [*good, (1, 1 << 40)]
    assert seen.malformed == {"column 'n': not an integer": 100}
    assert seen.splits == {1: 14, 500: 14, 1 << 30: 2}.get(target, seen.splits)
    assert seen.horizon == {"n": 9999}


TEXTS = ["10.0.0.1", None, "nowhere", "", "2001:db8::1", " 10.0.0.2 ", "10.0.0.1"]


@pytest.mark.parametrize("type", [Type.IP, Type.STRING, Type.BINARY, Type.INT])
@pytest.mark.parametrize("distinct", [7, 200_000])
def test_texts_mean_the_same_with_and_without_a_dictionary(
    tmp_path: Path, type: Type, distinct: int
) -> None:
    """Over several batches and row groups, whose dictionaries differ or grow too large."""
    made = [TEXTS[k % 7] if k % distinct < 7 else f"10.{k >> 16}.{k >> 8 & 255}.{k & 255}"
            for k in range(200_000)]  # fmt: skip
    tables = {}
    for encoded in (False, True):
        path = tmp_path / f"{encoded}.parquet"
        table = pa.table({"x": pa.array(made[::-1] if type is Type.INT else made)})
        pq.write_table(table, path, row_group_size=90_000, use_dictionary=encoded)
        batches: list[pa.RecordBatch] = []
        report = ReadReport()
        for split in splits_of(PARQUET, "x", [path], {}, 1 << 30):
            batches += PARQUET.read(split, (*columns(x=type), POSITION), report)
        tables[encoded] = (pa.Table.from_batches(batches), report.malformed, report.tuples)
    assert tables[True] == tables[False]
    assert tables[True][0].num_rows == tables[True][2]
    if type is Type.IP:
        assert tables[True][1]["column 'x': not an IP address"] >= 1


def test_only_the_wanted_columns_are_read(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "t.parquet",
        a=pa.array(range(1000)),
        b=pa.array([f"text {k}" for k in range(1000)]),
    )
    meta = pq.ParquetFile(path).metadata.row_group(0)
    sizes = [meta.column(k).total_compressed_size for k in range(2)]
    (split,) = splits_of(PARQUET, "x", [path], {}, 1 << 30)
    for wanted, expected in [
        (columns(a=Type.INT), sizes[0]),
        (columns(b=Type.STRING), sizes[1]),
        ((POSITION, Column("interface", Type.STRING)), 0),
        ((), 0),
    ]:
        report = ReadReport()
        assert sum(b.num_rows for b in PARQUET.read(split, wanted, report)) == 1000
        assert report.bytes_read == expected


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.parquet", a=pa.array(range(200_000)))
    (split,) = splits_of(PARQUET, "x", [path], {}, 1 << 30)
    sizes = [b.num_rows for b in PARQUET.read(split, columns(a=Type.INT), ReadReport())]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 65_536


def test_what_cannot_be_read_says_so_in_one_line(tmp_path: Path) -> None:
    text = written(tmp_path / "t.parquet", "a,b\n1,2\n")
    for use in (
        lambda: PARQUET.columns([text], {}),
        lambda: splits_of(PARQUET, "x", [text], {}, 1),
    ):
        with pytest.raises(SourceError, match=r"^'.*t.parquet' is not a Parquet file, [^\n]*$"):
            use()
    good = stored(tmp_path / "g.parquet", a=pa.array([1]))
    with pytest.raises(SourceError, match=r"has no column 'z'; its columns are a$"):
        read_all(PARQUET, [good], columns(z=Type.INT))
    with pytest.raises(SourceError, match="unknown option 'header' of a parquet source"):
        PARQUET.columns([good], {"header": "true"})


def test_rows_of_a_damaged_row_group_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": range(9000), "b": range(9000)})
    pq.write_table(table, path, row_group_size=3000, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset : chunk.data_page_offset + 400] = b"\xff" * 400
    path.write_bytes(data)
    rows = [(k, k) for k in range(9000) if not 3000 <= k < 6000]
    for target in (1, 30_000, WHOLE):
        seen = read_all(PARQUET, [path], (*columns(a=Type.INT), POSITION), target_bytes=target)
        assert seen.rows == rows
        assert seen.malformed == {"row of a damaged Parquet row group": 3000}
        assert len(seen.rows) + sum(seen.malformed.values()) == table.num_rows
    undamaged = read_all(PARQUET, [path], columns(b=Type.INT))
    assert len(undamaged.rows) == table.num_rows


def test_an_empty_file_and_an_empty_table(tmp_path: Path) -> None:
    empty = written(tmp_path / "a.parquet", "")
    rowless = stored(tmp_path / "b.parquet", a=pa.array([], pa.int64()))
    seen = read_all(PARQUET, [empty, rowless], columns(a=Type.INT))
    assert (seen.rows, seen.malformed) == ([], {"empty file": 1})
    assert PARQUET.columns([empty, rowless], {}) == columns(a=Type.LLONG)
