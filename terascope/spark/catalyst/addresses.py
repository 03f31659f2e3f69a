"""Functions on IP addresses as Spark Columns.

An address is binary: the version, then 4 or 16 bytes. Binary values compare byte by byte, so a
subnet is a range and a prefix of whole bytes a substring.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions.scalars.addresses import PRIVATE
from terascope.functions.subnets import BITS, Subnet, parse_subnet
from terascope.spark.catalyst.operands import Builder, null, number
from terascope.spark.catalyst.operators import Operands, is_ipv4
from terascope.types import Type


def prefix(operands: Operands, _: Type) -> Column | None:
    if not all(o.constant for o in operands[1:]):
        return None
    if any(o.value is None for o in operands[1:]):
        return null(Type.IP)
    address = operands[0].column
    lengths = [o.value for o in operands[1:]]
    cut_v4 = cut(address, 4, lengths[0])
    cut_v6 = cut(address, 6, lengths[1]) if len(lengths) > 1 else null(Type.IP)
    return F.when(is_ipv4(address), cut_v4).when(address.isNotNull(), cut_v6)


def cut(address: Column, version: int, length: int) -> Column:
    """The address with all bits behind the first `length` cleared."""
    if not 0 <= length <= BITS[version]:
        return null(Type.IP)
    whole, rest = divmod(length, 8)
    parts = [F.substring(address, 1, 1 + whole)]
    if rest:
        byte = F.conv(F.hex(F.substring(address, 2 + whole, 1)), 16, 10).cast("bigint")
        kept = byte.bitwiseAND(number(0xFF00 >> rest & 0xFF))
        parts.append(F.unhex(F.lpad(F.hex(kept), 2, "0")))
        whole += 1
    return F.concat(*parts, F.lit(bytearray(BITS[version] // 8 - whole)))


def inside(address: Column, subnet: Subnet) -> Column:
    behind = BITS[subnet.first[0]] - subnet.length
    last = int.from_bytes(subnet.first, "big") | (1 << behind) - 1
    high = last.to_bytes(len(subnet.first), "big")
    return address.between(F.lit(bytearray(subnet.first)), F.lit(bytearray(high)))


def in_subnet(operands: Operands, _: Type) -> Column | None:
    subnet = operands[1]
    if not subnet.constant:
        return None
    if subnet.value is None:
        return null(Type.BOOL)
    text = subnet.value if isinstance(subnet.value, str) else subnet.value.decode("latin-1")
    return inside(operands[0].column, parse_subnet(text))


def is_private(operands: Operands, _: Type) -> Column:
    return reduce(or_, (inside(operands[0].column, subnet) for subnet in PRIVATE))


def ip_version(operands: Operands, _: Type) -> Column:
    address = operands[0].column
    return F.when(is_ipv4(address), number(4)).when(address.isNotNull(), number(6))


ADDRESS_SCALARS: Mapping[str, Builder] = {
    "prefix": prefix,
    "in_subnet": in_subnet,
    "ip_version": ip_version,
    "is_private": is_private,
}
