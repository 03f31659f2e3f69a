"""Addresses: 32-bit numbers inside the generator, IPv4 or IPv6 outside.

In: numbers and IP versions. Out: address bytes for frames, text for tables. An IPv6 address is made
from the number (2001:db8: with the number as its network and a hash of it as interface); numbers
from CUSTOM on stand for addresses given by the user.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import numpy as np

from terascope.hashing import mix
from terascope.machine_code import inlined
from terascope.traffic.randomness import Array, hash_numbers

CUSTOM: Final = 0xFFFFFF00
"""No host or spoofed source has a number this high."""


def number_of(text: str, custom: Array, slot: int) -> tuple[int, int]:
    """(number, version) of an address in text; IPv6 goes to row `slot` of `custom`."""
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return int(address), 4
    custom[slot] = np.frombuffer(address.packed, dtype=np.uint8)
    return CUSTOM + slot, 6


@inlined
def put_ipv6(out: Array, at: int, number: Any, custom: Array) -> None:
    """Write the 16 bytes of an IPv6 address."""
    if number >= CUSTOM:
        for index in range(16):
            out[at + index] = custom[number - CUSTOM, index]
        return
    out[at], out[at + 1], out[at + 2], out[at + 3] = 0x20, 0x01, 0x0D, 0xB8
    interface = mix(np.uint64(number))
    for index in range(4):
        out[at + 4 + index] = (number >> (24 - 8 * index)) & 0xFF
    for index in range(8):
        out[at + 8 + index] = (interface >> np.uint64(56 - 8 * index)) & np.uint64(0xFF)


def texts(numbers: Array, versions: Array, custom: Array) -> list[str]:
    """Each address as people write it."""
    buffer = np.zeros(16, dtype=np.uint8)
    written = []
    for number, version in zip(numbers.tolist(), versions.tolist(), strict=True):
        if version == 4:
            written.append(
                f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            )
        else:
            put_ipv6(buffer, 0, number, custom)
            written.append(str(ipaddress.IPv6Address(buffer.tobytes())))
    return written


def outside_addresses(numbers: Array, seed: int) -> Array:
    """Scattered addresses of the wide world, none of them a host or server of the population."""
    bits = hash_numbers(numbers, seed)
    first = (bits >> np.uint64(32)) % np.uint64(187) + np.uint64(11)  # 11 .. 197
    first = np.where(first == 127, np.uint64(12), first)
    return ((first << np.uint64(24)) | (bits & np.uint64(0xFFFFFF))).astype(np.uint32)
