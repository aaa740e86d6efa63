"""Functions of bit and bit varying, whose values are texts of the digits 0 and 1.

Source: PostgreSQL 15, src/backend/utils/adt/varbit.c.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_, xor

from tailgate.lake.errors import ArraySubscriptError, InvalidParameterValue, NumericValueOutOfRange, StringDataLengthMismatch
from tailgate.sql.compute.registry import udf

OPERATIONS: dict[str, Callable[[int, int], int]] = {"AND": and_, "OR": or_, "XOR": xor}


# --- operators -----------------------------------------------------------------------------------


def combined(operation: str, a: str, b: str) -> str:
    """Returns the bits of AND, OR or XOR. Raises 22026 for bit strings of different lengths.

    >>> combined("XOR", "0011", "0101")
    '0110'
    """
    if len(a) != len(b):
        raise StringDataLengthMismatch(f"cannot {operation} bit strings of different sizes")
    return f"{OPERATIONS[operation](int(a, 2), int(b, 2)):0{len(a)}b}" if a else a


@udf("bit", "bit", to="bit")
def bits_and(a: str, b: str) -> str:
    return combined("AND", a, b)


@udf("bit", "bit", to="bit")
def bits_or(a: str, b: str) -> str:
    return combined("OR", a, b)


@udf("bit", "bit", to="bit")
def bits_xor(a: str, b: str) -> str:
    return combined("XOR", a, b)


@udf("bit", "int4", to="bit")
def bits_shift_left(bits: str, count: int) -> str:
    """Returns the bits moved to the left, or to the right by a negative count. The number of bits stays."""
    count = max(-len(bits), min(count, len(bits)))
    return bits[count:] + "0" * count if count >= 0 else "0" * -count + bits[:count]


@udf("bit", "int4", to="bit")
def bits_shift_right(bits: str, count: int) -> str:
    return bits_shift_left(bits, -count)


@udf("text", "bit[]", to="bit")
def bits_aggregate(operation: str, values: list[str | None]) -> str | None:
    """Returns AND, OR or XOR of the values that are not NULL. Raises 22026 for bit strings of different lengths."""
    result: str | None = None
    for value in values:
        if value is not None:
            result = value if result is None else combined(operation, result, value)
    return result


# --- bits ----------------------------------------------------------------------------------------


def _check_index(bits: str, index: int) -> None:
    if not 0 <= index < len(bits):
        raise ArraySubscriptError(f"bit index {index} out of valid range (0..{len(bits) - 1})")


@udf("bit", "int4", to="int4")
def bits_get_bit(bits: str, index: int) -> int:
    _check_index(bits, index)
    return int(bits[index])


@udf("bit", "int4", "int4", to="bit")
def bits_set_bit(bits: str, index: int, value: int) -> str:
    _check_index(bits, index)
    if value not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    return bits[:index] + str(value) + bits[index + 1 :]


# --- casts ---------------------------------------------------------------------------------------


@udf("int8", "int4", to="bit")
def integer_to_bits(value: int, length: int) -> str:
    """Returns the lowest bits of an integer.

    >>> integer_to_bits(-44, 12), integer_to_bits(5, 2)
    ('111111010100', '01')
    """
    return f"{value & (1 << length) - 1:0{length}b}"


def _to_integer(bits: str, width: int, type: str) -> int:
    if len(bits) > width:
        raise NumericValueOutOfRange(f"{type} out of range")
    value = int(bits or "0", 2)
    return value - (1 << width) if value >> width - 1 else value


@udf("bit", to="int4")
def bits_to_int4(bits: str) -> int:
    return _to_integer(bits, 32, "integer")


@udf("bit", to="int8")
def bits_to_int8(bits: str) -> int:
    return _to_integer(bits, 64, "bigint")
