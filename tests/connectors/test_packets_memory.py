from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from terascope.connectors.base import ReadReport
from terascope.connectors.packets.connector import PacketConnector
from terascope.connectors.packets.memory import Recycler
from tests.connectors.packet_bytes import WHOLE, columns_named, ethernet, ipv4, pcap, tcp
from tests.connectors.table_reading import splits_of


def address(array: np.typing.NDArray[np.int64]) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_is_used_again_when_nobody_holds_it() -> None:
    recycler = Recycler()
    first = recycler.array((3, 5), np.int64)
    assert first.shape == (3, 5)
    place = address(first)
    first[:] = 7
    other = recycler.array((3, 5), np.int64)
    assert address(other) != place
    del first
    assert recycler.bytes_kept == 120
    assert address(recycler.array((15,), np.int64)) == place
    assert recycler.array((0, 5), np.int64).shape == (0, 5)


def test_memory_is_kept_as_long_as_a_view_or_an_arrow_buffer_holds_it() -> None:
    recycler = Recycler()
    table = recycler.array((2, 1000), np.int64)
    place = address(table)
    table[1] = 42
    column = pa.Array.from_buffers(pa.int64(), 900, [None, pa.py_buffer(table[1, :900])])
    piece = column.slice(10, 5)
    del table, column
    assert recycler.bytes_kept == 0
    again = recycler.array((2, 1000), np.int64)
    again[:] = 0
    assert address(again) != place
    assert piece.to_pylist() == [42] * 5
    del piece
    assert recycler.bytes_kept == 16_000


def test_no_more_waits_than_told() -> None:
    recycler = Recycler(most=1000)
    held = [recycler.array((50,), np.int64) for _ in range(5)]
    held.clear()
    assert recycler.bytes_kept == 800


def test_batches_that_are_kept_do_not_change(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(pcap(ethernet(ipv4(tcp(k % 65536))) for k in range(200_000)))
    connector = PacketConnector()
    [split] = splits_of(connector, "e", [path], {}, WHOLE)
    columns = columns_named(["srcPort", "srcIP", "#pos", "SYN"])
    kept = list(connector.read(split, columns, ReadReport()))
    passing = [b.to_pydict() for b in connector.read(split, columns, ReadReport())]
    assert len(kept) == 4
    assert [batch.to_pydict() for batch in kept] == passing
    assert kept[0].column(0).to_pylist() == list(range(65536))
