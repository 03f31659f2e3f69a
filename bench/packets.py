"""The packets of a capture as Parquet, for engines that cannot read captures.

In: a pcap file of IPv4 packets. Out: the same packets, decoded by our own decoder, in the form that
suits the others best: the narrowest integers, addresses as 32-bit numbers, flags as booleans, the
payload of TCP and UDP as text (Latin-1, as GSQL reads bytes), in row groups of 128 Ki rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.experiment import BenchError
from terascope.connectors.base import Column, ReadReport
from terascope.connectors.packets.fields import ALL_FIELDS
from terascope.connectors.registry import Interface, read_split

ROW_GROUP = 128 << 10
READ_BYTES = 64 << 20
NUMBERS: dict[str, tuple[str, pa.DataType]] = {
    "time": ("time", pa.uint32()),
    "ts": ("timestamp", pa.int64()),
    "protocol": ("protocol", pa.uint8()),
    "len": ("len", pa.uint16()),
    "tos": ("tos", pa.uint8()),
    "ttl": ("ttl", pa.uint8()),
    "srcPort": ("srcPort", pa.uint16()),
    "destPort": ("destPort", pa.uint16()),
    "flags": ("flags", pa.uint8()),
    "room": ("window", pa.uint16()),
    "icmp_type": ("icmp_type", pa.uint8()),
}
"""Column of the table -> packet field and type. Names that are words of SQL are avoided."""
ADDRESSES = ("srcIP", "destIP")
BOOLEANS = ("FIN", "SYN", "RST", "PSH", "ACK")
PAYLOADS = ("TCP_data", "UDP_data")
SCHEMA = pa.schema(
    [(name, type) for name, (_, type) in NUMBERS.items()]
    + [(name, pa.uint32()) for name in ADDRESSES]
    + [(name, pa.bool_()) for name in BOOLEANS]
    + [("payload", pa.string())]
)


def packets_to_parquet(capture: Path, output: Path) -> int:
    """How many packets there were.

    Raises:
        BenchError: a packet is not IPv4.
    """
    fields = {field.name: field for field in ALL_FIELDS}
    wanted = [field for field, _ in NUMBERS.values()] + [*ADDRESSES, *BOOLEANS, *PAYLOADS]
    columns = [Column(name, fields[name].type) for name in wanted]
    report = ReadReport()
    with pq.ParquetWriter(output, SCHEMA, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        for split in Interface("packets", "pcap", str(capture)).splits(READ_BYTES):
            for batch in read_split(split, columns, report):
                waiting.append(converted(batch))
                if sum(each.num_rows for each in waiting) >= ROW_GROUP:
                    waiting = written(writer, waiting, ROW_GROUP)
        written(writer, waiting, 1)
    return report.tuples


def written(
    writer: pq.ParquetWriter, waiting: list[pa.RecordBatch], least: int
) -> list[pa.RecordBatch]:
    """Write whole row groups, or what there is when `least` is 1; what is left."""
    table = pa.Table.from_batches(waiting, SCHEMA)
    while table.num_rows >= least:
        writer.write_table(table.slice(0, ROW_GROUP), row_group_size=ROW_GROUP)
        table = table.slice(ROW_GROUP)
    return list(table.combine_chunks().to_batches())


def converted(batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = [batch.column(field).cast(type) for field, type in NUMBERS.values()]
    addresses = [address_numbers(batch.column(name)) for name in ADDRESSES]
    booleans = [batch.column(name) for name in BOOLEANS]
    payload = pc.coalesce(*(batch.column(name) for name in PAYLOADS))
    return pa.record_batch([*numbers, *addresses, *booleans, latin_text(payload)], schema=SCHEMA)


def address_numbers(column: pa.Array) -> pa.Array:
    """The version byte and four bytes of each address, as a number."""
    lengths = pc.binary_length(column)
    if column.null_count or pc.min_max(lengths).as_py() not in (
        {"min": 5, "max": 5},
        {"min": None, "max": None},
    ):
        raise BenchError("the capture has packets that are not IPv4; make one without IPv6")
    held = column.cast(pa.binary(5)).buffers()[1]
    start = column.offset * 5
    raw = np.frombuffer(held, dtype=np.uint8)[start : start + 5 * len(column)].reshape(-1, 5)
    return pa.array(np.ascontiguousarray(raw[:, 1:]).view(">u4").ravel().astype(np.uint32))


def latin_text(column: pa.Array) -> pa.Array:
    """Bytes as text: a byte from 128 on becomes two of UTF-8."""
    column = pa.concat_arrays([column])  # without offset
    missing, offsets, held = column.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[: len(column) + 1]
    raw = np.frombuffer(held or b"", dtype=np.uint8)[places[0] : places[-1]]
    high = raw >= 0x80
    widths = 1 + high.astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(widths)])
    text = np.repeat(raw, widths)
    at = ends[:-1][high]
    text[at] = 0xC0 | raw[high] >> 6
    text[at + 1] = 0x80 | raw[high] & 0x3F
    moved = ends[places - places[0]].astype(np.int32)
    return pa.StringArray.from_buffers(
        len(column), pa.py_buffer(moved), pa.py_buffer(text), missing, column.null_count
    )
