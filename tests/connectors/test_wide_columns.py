"""ULLONG columns hold all of their 64 bits, whatever kind of file a value comes from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from terascope.connectors.registry import KINDS
from terascope.types import BIAS, Type
from tests.connectors.table_reading import Seen, columns, read_all, written

NUMBERS = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
TOO_LARGE = 2**64


def read_wide(kind: str, path: Path) -> Seen:
    """Reads column `a`, held as numbers again."""
    seen = read_all(KINDS[kind], [path], columns(a=Type.WIDE))
    for (held,) in seen.rows:
        assert held is None or (isinstance(held, int) and -BIAS <= held < BIAS)
    return seen


def numbers_of(seen: Seen) -> list[int | None]:
    return [None if held is None else held + BIAS for (held,) in seen.rows]  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text(tmp_path: Path, kind: str) -> None:
    """What is negative, above 2^64 - 1 or no integer is malformed, each for its own reason."""
    texts = [*map(str, NUMBERS), "18446744073709551615.0", "1.8446744073709551615e19"]
    bad = ["-1", "-9223372036854775809", str(TOO_LARGE), "99999999999999999999999", "1e40", "1.5"]
    lines = ["a", *texts, *bad] if kind == "csv" else [f'{{"a": {t}}}' for t in [*texts, *bad]]
    seen = read_wide(kind, written(tmp_path / f"t.{kind}", "\n".join(lines) + "\n"))
    assert numbers_of(seen) == [*NUMBERS, 2**64 - 1, 2**64 - 1]
    assert seen.malformed == {
        "column 'a': negative, and declared unsigned": 2,
        "column 'a': integer out of range": 3,
        "column 'a': not an integer": 1,
    }


def test_hexadecimal_blanks_and_nothing(tmp_path: Path) -> None:
    lines = [
        "a,b",
        "0xffffffffffffffff,",
        " 9223372036854775808 ,",
        "+7,",
        "-0,",
        ",",
        "0x1ffffffffffffffff,",
    ]
    seen = read_wide("csv", written(tmp_path / "t.csv", "\n".join(lines) + "\n"))
    assert numbers_of(seen) == [2**64 - 1, 2**63, 7, 0, None]
    assert seen.malformed == {"column 'a': integer out of range": 1}


@pytest.mark.parametrize(
    ("values", "good", "bad"),
    [
        (pa.array([*NUMBERS, None], pa.uint64()), [*NUMBERS, None], {}),
        (
            pa.array([*NUMBERS, None, -1, TOO_LARGE], pa.decimal128(20, 0)),
            [*NUMBERS, None],
            {"negative, and declared unsigned": 1, "integer out of range": 1},
        ),
        (
            pa.array([2.0**63, 2.0**64 - 2048, 2.0**64, -1.0, 0.5, None]),
            [2**63, 2**64 - 2048, None],
            {"integer out of range": 1, "negative, and declared unsigned": 1, "not an integer": 1},
        ),
        (
            pa.array([0, 2**63 - 1, -1, None], pa.int64()),
            [0, 2**63 - 1, None],
            {"negative, and declared unsigned": 1},
        ),
        (pa.array([0, 2**32 - 1], pa.uint32()), [0, 2**32 - 1], {}),
        (pa.array(["18446744073709551615", " 5", None]), [2**64 - 1, 5, None], {}),
        (pa.array([2**64 - 1, 3, 3], pa.uint64()).dictionary_encode(), [2**64 - 1, 3, 3], {}),
    ],
)  # fmt: skip
def test_parquet(
    tmp_path: Path, values: pa.Array, good: list[int | None], bad: dict[str, int]
) -> None:
    pq.write_table(pa.table({"a": values}), tmp_path / "t.parquet")
    seen = read_wide("parquet", tmp_path / "t.parquet")
    assert numbers_of(seen) == good
    assert seen.malformed == {f"column 'a': {why}": count for why, count in bad.items()}
