"""Functions on IP addresses, of both versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from terascope.functions.base import Scalar, Value, ValueMistake
from terascope.functions.signatures import ADDRESS, INTEGER, TEXT, signature
from terascope.functions.subnets import BITS, cut, parse_subnet
from terascope.functions.values import Text, as_text
from terascope.types import Type

PRIVATE: Final = tuple(
    map(parse_subnet, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
)


def _prefix(address: bytes, length4: int, length6: int | None = None) -> bytes | None:
    length = length4 if address[0] == 4 else length6
    if length is None or not 0 <= length <= BITS[address[0]]:
        return None
    return cut(address, length)


def _check_lengths(constants: Sequence[Value]) -> None:
    for length, bits in zip(constants[1:], BITS.values(), strict=False):
        if length is not None and not 0 <= length <= bits:
            raise ValueMistake(f"prefix length {length} does not lie between 0 and {bits}")


def _in_subnet(address: bytes, subnet: Text) -> bool:
    return address in parse_subnet(as_text(subnet))


def _check_subnet(constants: Sequence[Value]) -> None:
    if constants[1] is not None:
        parse_subnet(as_text(constants[1]))


SCALARS: Final = (
    Scalar(
        "prefix",
        signature("prefix", ADDRESS, INTEGER, INTEGER, returns=Type.IP, optional=1),
        _prefix,
        cost_ns=10,
        check_constants=_check_lengths,
        doc="prefix(ip, n4[, n6]): the first n4 bits of an IPv4, n6 of an IPv6 address, rest 0; "
        "NULL for IPv6 without n6",
    ),
    Scalar(
        "in_subnet",
        signature("in_subnet", ADDRESS, TEXT, returns=Type.BOOL),
        _in_subnet,
        cost_ns=10,
        check_constants=_check_subnet,
        doc="in_subnet(ip, '10.0.0.0/8'): whether the address lies in the subnet",
    ),
    Scalar(
        "ip_version",
        signature("ip_version", ADDRESS, returns=Type.UINT),
        lambda address: address[0],
        cost_ns=3,
        doc="4 or 6",
    ),
    Scalar(
        "is_private",
        signature("is_private", ADDRESS, returns=Type.BOOL),
        lambda address: any(address in subnet for subnet in PRIVATE),
        cost_ns=20,
        doc="whether the address lies in 10/8, 172.16/12, 192.168/16 or fc00::/7",
    ),
)

SYNONYMS: Final[dict[str, str]] = {}
