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
from functools import partial, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from terascope.functions import roles
from terascope.functions.base import Scalar, Value
from terascope.functions.overflow import overflow_message
from terascope.functions.spark_form import Operand, SparkArguments, SparkColumn, SparkScalar
from terascope.spark.catalyst.frame import WIDE, flipped, null, number
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


def quotient(call: SparkArguments) -> SparkColumn:
    dividend, divisor = (column.cast("double") for column in call.columns)
    return dividend / F.nullif(divisor, F.lit(0.0))


def remainder(dividend: Column, divisor: Column) -> tuple[Column, Column]:
    """The remainder that has the sign of the dividend, and whether rounding must go down."""
    rest = dividend % divisor
    return rest, (rest != number(0)) & ((rest < number(0)) != (divisor < number(0)))


def is_positive(operand: Operand) -> bool:
    return operand.constant and operand.value is not None and operand.value > 0


def floor_divide(call: SparkArguments) -> SparkColumn:
    dividend, divisor = call.columns
    if is_positive(call.operands[1]):
        # The everyday case, time/60: one comparison and one division. Below zero, ~x = -x - 1
        # turns rounding up into rounding down.
        mirrored = F.bitwise_not(F.call_function("div", F.bitwise_not(dividend), divisor))
        plain = F.call_function("div", dividend, divisor)
        return F.when(dividend < number(0), mirrored).otherwise(plain)
    divisor = F.nullif(divisor, number(0))
    down = remainder(dividend, divisor)[1]
    truncated = F.call_function("div", dividend, divisor)
    return truncated - F.when(down, number(1)).otherwise(number(0))


def floor_modulo(call: SparkArguments) -> SparkColumn:
    dividend, divisor = call.columns
    if is_positive(call.operands[1]):
        return F.pmod(dividend, divisor)
    divisor = F.nullif(divisor, number(0))
    rest, down = remainder(dividend, divisor)
    return F.when(down, rest + divisor).otherwise(rest)


def overflow(*shown: Column) -> Column:
    """Stops the run: the value of an expression, whose text is given, does not fit 64 bits."""
    before, after = marked_line("value", overflow_message("#")).split("#")
    return F.raise_error(F.concat(F.lit(before), *shown, F.lit(after))).cast("long")


def narrow(call: SparkArguments) -> SparkColumn:
    """A WIDE as a number; above 2^63 - 1 it is an overflow."""
    (held,) = call.columns
    shown = (held.cast(WIDE) + F.lit(Decimal(BIAS))).cast("string")
    return F.when(held < number(0), flipped(held)).when(held.isNotNull(), overflow(shown))


def shift_left(call: SparkArguments) -> SparkColumn:
    value, places = call.columns
    bits = places.bitwiseAND(number(63)).cast("int")
    shifted = F.call_function("shiftleft", value, bits)
    fits = F.call_function("shiftright", shifted, bits) == value
    failed = overflow(value.cast("string"), F.lit(" << "), places.cast("string"))
    checked = F.when(fits, shifted).when(value.isNotNull(), failed)
    return F.when(places.between(0, 63), checked)


def shift_right(call: SparkArguments) -> SparkColumn:
    value, places = call.columns
    bits = places.bitwiseAND(number(63)).cast("int")
    return F.when(places.between(0, 63), F.call_function("shiftright", value, bits))


def ipv4_number(address: Column) -> Column:
    """The four bytes after the version of an IPv4 address, as a number."""
    return F.conv(F.hex(F.substring(address, 2, 4)), 16, 10).cast("long")


def ipv4_address(value: Column) -> Column:
    return F.concat(F.lit(bytearray(b"\4")), F.unhex(F.lpad(F.hex(value), 8, "0")))


def is_ipv4(address: Column) -> Column:
    return F.length(address) == F.lit(5)


def mask(call: SparkArguments) -> SparkColumn:
    address, bits = call.operands
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


def like(call: SparkArguments) -> SparkColumn | None:
    pattern = call.operands[1]
    if not pattern.constant:
        return None
    if pattern.value is None:
        return null(Type.BOOL)
    text = pattern.value if isinstance(pattern.value, str) else pattern.value.decode("latin-1")
    return call.texts[0].rlike(java_like(text))


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


def listed(call: SparkArguments) -> SparkColumn:
    """IN a long list of constants. The list is one text, which Spark parses and searches; a Column
    for each value would take one or more calls to the JVM.
    """
    tested, members = call.operands
    nulls = ["NULL"] if members.value.has_null else []
    texts = [sql_text(value) for value in members.value.values]
    test = F.expr(f"v -> v IN ({', '.join([*texts, *nulls])})")
    return F.call_function("exists", F.array(tested.alike(members.type)), test)


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


def membership(call: SparkArguments) -> SparkColumn:
    tested, *items = call.unified
    return tested.isin(*items)


def added(signs: tuple[int, ...], call: SparkArguments) -> SparkColumn:
    """The Column of x + y, x - y or -x."""
    first, *others = call.alike
    if not others:
        return -first
    return first + others[0] if signs[1] > 0 else first - others[0]


BY_ROLE: Mapping[type, SparkScalar] = {
    roles.Conjunction: lambda call: reduce(operator.and_, call.alike),
    roles.Disjunction: lambda call: reduce(operator.or_, call.alike),
    roles.Negation: lambda call: ~call.alike[0],
    roles.Multiplication: lambda call: reduce(operator.mul, call.alike),
    roles.Quotient: quotient,
    roles.FloorDivision: floor_divide,
    roles.Remainder: floor_modulo,
    roles.Magnitude: lambda call: F.abs(call.alike[0]),
    roles.BitComplement: lambda call: F.bitwise_not(call.alike[0]),
    roles.ShiftLeft: shift_left,
    roles.ShiftRight: shift_right,
    roles.Narrowing: narrow,
    roles.AddressMask: mask,
    roles.Membership: membership,
    roles.ListMembership: listed,
    roles.TextPattern: like,
    roles.NullTest: lambda call: call.columns[0].isNull(),
    roles.Coalescing: lambda call: F.coalesce(*call.alike),
}


def spark_form(function: Scalar) -> SparkScalar | None:
    """The Spark form of a function, which it declares or its role has; None: there is none."""
    match function.role:
        case _ if function.spark is not None:
            return function.spark
        case roles.Comparator() as compared:
            return lambda call: COMPARED[compared](*call.unified)
        case roles.Addition(signs):
            return partial(added, signs)
        case roles.BitOperation(symbol):
            return lambda call: BITS[symbol](*call.alike)
        case roles.SlicePart(part):
            return partial(slice_column, part)
        case role:
            return BY_ROLE.get(type(role))
