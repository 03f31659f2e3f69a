"""The configuration of a splitter for a recommended partitioning set.

In: a partitioning set. Out: the command of the software splitter, and, where the set is made of
attributes and of masks, the fields and masks that hardware is set up with: a switch or a network
card hashes these bits and takes the range of the hash as the port.
"""

from __future__ import annotations

from dataclasses import dataclass

from terascope.partitioning.capability import as_mask, is_attribute
from terascope.partitioning.digits import (
    V4,
    V6,
    AddressPrefix,
    Digits,
    NormalForm,
    base_extent,
    bits_of,
)
from terascope.partitioning.layout import ROUND_ROBIN
from terascope.partitioning.normal import normal_form
from terascope.partitioning.sets import PartitionSet
from terascope.plan.expr import Col, Expr, columns_of
from terascope.types import Type


@dataclass(frozen=True)
class MaskedField:
    """The bits of one field that are hashed."""

    field: str
    mask: str
    """As a switch operator writes it; empty: all bits."""

    def __str__(self) -> str:
        return f"{self.field} mask {self.mask}" if self.mask else f"{self.field} all bits"


def masked_fields(by: PartitionSet) -> tuple[MaskedField, ...] | None:
    """The fields and masks of a set; None: it has expressions that only software computes."""
    found = [masked_field(expr) for expr in by.expressions]
    known = tuple(one for one in found if one is not None)
    return known if known and len(known) == len(found) else None


def masked_field(expr: Expr) -> MaskedField | None:
    adapted = as_mask(expr)
    if adapted is None:
        return None
    expr = adapted[0]
    if isinstance(expr, Col):
        return MaskedField(expr.name, "")
    (name,) = columns_of(expr)
    core = normal_form(expr).core
    if isinstance(core, AddressPrefix):
        return MaskedField(name, prefix_text(core))
    step = core.step if isinstance(core, Digits) else 1
    bits = bits_of(NormalForm(core, step), None)
    if bits is None or not is_attribute(core.base):
        return None
    mask = bits[1] & ((1 << base_extent(core.base, None)[1].bit_length()) - 1)
    is_address = not isinstance(core.base, Col) or core.base.type is Type.IP
    return MaskedField(name, dotted(mask) if is_address else f"0x{mask:X}")


def prefix_text(core: AddressPrefix) -> str:
    if (core.v4, core.v6) == (V4, V6):
        return ""
    return f"/{core.v4} (IPv6: /{core.v6})"


def dotted(mask: int) -> str:
    """A mask of an IPv4 address."""
    return ".".join(str(mask >> shift & 0xFF) for shift in (24, 16, 8, 0))


def split_command(source: str, location: str, by: PartitionSet, into: int) -> str:
    """The command that splits a source in software."""
    expressions = f"'{by}'" if by.expressions else ROUND_ROBIN
    return f"terascope split {source}={location} --by {expressions} --into {into} {source}.parts"


def hardware_lines(by: PartitionSet, into: int) -> tuple[str, ...]:
    """What to set up a switch with, a line each."""
    fields = masked_fields(by)
    if fields is None:
        return ("no hardware: the set has expressions that are no masks",) if by.expressions else ()
    shown = "; ".join(map(str, fields))
    return (
        f"hash over: {shown}",
        f"port: the hash times {into}, divided by the number of hashes (ranges of equal size)",
    )
