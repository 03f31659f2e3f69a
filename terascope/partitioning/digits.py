"""Digits and bits of a number, and the operators that keep them digits and bits.

In: a form and a constant. Out: the form of the sum, product, quotient, remainder or mask, or None
when the result is no digit of the base. `normal` makes forms of expressions.

Every step holds for negative numbers (division rounds down, shifts keep the sign, integers are
two's complement of any length), and for NULL: a form is NULL where its base is, and nowhere else.
A step that overflows stops a run, so that there is no answer to be wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from terascope.functions.scalars.addresses import BITS
from terascope.plan.expr import Cast, Col, Expr
from terascope.types import INT_MAX, INT_MIN, UINT_MAX, Type, value_range

V4, V6 = BITS[4], BITS[6]


@dataclass(frozen=True)
class Digits:
    """((base + offset) div step) mod count, of integers; without `count` there is no mod."""

    base: Expr
    step: int = 1
    count: int | None = None
    offset: int = 0

    @property
    def period(self) -> int:
        """The number after which values repeat; 0 when they do not."""
        return self.step * (self.count or 0)


@dataclass(frozen=True)
class BitSubset:
    """base & mask, where the bits of the mask are no single run."""

    base: Expr
    mask: int


@dataclass(frozen=True)
class AddressPrefix:
    """The first bits of an address, as many as there are for its version."""

    base: Expr
    v4: int = V4
    v6: int = V6


@dataclass(frozen=True)
class Opaque:
    """An expression of which nothing is known but that equal ones have equal values."""

    base: Expr


Core: TypeAlias = Digits | BitSubset | AddressPrefix | Opaque


@dataclass(frozen=True)
class NormalForm:
    """core * scale + shift, perhaps as the IPv4 address of that number."""

    core: Core
    scale: int = 1
    shift: int = 0
    is_address: bool = False

    @property
    def is_plain(self) -> bool:
        return self.scale == 1 and self.shift == 0 and not self.is_address


Bounded: TypeAlias = Collection[str] | None
"""The columns whose values are within the range of their type; None: all are, because they are
columns of a source."""


def number_of(address: Expr) -> Expr:
    """The number of an IPv4 address; NULL for IPv6."""
    return Cast(address, Type.ULLONG)


def extent_of(form: NormalForm, bounded: Bounded) -> tuple[int, int]:
    """The smallest and the largest number that the form may be."""
    low, high = core_extent(form.core, bounded)
    ends = low * form.scale + form.shift, high * form.scale + form.shift
    return min(ends), max(ends)


def core_extent(core: Core, bounded: Bounded) -> tuple[int, int]:
    low, high = base_extent(core.base, bounded)
    match core:
        case Digits(_, step, None, offset):
            return (low + offset) // step, (high + offset) // step
        case Digits(count=int(count)):
            return 0, count - 1
        case BitSubset(mask=mask) if mask >= 0:
            return 0, mask
        case _:
            return low, high


def base_extent(base: Expr, bounded: Bounded) -> tuple[int, int]:
    match base:
        case Col(name, type) if type.is_whole and (bounded is None or name in bounded):
            return value_range(type)
        case Col(type=Type.WIDE):
            return value_range(Type.WIDE)
        case Cast(operand) if operand.type.is_address:
            return 0, UINT_MAX
        case _:
            return INT_MIN, INT_MAX


# ---- steps over forms ----------------------------------------------------------------------------


def digits(core: Digits, bounded: Bounded) -> Digits:
    """The same digit with the smallest offset, and without a mod that changes nothing."""
    low, high = base_extent(core.base, bounded)
    if core.count is not None:
        core = replace(core, offset=core.offset % core.period)
        if low + core.offset >= 0 and high + core.offset < core.period:
            core = replace(core, count=None)
    return core


def settled(form: NormalForm, bounded: Bounded) -> NormalForm:
    """The form with an offset below the step where a shift can take the rest."""
    match form.core:
        case Digits() as core:
            core = digits(core, bounded)
            if core.count is None:
                whole, rest = divmod(core.offset, core.step)
                core = replace(core, offset=rest)
                form = replace(form, shift=form.shift + form.scale * whole)
            return replace(form, core=core)
        case _:
            return form


def added(form: NormalForm, number: int) -> NormalForm:
    return replace(form, shift=form.shift + number)


def multiplied(form: NormalForm, factor: int) -> NormalForm | None:
    if factor == 0:
        return None
    return replace(form, scale=form.scale * factor, shift=form.shift * factor)


def divided(form: NormalForm, divisor: int, bounded: Bounded) -> NormalForm | None:
    """floor(form / divisor), or None when it is no digit of the base."""
    core, scale, shift = form.core, form.scale, form.shift
    if divisor < 0 and (negative := multiplied(form, -1)):
        return divided(negative, -divisor, bounded)
    if divisor <= 0 or not isinstance(core, Digits):
        return None
    if scale % divisor == 0:
        return NormalForm(core, scale // divisor, shift // divisor)
    if divisor % abs(scale):
        return None
    if scale < 0:  # floor(-y / n) = -floor((y + n - 1) / n)
        turned = NormalForm(core, -scale, divisor - 1 - shift)
        found = divided(turned, divisor, bounded)
        return found and multiplied(found, -1)
    # floor((k z + d) / (k n)) = floor((z + floor(d / k)) / n)
    divisor, shift = divisor // scale, shift // scale
    offset = core.offset + core.step * shift
    if core.count is None:
        made = Digits(core.base, core.step * divisor, None, offset)
    elif shift == 0 and core.count % divisor == 0:
        made = replace(core, step=core.step * divisor, count=core.count // divisor)
    else:
        return None
    return settled(NormalForm(made), bounded)


def remainder(form: NormalForm, divisor: int, bounded: Bounded) -> NormalForm | None:
    """Form mod divisor, or None when it is no digit of the base."""
    core, scale, shift = form.core, form.scale, form.shift
    if divisor <= 0 or not isinstance(core, Digits):
        return None
    low, high = extent_of(form, bounded)
    if low >= 0 and high < divisor:
        return form
    if scale < 0 or divisor % scale or not (scale == 1 or 0 <= shift < scale):
        return None
    count, kept = divisor // scale, shift if scale > 1 else 0
    if core.count is not None and core.count % count:
        return None
    if count == 1:
        return None  # the same for all but NULL
    moved = core.offset + core.step * (shift - kept)
    made = Digits(core.base, core.step, count, moved)
    return settled(NormalForm(made, scale, kept), bounded)


def runs(mask: int) -> Iterator[tuple[int, int | None]]:
    """The runs of bits of a mask, the lowest first, as (first bit, length); the last one of a
    negative mask has no end.
    """
    at = 0
    while mask not in (0, -1):
        skipped = (mask & -mask).bit_length() - 1
        mask, at = mask >> skipped, at + skipped
        if mask == -1:
            break
        length = (~mask & -~mask).bit_length() - 1
        yield at, length
        mask, at = mask >> length, at + length
    if mask == -1:
        yield at, None


def run_form(
    form: NormalForm, first: int, length: int | None, bounded: Bounded
) -> NormalForm | None:
    """The bits of one run of a mask, where they are in the number."""
    made = divided(form, 1 << first, bounded)
    if made is not None and length is not None:
        made = remainder(made, 1 << length, bounded)
    return made and multiplied(made, 1 << first)


def bits_of(form: NormalForm, bounded: Bounded) -> tuple[Expr, int] | None:
    """The base and the mask of a form that is some bits of its base."""
    if form.shift or form.is_address:
        return None
    match form.core:
        case BitSubset(base, mask) if form.scale == 1:
            return base, mask
        case Digits(base, step, count, 0) if form.scale == step and not step & (step - 1):
            if count is None:
                return base, -step
            return None if count & (count - 1) else (base, (count - 1) * step)
        case _:
            return None


def masked(form: NormalForm, mask: int, bounded: Bounded) -> NormalForm | None:
    """Form & mask, or None when it is not known which bits of the base these are."""
    known = bits_of(form, bounded)
    if known is None:
        found = list(runs(mask))
        return run_form(form, *found[0], bounded) if len(found) == 1 else None
    base, mask = known[0], known[1] & mask
    low, high = base_extent(base, bounded)
    if low >= 0:
        mask &= (1 << high.bit_length()) - 1
    found = list(runs(mask))
    if len(found) == 1:
        return run_form(NormalForm(Digits(base)), *found[0], bounded)
    return NormalForm(BitSubset(base, mask)) if mask else None
