"""The two ways of reading a packet, column by column and by the general code, agree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from terascope.connectors.packets import columns
from terascope.connectors.packets.records import KIND, NETWORK, ODD, STOP, TRANSPORT
from terascope.connectors.packets.regular import classify
from terascope.connectors.packets.words import Bytes, Ints
from tests.connectors.packet_bytes import (
    ALL_NAMES,
    Frame,
    ethernet,
    extension,
    fragment_header,
    icmp,
    ipv4,
    ipv6,
    pcap,
    read_table,
    tcp,
    udp,
)

T = TypeVar("T")


def mostly(chance: random.Random, usual: T, *others: T) -> T:
    return usual if chance.random() < 0.93 else chance.choice(others)


def transport(chance: random.Random) -> tuple[int, bytes]:
    payload = chance.randbytes(chance.choice([0, 0, 3, 10, 200]))
    port = chance.randrange(65536)
    match chance.randrange(9):
        case 0 | 1 | 2 | 3:
            words = mostly(chance, None, 0, 4, 5, 9, 15)
            options = b"\1" * chance.choice([0, 0, 4, 40])
            return 6, tcp(port, 80, chance.randrange(256), payload, options, words)
        case 4 | 5 | 6 | 7:
            return 17, udp(port, 53, payload, mostly(chance, None, 0, 3, 8, 100, 60000))
        case _:
            return chance.choice([1, 58, 132]), chance.choice([icmp(), payload])


def network(chance: random.Random) -> bytes:
    protocol, inside = transport(chance)
    protocol = mostly(chance, protocol, 6, 17, 1, 132, 47, 44, 0)
    if chance.random() < 0.6:
        datagram = ipv4(
            inside,
            protocol,
            options=b"\1" * chance.choice([0, 0, 0, 4, 20]),
            fragment=mostly(chance, chance.choice([0, 0x4000]), 0x2000, 5, 0x2005, 0x8000),
            total=mostly(chance, None, 0, 10, 20, 27, 28, 40, 5000),
            version=mostly(chance, 4, 6),
            words=mostly(chance, None, 2, 6, 15),
        )
        return ethernet(datagram, mostly(chance, 0x0800, 0x86DD, 0x8100, 0x0806))
    following = mostly(chance, protocol, 44, 0, 60, 51, 59)
    if following == 44:
        inside = fragment_header(protocol, chance.choice([0, 0, 7]), chance.random() < 0.5) + inside
    elif following in (0, 60):
        inside = extension(protocol, chance.choice([8, 16])) + inside
    length = mostly(chance, None, 0, 4, 30, 9000)
    return ethernet(ipv6(inside, following, length=length), 0x86DD)


def frames(chance: random.Random, count: int) -> list[Frame]:
    made = []
    for k in range(count):
        data = network(chance)
        if chance.random() < 0.1:
            data = data[: chance.randrange(len(data) + 1)]
        if chance.random() < 0.1:
            data += chance.randbytes(chance.randrange(10))
        wire = mostly(chance, chance.choice([None, len(data) + 700]), max(0, len(data) - 5))
        made.append(Frame(data, 1_600_000_000 + k, k, wire))
    return made


def all_odd(_: Any, numbers: Ints, marks: Bytes, __: Any, count: int, ___: int) -> int:
    """As if no packet were regular."""
    marks[KIND, :count] = 0
    numbers[TRANSPORT, :count] = numbers[STOP, :count] = numbers[NETWORK, :count]
    numbers[ODD, :count] = np.arange(count)
    return count


@pytest.mark.parametrize("link", [1, 101])
def test_both_ways_of_reading_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: int
) -> None:
    made = frames(random.Random(link), 6000)
    if link != 1:
        made = [Frame(f.data[14:], f.second, f.part, f.wirelen) for f in made]
    path = tmp_path / "trace"
    path.write_bytes(pcap(made, link=link))
    odd = []

    def counted(*given: Any) -> int:
        odd.append(classify(*given))
        return odd[-1]

    monkeypatch.setattr(columns, "classify", counted)
    table, report = read_table(path)
    assert 0.2 < sum(odd) / len(made) < 0.8
    monkeypatch.setattr(columns, "classify", all_odd)
    general, told = read_table(path)
    for name in ALL_NAMES:
        assert table.column(name).equals(general.column(name)), name
    assert report == told
    assert len(report.malformed) > 10
