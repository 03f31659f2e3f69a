"""The operators of GSQL as Spark Columns, by their roles (terascope.functions.roles).

Spark's ANSI mode detects integer overflow in + - * and negation; operations that Spark lacks (floor
division, division by zero as NULL, checked shifts, masks of addresses) are composed here.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions import roles
from terascope.functions.base import Value
from terascope.functions.overflow import overflow_message
from terascope.spark.catalyst.operands import (
    WIDE,
    Operand,
    Operands,
    alike,
    as_text,
    flipped,
    null,
    number,
    unified,
)
from terascope.spark.catalyst.windows import slice_column
from terascope.spark.mistakes import marked_line
from terascope.types import BIAS, INT_MAX, INT_MIN, Type

COMPARED: Mapping[roles.Comparator, Callable[[Column, Column], Column]] = {
    roles.LESS: operator.lt,
    roles.EQUAL: operator.eq,
    roles.GREATER: operator.gt,
    roles.LESS.opposite: operator.ge,
    roles.EQUAL.opposite: operator.ne,
    roles.GREATER.opposite: operator.le,
}
BITS: Mapping[str, Callable[[Column, Column], Column]] = {
    "&": Column.bitwiseAND,
    "|": Column.bitwiseOR,
    "^": Column.bitwiseXOR,
}


def quotient(operands: Operands) -> Column:
    dividend, divisor = (o.column.cast("double") for o in operands)
    return dividend / F.nullif(divisor, F.lit(0.0))


def remainder(dividend: Column, divisor: Column) -> tuple[Column, Column]:
    """The remainder that has the sign of the dividend, and whether rounding must go down."""
    rest = dividend % divisor
    return rest, (rest != number(0)) & ((rest < number(0)) != (divisor < number(0)))


def is_positive(operand: Operand) -> bool:
    return operand.constant and operand.value is not None and operand.value > 0


def floor_divide(operands: Operands) -> Column:
    if is_positive(operands[1]):
        # The everyday case, time/60: one comparison and one division. Below zero, ~x = -x - 1
        # turns rounding up into rounding down.
        value, count = operands[0].column, operands[1].column
        mirrored = F.bitwise_not(F.call_function("div", F.bitwise_not(value), count))
        return F.when(value < number(0), mirrored).otherwise(F.call_function("div", value, count))
    dividend, divisor = operands[0].column, F.nullif(operands[1].column, number(0))
    down = remainder(dividend, divisor)[1]
    truncated = F.call_function("div", dividend, divisor)
    return truncated - F.when(down, number(1)).otherwise(number(0))


def floor_modulo(operands: Operands) -> Column:
    if is_positive(operands[1]):
        return F.pmod(operands[0].column, operands[1].column)
    dividend, divisor = operands[0].column, F.nullif(operands[1].column, number(0))
    rest, down = remainder(dividend, divisor)
    return F.when(down, rest + divisor).otherwise(rest)


def narrow(operands: Operands) -> Column:
    """A WIDE as a number; above 2^63 - 1 it is an overflow."""
    held = operands[0].column
    before, after = marked_line("value", overflow_message("#")).split("#")
    shown = (held.cast(WIDE) + F.lit(Decimal(BIAS))).cast("string")
    overflow = F.raise_error(F.concat(F.lit(before), shown, F.lit(after))).cast("long")
    return F.when(held < number(0), flipped(held)).when(held.isNotNull(), overflow)


def shift_left(operands: Operands) -> Column:
    value, places = operands[0].column, operands[1].column
    bits = places.bitwiseAND(number(63)).cast("int")
    shifted = F.call_function("shiftleft", value, bits)
    before, after = marked_line("value", overflow_message("#")).split("#")
    shown = (
        F.lit(before),
        value.cast("string"),
        F.lit(" << "),
        places.cast("string"),
        F.lit(after),
    )
    overflow = F.raise_error(F.concat(*shown)).cast("long")
    fits = F.call_function("shiftright", shifted, bits) == value
    checked = F.when(fits, shifted).when(value.isNotNull(), overflow)
    return F.when(places.between(0, 63), checked)


def shift_right(operands: Operands) -> Column:
    value, places = operands[0].column, operands[1].column
    bits = places.bitwiseAND(number(63)).cast("int")
    return F.when(places.between(0, 63), F.call_function("shiftright", value, bits))


def ipv4_number(address: Column) -> Column:
    """The four bytes after the version of an IPv4 address, as a number."""
    return F.conv(F.hex(F.substring(address, 2, 4)), 16, 10).cast("long")


def ipv4_address(value: Column) -> Column:
    return F.concat(F.lit(bytearray(b"\4")), F.unhex(F.lpad(F.hex(value), 8, "0")))


def is_ipv4(address: Column) -> Column:
    return F.length(address) == F.lit(5)


def mask(operands: Operands) -> Column:
    address, bits = operands
    if bits.constant and bits.value is not None:
        return F.when(is_ipv4(address.column), masked(address.column, bits.value & 0xFFFFFFFF))
    kept = ipv4_number(address.column).bitwiseAND(bits.column)
    return F.when(is_ipv4(address.column), ipv4_address(kept))


def masked(address: Column, bits: int) -> Column:
    """A masked address: whole bytes are cut out; a mask that ends inside a byte needs
    arithmetic.
    """
    for kept in range(5):
        if bits == 0xFFFFFFFF << 8 * (4 - kept) & 0xFFFFFFFF:
            return F.concat(F.substring(address, 1, 1 + kept), F.lit(bytearray(4 - kept)))
    return ipv4_address(ipv4_number(address).bitwiseAND(number(bits)))


def like(operands: Operands) -> Column | None:
    pattern = operands[1]
    if not pattern.constant:
        return None
    if pattern.value is None:
        return null(Type.BOOL)
    text = pattern.value if isinstance(pattern.value, str) else pattern.value.decode("latin-1")
    return as_text(operands[0]).rlike(java_like(text))


def java_like(pattern: str) -> str:
    """A LIKE pattern as a Java regular expression that matches the whole text."""
    parts, characters = ["(?s)\\A"], iter(pattern)
    for c in characters:
        if c == "%":
            parts.append(".*")
        elif c == "_":
            parts.append(".")
        else:
            parts.append(java_quote(next(characters, c) if c == "\\" else c))
    return "".join(parts) + "\\z"


def java_quote(text: str) -> str:
    """A text in a Java pattern: letters of any alphabet as they are, other characters escaped."""
    return re.sub(r"[^\w]", lambda c: f"\\x{{{ord(c.group()):x}}}", text)


def listed(operands: Operands) -> Column:
    """IN a long list of constants. The list is one text, which Spark parses and searches; a Column
    for each value would take one or more calls to the JVM.
    """
    tested, members = operands
    nulls = ["NULL"] if members.value.has_null else []
    texts = [sql_text(value) for value in members.value.values]
    test = F.expr(f"v -> v IN ({', '.join([*texts, *nulls])})")
    return F.call_function("exists", F.array(alike(tested, members.type)), test)


def sql_text(value: Value) -> str:
    """A constant in Spark's SQL."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}L" if value != INT_MIN else f"(-{INT_MAX}L - 1L)"
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"DOUBLE('{value!r}')"
        case bytes():
            return f"X'{value.hex()}'"
        case _:
            return f"CAST(X'{str(value).encode().hex()}' AS STRING)"


def shifted(operands: Operands, signs: tuple[int, ...], type: Type) -> Column:
    """The Column of x + y, x - y or -x."""
    columns = [alike(o, type) for o in operands]
    if len(columns) == 1:
        return -columns[0]
    return columns[0] + columns[1] if signs[1] > 0 else columns[0] - columns[1]


def by_role(role: roles.Role | None, operands: Operands, type: Type) -> Column | None:
    """The Column of an operator; None for a role that has no native form."""
    match role:
        case roles.Conjunction() | roles.Disjunction():
            combine = operator.and_ if isinstance(role, roles.Conjunction) else operator.or_
            return reduce(combine, (alike(o, Type.BOOL) for o in operands))
        case roles.Negation():
            return ~alike(operands[0], Type.BOOL)
        case roles.Comparator():
            return COMPARED[role](*unified(operands))
        case roles.Addition(signs):
            return shifted(operands, signs, type)
        case roles.Multiplication():
            return reduce(operator.mul, (alike(o, type) for o in operands))
        case roles.Quotient():
            return quotient(operands)
        case roles.FloorDivision():
            return floor_divide(operands)
        case roles.Remainder():
            return floor_modulo(operands)
        case roles.Magnitude():
            return F.abs(alike(operands[0], type))
        case roles.BitOperation(symbol):
            return BITS[symbol](*(alike(o, type) for o in operands))
        case roles.BitComplement():
            return F.bitwise_not(alike(operands[0], type))
        case roles.ShiftLeft():
            return shift_left(operands)
        case roles.ShiftRight():
            return shift_right(operands)
        case roles.Narrowing():
            return narrow(operands)
        case roles.AddressMask():
            return mask(operands)
        case roles.Membership():
            tested, *items = unified(operands)
            return tested.isin(*items)
        case roles.ListMembership():
            return listed(operands)
        case roles.TextPattern():
            return like(operands)
        case roles.NullTest():
            return operands[0].column.isNull()
        case roles.Coalescing():
            return F.coalesce(*(alike(o, type) for o in operands))
        case roles.SlicePart(part):
            return slice_column(part, operands)
        case _:
            return None
