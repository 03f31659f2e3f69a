"""Address prefixes: cutting an address to one, reading one, finding the longest one that matches.

In: addresses in held form. Out: masked addresses, and `PrefixTable` for longest-prefix match.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from terascope.functions.base import ValueMistake

BITS: Final = {4: 32, 6: 128}


def cut(address: bytes, length: int) -> bytes:
    """The address with all bits behind the first `length` cleared."""
    version = address[0]
    behind = BITS[version] - length
    bits = int.from_bytes(address[1:], "big") >> behind << behind
    return address[:1] + bits.to_bytes(BITS[version] // 8, "big")


@dataclass(frozen=True)
class Subnet:
    """A prefix such as 10.0.0.0/8: its first address, and how many bits it fixes."""

    first: bytes
    length: int

    def __contains__(self, address: bytes) -> bool:
        return address[0] == self.first[0] and cut(address, self.length) == self.first


@lru_cache(maxsize=4096)
def parse_subnet(text: str) -> Subnet:
    """`10.0.0.0/8`, `2001:db8::/32` or a single address; bits behind the prefix are ignored."""
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueMistake(f"'{text}' is not a subnet; write one as '10.0.0.0/8'") from None
    return Subnet(bytes([network.version]) + network.network_address.packed, network.prefixlen)


@dataclass(frozen=True)
class PrefixTable:
    """Ids by prefix, grouped by version and length, longest first."""

    groups: tuple[tuple[int, int, Mapping[bytes, int]], ...]

    @classmethod
    def of(cls, ids: Mapping[Subnet, int]) -> PrefixTable:
        groups: dict[tuple[int, int], dict[bytes, int]] = {}
        for subnet, number in ids.items():
            groups.setdefault((subnet.first[0], subnet.length), {})[subnet.first] = number
        ordered = sorted(groups.items(), reverse=True)
        return cls(tuple((version, length, ids) for (version, length), ids in ordered))

    def find(self, address: bytes) -> int | None:
        """The id of the longest prefix that holds the address."""
        for version, length, ids in self.groups:
            if version == address[0]:
                found = ids.get(cut(address, length))
                if found is not None:
                    return found
        return None
