"""Functions on IP addresses, of both versions, and address prefixes: cutting an address to one,
reading one.
"""

from __future__ import annotations

import ipaddress
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Final

from terascope.functions.base import Value, ValueMistake
from terascope.functions.roles import SubnetTest
from terascope.functions.signatures import ADDRESS, INTEGER, TEXT, builtin, parses
from terascope.functions.spark_form import SparkArguments, SparkColumn
from terascope.functions.values import Text, as_text
from terascope.types import Type

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


PRIVATE: Final = tuple(
    map(parse_subnet, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)


def _check_lengths(constants: Sequence[Value]) -> None:
    for length, bits in zip(constants[1:], BITS.values(), strict=False):
        if length is not None and not 0 <= length <= bits:
            raise ValueMistake(f"prefix length {length} does not lie between 0 and {bits}")


# ---- in Spark ------------------------------------------------------------------------------------
# Binary values compare byte by byte: a subnet is a range, a prefix of whole bytes a substring.


def _spark_is_v4(call: SparkArguments) -> SparkColumn:
    return call.F.length(call.columns[0]) == call.F.lit(5)


def _spark_prefix(call: SparkArguments) -> SparkColumn | None:
    address, *lengths = call.operands
    if not all(length.constant for length in lengths):
        return None
    if any(length.value is None for length in lengths):
        return call.null(Type.IP)
    cut_v4 = _spark_cut(call, 4, lengths[0].value)
    cut_v6 = _spark_cut(call, 6, lengths[1].value) if len(lengths) > 1 else call.null(Type.IP)
    return call.F.when(_spark_is_v4(call), cut_v4).when(address.column.isNotNull(), cut_v6)


def _spark_cut(call: SparkArguments, version: int, length: int) -> SparkColumn:
    """The address with all bits behind the first `length` cleared."""
    if not 0 <= length <= BITS[version]:
        return call.null(Type.IP)
    F, address = call.F, call.columns[0]
    whole, rest = divmod(length, 8)
    parts = [F.substring(address, 1, 1 + whole)]
    if rest:
        byte = F.conv(F.hex(F.substring(address, 2 + whole, 1)), 16, 10).cast("bigint")
        kept = byte.bitwiseAND(call.number(0xFF00 >> rest & 0xFF))
        parts.append(F.unhex(F.lpad(F.hex(kept), 2, "0")))
        whole += 1
    return F.concat(*parts, F.lit(bytearray(BITS[version] // 8 - whole)))


def _spark_inside(call: SparkArguments, subnet: Subnet) -> SparkColumn:
    behind = BITS[subnet.first[0]] - subnet.length
    last = int.from_bytes(subnet.first, "big") | (1 << behind) - 1
    high = last.to_bytes(len(subnet.first), "big")
    first = call.F.lit(bytearray(subnet.first))
    return call.columns[0].between(first, call.F.lit(bytearray(high)))


def _spark_in_subnet(call: SparkArguments) -> SparkColumn | None:
    subnet = call.operands[1]
    if not subnet.constant:
        return None
    if subnet.value is None:
        return call.null(Type.BOOL)
    return _spark_inside(call, parse_subnet(as_text(subnet.value)))


def _spark_version(call: SparkArguments) -> SparkColumn:
    known = call.columns[0].isNotNull()
    return call.F.when(_spark_is_v4(call), call.number(4)).when(known, call.number(6))


# ---- the functions -------------------------------------------------------------------------------


@builtin(
    ADDRESS, INTEGER, INTEGER, returns=Type.IP, optional=1, cost_ns=10,
    check_constants=_check_lengths, spark=_spark_prefix,
)  # fmt: skip
def prefix(address: bytes, length4: int, length6: int | None = None) -> bytes | None:
    """prefix(ip, n4[, n6]): the first n4 bits of an IPv4, n6 of an IPv6 address, rest 0; NULL for
    IPv6 without n6.
    """
    length = length4 if address[0] == 4 else length6
    if length is None or not 0 <= length <= BITS[address[0]]:
        return None
    return cut(address, length)


@builtin(
    ADDRESS, TEXT, returns=Type.BOOL, cost_ns=10, check_constants=parses(parse_subnet),
    role=SubnetTest(), spark=_spark_in_subnet,
)  # fmt: skip
def in_subnet(address: bytes, subnet: Text) -> bool:
    """in_subnet(ip, '10.0.0.0/8'): whether the address lies in the subnet."""
    return address in parse_subnet(as_text(subnet))


@builtin(ADDRESS, returns=Type.UINT, cost_ns=3, spark=_spark_version)
def ip_version(address: bytes) -> int:
    """4 or 6."""
    return address[0]


@builtin(
    ADDRESS, returns=Type.BOOL, cost_ns=20,
    spark=lambda call: reduce(operator.or_, (_spark_inside(call, one) for one in PRIVATE)),
)  # fmt: skip
def is_private(address: bytes) -> bool:
    """Whether the address lies in 10/8, 172.16/12, 192.168/16 or fc00::/7."""
    return any(address in subnet for subnet in PRIVATE)
