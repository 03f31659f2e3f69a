"""What our own file formats cost beside pyarrow's: Parquet pages, CSV and JSON lines.

`python -m bench.formats` prints processor time for each row, the least of some runs:
- writing the groups of an epoch (two IP keys, a count and a sum) as Parquet, by the pages that
  tasks encode themselves and by pyarrow with several encodings;
- reading four columns of six of CSV and of JSON lines, by the connectors and by pyarrow.
docs/decisions.md has the figures: our code stays as long as it is quicker.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from terascope.connectors.base import Column, ReadReport
from terascope.connectors.registry import parse_interface
from terascope.execute.results.parts import PartWriter
from terascope.functions.slots import COUNT, SUM_INT
from terascope.kernels.columns.dictionary import dictionary_for
from terascope.kernels.merge.groups import Block, GroupFields
from terascope.kernels.tables.slots import Shape
from terascope.plan.rel import Field
from terascope.types import Type

ROWS: Final = 900_000
TEXT_ROWS: Final = 500_000
RUNS: Final = 12
KEYS: Final = (20_000, 60_000)
"""Different values of the two keys."""
DELTA: Final = {"column_encoding": dict.fromkeys(("n", "total"), "DELTA_BINARY_PACKED")}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "pyarrow, zstd, dictionaries": {"compression": "zstd"},
    "pyarrow, dictionary arrays, uncompressed": {"compression": "none"},
    "pyarrow, dictionary arrays for keys, DELTA_BINARY_PACKED, uncompressed": {
        "compression": "none", "use_dictionary": ["src", "dst"], **DELTA,
    },
    "pyarrow, plain, uncompressed": {"compression": "none", "use_dictionary": False},
}  # fmt: skip


def least(action: Callable[[], object], rows: int, runs: int = RUNS) -> float:
    """Nanoseconds of processor time for each row."""
    found = []
    for _ in range(runs):
        began = process_time()
        action()
        found.append(process_time() - began)
    return min(found) / rows * 1e9


def writing(folder: Path) -> Table:
    rng = np.random.default_rng(5)
    codes = [np.minimum(rng.zipf(1.3, ROWS), most) - 1 for most in KEYS]
    count, total = rng.integers(1, 200, ROWS), rng.integers(40, 150_000, ROWS)
    fields = tuple(Field(name, Type.IP) for name in ("src", "dst"))
    slots = tuple(Field(name, Type.LLONG) for name in ("n", "total"))
    shape = Shape(2, (COUNT, SUM_INT))
    dictionaries = [dictionary_for(Type.IP) for _ in KEYS]
    values = [pa.array([b"\x04" + n.to_bytes(4, "big") for n in range(most)]) for most in KEYS]
    own = [d.encode(v).astype(np.int64) for d, v in zip(dictionaries, values, strict=True)]
    rows = np.zeros((ROWS, shape.stride), np.int64)
    rows[:, 0] = 0b111
    rows[:, shape.first_word] = own[0][codes[0]] << 32 | own[1][codes[1]]
    rows[:, shape.slot(0)], rows[:, shape.slot(1)] = count, total
    block, held = Block.of(None, rows), GroupFields(fields, slots, shape)

    def ours() -> int:
        with PartWriter(folder, "parquet", held.fields) as writer:
            writer.write_block(block, held, dictionaries)
        return writer.path.stat().st_size

    coded = [
        pa.DictionaryArray.from_arrays(pa.array(c.astype(np.int32)), v)
        for c, v in zip(codes, values, strict=True)
    ]
    columns = dict(zip(("src", "dst", "n", "total"), (*coded, count, total), strict=True))
    arrow, path = pa.table(columns), folder / "arrow.parquet"
    table = Table("writer", "ns a row", "bytes a row", title="Parquet, groups of an epoch")
    for name, options in WAYS.items():
        spent = least(partial(pq.write_table, arrow, path, **options), ROWS)
        table.add_row(name, f"{spent:.0f}", f"{path.stat().st_size / ROWS:.1f}")
    table.add_row(
        "terascope.execute.results.parts", f"{least(ours, ROWS):.0f}", f"{ours() / ROWS:.1f}"
    )
    return table


TYPES: Final = {"ts": pa.int64(), "src": pa.string(), "port": pa.int64(), "len": pa.float64()}
WANTED: Final = [
    Column("ts", Type.LLONG), Column("src", Type.STRING), Column("port", Type.LLONG),
    Column("len", Type.FLOAT),
]  # fmt: skip


def reading(folder: Path) -> Table:
    rng = np.random.default_rng(6)
    lines = [
        {"ts": 1_700_000_000 + i // 500, "src": f"10.0.{a}.{b}", "dst": "192.0.2.1", "port": int(p),
         "len": n / 8, "note": "a text nobody asks for"}
        for i, (a, b, p, n) in enumerate(rng.integers(0, (256, 256, 65536, 12000), (TEXT_ROWS, 4)))
    ]  # fmt: skip
    texts = {"csv": folder / "flows.csv", "json": folder / "flows.json"}
    with texts["csv"].open("w") as file:
        file.write(",".join(lines[0]) + "\n")
        file.writelines(",".join(map(str, line.values())) + "\n" for line in lines)
    with texts["json"].open("w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    csv_options = pyarrow.csv.ConvertOptions(column_types=TYPES, include_columns=list(TYPES))
    json_options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(list(TYPES.items())), unexpected_field_behavior="ignore"
    )
    alone = {"csv": pyarrow.csv.ReadOptions, "json": pyarrow.json.ReadOptions}
    arrow: dict[str, Callable[[], object]] = {
        "csv": lambda: pyarrow.csv.read_csv(
            texts["csv"], alone["csv"](use_threads=False), convert_options=csv_options
        ),
        "json": lambda: pyarrow.json.read_json(
            texts["json"], alone["json"](use_threads=False), json_options
        ),
    }
    table = Table("reader", "ns a row", title="four columns of six")
    for kind, path in texts.items():
        table.add_row(f"{kind}: pyarrow", f"{least(arrow[kind], TEXT_ROWS):.0f}")
        table.add_row(f"{kind}: ours", f"{least(partial(ours_read, kind, path), TEXT_ROWS):.0f}")
    return table


def ours_read(kind: str, path: Path) -> None:
    interface = parse_interface(f"{kind}:{path}")
    rows = sum(
        batch.num_rows
        for split in interface.splits(1 << 40)
        for batch in interface.connector.read(split, WANTED, ReadReport())
    )
    assert rows == TEXT_ROWS, rows


def main() -> None:
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as folder:
        console.print(writing(Path(folder)))
        console.print(reading(Path(folder)))


if __name__ == "__main__":
    main()
