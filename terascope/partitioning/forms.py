"""Which expression fixes the value of which other one, and what two expressions have in common.

In: expressions over the columns of a source. Out: `rewritten`: a target computed from given
expressions; `determines`: whether the value of one fixes that of another; `common`: the finest
expression that two others determine, the least common denominator of P2 4.1.

    determines(time/60, time/180)            time/180 = (time/60) / 3
    common(time/60, time/90) = time/180      the edges that both have
    common(x & 0xFF0, x & 0x0FF) = x & 0xF0
    common(x % 6, x % 4) = x % 2

The rules for digits. ((x + c) div a) mod b determines ((x + c') div a') mod b' iff a divides a',
c = c' modulo a, and a' b' divides a b (without mod, a b is 0). The finest digit that two determine
has the least common multiple of the steps and the greatest common divisor of the periods, if the
one divides the other: its classes are intervals whose edges both have, repeated with both periods.
What is not proven here is answered with no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import gcd, lcm
from typing import Final, TypeAlias

from terascope.functions.scalars.addresses import prefix as prefix_function
from terascope.partitioning.digits import (
    AddressPrefix,
    BitSubset,
    Bounded,
    Core,
    Digits,
    NormalForm,
    base_extent,
    bits_of,
    masked,
    run_form,
    runs,
    settled,
)
from terascope.partitioning.normal import (
    applied_form,
    calculated,
    computable_number,
    expression_key,
    fixed_value,
    form_expr,
    integer,
    is_users,
    key_of,
    normal_form,
    number_form,
)
from terascope.plan.build import call
from terascope.plan.expr import Call, Cast, Expr, Lit, children, rebuild
from terascope.types import Type

MOST_WAYS: Final = 8
"""Ways to compute an expression that are followed; more hardly ever help."""

Given: TypeAlias = Sequence[tuple[Expr, Expr]]
"""Pairs (new, old): the new expression has the value of the old one."""


def determines(finer: Expr, coarser: Expr) -> bool:
    """Whether tuples with the same value of the one have the same value of the other."""
    return all_determine((finer,), coarser)


def all_determine(finer: Iterable[Expr], coarser: Expr) -> bool:
    """Whether tuples with the same values of the first have the same value of the second."""
    return next(rewritten(coarser, [(one, one) for one in finer]), None) is not None


# ---- an expression from others -------------------------------------------------------------------


def rewritten(target: Expr, given: Given, bounded: Bounded = None) -> Iterator[Expr]:
    """The target in terms of the new expressions of pairs, in some of the ways there are."""
    known = [(new, normal_form(old, bounded)) for new, old in given if old.type is not Type.FLOAT]
    seen = set()
    for way in islice(ways(target, known, bounded), MOST_WAYS):
        if (key := expression_key(way)) not in seen:
            seen.add(key)
            yield way


def ways(
    target: Expr, known: Sequence[tuple[Expr, NormalForm]], bounded: Bounded
) -> Iterator[Expr]:
    if isinstance(target, Lit) or fixed_value(target) is not None:
        yield target
        return
    form = normal_form(target, bounded)
    for new, old in known:
        found = from_form(form, old, new, bounded)
        if found is not None:
            yield found
    parts = children(target)
    if parts and not is_users(target):
        for made in product(*(list(islice(ways(p, known, bounded), MOST_WAYS)) for p in parts)):
            yield rebuild(target, made)


def from_form(target: NormalForm, given: NormalForm, new: Expr, bounded: Bounded) -> Expr | None:
    """The target computed from a value of the given form; None when that is not known to do."""
    if key_of(target) == key_of(given):
        return new
    if key_of(replace(target, is_address=False)) == key_of(replace(given, is_address=False)):
        return computed(Cast(new, Type.IP if target.is_address else Type.ULLONG))
    if isinstance(target.core, AddressPrefix):
        return cut_prefix(target.core, given, new)
    if isinstance(given.core, AddressPrefix):
        given, new = cut_number(given), Cast(new, Type.ULLONG)
    elif given.is_address:
        given, new = replace(given, is_address=False), Cast(new, Type.ULLONG)
    core = calculated("div", calculated("+", computable_number(new), -given.shift), given.scale)
    found = from_core(target.core, given, core, bounded)
    if found is None:
        return None
    made = applied_form(target, found)
    return Cast(made, Type.IP) if target.is_address else made


def computed(cast: Cast) -> Expr:
    """A cast between an address and its number."""
    return cast


def cut_number(form: NormalForm) -> NormalForm:
    """The number of an address of which the first bits are known."""
    found = number_form(form, None)
    return form if found is None else found


def cut_prefix(target: AddressPrefix, given: NormalForm, new: Expr) -> Expr | None:
    core = given.core
    if not isinstance(core, AddressPrefix) or core.base != target.base:
        return None
    if target.v4 > core.v4 or target.v6 > core.v6:
        return None
    return Call(prefix_function, (new, integer(target.v4), integer(target.v6)), Type.IP)


def from_core(target: Core, given: NormalForm, value: Expr, bounded: Bounded) -> Expr | None:
    """The target computed from the core of the given form, which has this value."""
    core = given.core
    if expression_key(core.base) != expression_key(target.base):
        return None
    match target, core:
        case Digits(), Digits():
            return from_digits(target, core, value)
        case Digits(), BitSubset(base, mask):
            for first, length in runs(mask):
                run = run_form(NormalForm(Digits(base)), first, length, bounded)
                if run is None or not isinstance(run.core, Digits):
                    continue
                bits = call("&", value, integer(run_mask(first, length)))
                made = from_digits(target, run.core, calculated("div", bits, run.scale))
                if made is not None:
                    return made
        case BitSubset(_, mask), BitSubset(_, wider) if not mask & ~wider:
            return call("&", value, integer(mask))
        case BitSubset(_, mask), Digits(_, step):
            known = bits_of(NormalForm(core, step), bounded)
            if known is not None and not mask & ~known[1]:
                return call("&", calculated("*", value, step), integer(mask))
    return None


def run_mask(first: int, length: int | None) -> int:
    return -1 << first if length is None else (1 << length) - 1 << first


def from_digits(target: Digits, given: Digits, value: Expr) -> Expr | None:
    moved = target.offset - given.offset
    if target.step % given.step or moved % given.step or not repeats(target, given):
        return None
    made = calculated("+", value, moved // given.step)
    made = calculated("div", made, target.step // given.step)
    return made if target.count is None else calculated("%", made, target.count)


def repeats(target: Digits, given: Digits) -> bool:
    """Whether the target repeats wherever the given digit does."""
    if target.count is None or given.count is None:
        return given.count is None
    return given.period % target.period == 0


# ---- what two have in common ---------------------------------------------------------------------


def common(first: Expr, second: Expr) -> Expr | None:
    """The finest expression that both determine; None when they have nothing in common."""
    if determines(first, second):
        return second
    if determines(second, first):
        return first
    one, other = normal_form(first), normal_form(second)
    if isinstance(one.core, AddressPrefix) and isinstance(other.core, AddressPrefix):
        return common_prefix(one.core, other.core)
    one, other = cut_number(one), cut_number(other)
    if expression_key(one.core.base) != expression_key(other.core.base):
        return None
    found = common_core(one.core, other.core)
    if found is None:
        return None
    is_address = one.is_address or other.is_address
    return form_expr(shown(found, first.type.is_address or second.type.is_address or is_address))


def common_prefix(one: AddressPrefix, other: AddressPrefix) -> Expr | None:
    if one.base != other.base:
        return None
    v4, v6 = min(one.v4, other.v4), min(one.v6, other.v6)
    return form_expr(NormalForm(AddressPrefix(one.base, v4, v6))) if v4 or v6 else None


def common_core(one: Core, other: Core) -> Core | None:
    match one, other:
        case Digits(), Digits():
            return common_digits(one, other) or common_bits(one, other)
        case BitSubset(), BitSubset():
            return common_bits(one, other)
        case (BitSubset(), Digits()) | (Digits(), BitSubset()):
            return common_bits(one, other) or next(
                (
                    found
                    for a, b in product(run_digits(one), run_digits(other))
                    if (found := common_digits(a, b)) is not None
                ),
                None,
            )
        case _:
            return None


def run_digits(core: Core) -> list[Digits]:
    """The digits that a core is made of."""
    match core:
        case Digits():
            return [core]
        case BitSubset(base, mask):
            made = [run_form(NormalForm(Digits(base)), *run, None) for run in runs(mask)]
            return [one.core for one in made if one is not None and isinstance(one.core, Digits)]
        case _:
            return []


def common_bits(one: Core, other: Core) -> Core | None:
    """The bits that both cores have, where both are bits of the base."""
    masks = []
    for core in (one, other):
        known = bits_of(NormalForm(core, core.step if isinstance(core, Digits) else 1), None)
        if known is None:
            return None
        masks.append(known[1])
    found = masked(NormalForm(Digits(one.base)), masks[0] & masks[1], None)
    return None if found is None else found.core


def common_digits(one: Digits, other: Digits) -> Digits | None:
    step, shared = lcm(one.step, other.step), gcd(one.step, other.step)
    if (one.offset - other.offset) % shared:
        return None
    period = gcd(one.period, other.period)
    if period % step or period == step:
        return None
    offset = next(
        offset
        for offset in range(one.offset, one.offset + step, one.step)
        if (offset - other.offset) % other.step == 0
    )
    made = Digits(one.base, step, period // step if period else None, offset)
    low, high = base_extent(one.base, None)
    core = settled(NormalForm(made), None).core
    if not isinstance(core, Digits) or (low + core.offset) // step == (high + core.offset) // step:
        return None
    return core


def shown(core: Core, address: bool) -> NormalForm:
    """The form of a core as people write it: bits of an address are an address."""
    form = NormalForm(core)
    if not address:
        return form
    scaled = NormalForm(core, core.step) if isinstance(core, Digits) else form
    return replace(scaled, is_address=True) if bits_of(scaled, None) is not None else form
