"""Types smallint, integer, bigint and oid.

Source: PostgreSQL 15, src/backend/utils/adt/numutils.c, int.c, int8.c, oid.c.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.types import Type
from tailgate.values.codec.binary import fixed, packed
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import ColumnReader, arrow_text, packed_column, spelled, value_by_value
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid

RANGES = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "oid": (0, 2**32 - 1),
}
INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 1_000  # Python converts longer texts slowly; the value is out of range anyway


def read(text: str, type: Type, style: Style) -> int:
    digits = text.strip(BLANKS)
    if not INTEGER_TEXT.fullmatch(digits):
        raise invalid(type.facts.sql, text)
    value = int(digits) if len(digits) <= _DIGITS_MAX else int(digits[0] + digits[1:].lstrip("0")[:_DIGITS_MAX] or "0")
    low, high = RANGES[type.name]
    if low == 0 and -(2**31) <= value < 0:
        value += 2**32
    if not low <= value <= high:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {type.facts.sql}')
    return value


def strtoint(text: str) -> int | None:
    """Returns the number that strtoint() of C reads, None for another text. Blanks may precede it, but not follow it.

    >>> strtoint(" +1"), strtoint("1 "), strtoint("99999999999")
    (1, None, None)
    """
    digits = text.lstrip(BLANKS)
    if not INTEGER_TEXT.fullmatch(digits) or len(digits) > _DIGITS_MAX:
        return None
    low, high = RANGES["int4"]
    return value if low <= (value := int(digits)) <= high else None


def write(value: int) -> bytes:
    return b"%d" % value


_COMMON = spelled("-?[0-9]{1,18}")


def _codec(format: str, read_column: ColumnReader) -> Codec:
    return Codec(read, fixed(format), lambda type, style: write, packed(format), read_column, arrow_text, packed_column(format))


SMALLINT, INTEGER, BIGINT = _codec("!h", _COMMON), _codec("!i", _COMMON), _codec("!q", _COMMON)
OID = _codec("!I", value_by_value)
