"""Type money: a number of cents, which is written with the symbols of the C locale.

Source: PostgreSQL 15, src/backend/utils/adt/cash.c.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.types import Type
from tailgate.values.codec.binary import fixed, packed
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import packed_column
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid

_BLANK = f"[{BLANKS}]*"
_MONEY = re.compile(
    rf"{_BLANK}\$?{_BLANK}(?P<sign>[-(+]?){_BLANK}\$?{_BLANK}"
    rf"(?P<whole>[0-9,]*)(?:\.(?P<cents>,*(?:[0-9],*){{0,2}})(?P<next>[0-9]?)[0-9]*)?(?P<end>[{BLANKS})$+-]*)",
    re.ASCII,
)
DIGITS_READ = 20  # one more than the largest amount has: Python reads at most 4300
_RANGE = range(-(2**63), 2**63)


def read(text: str, type: Type | None = None, style: Style | None = None) -> int:
    """Reads an amount such as $1,234.56, -12.3 or (1), rounded to cents. Raises 22P02 or 22003."""
    match = _MONEY.fullmatch(text)
    if match is None:
        raise invalid("money", text)
    whole, cents = match["whole"].replace(",", ""), (match["cents"] or "").replace(",", "")
    digits = (whole + cents.ljust(2, "0")).lstrip("0")
    amount = int(digits[:DIGITS_READ] or "0") + ((match["next"] or "0") >= "5")
    value = -amount if match["sign"] in ("-", "(") or "-" in match["end"] else amount
    if value not in _RANGE:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type money')
    return value


def write(value: int) -> bytes:
    """Writes an amount.

    >>> write(123456789), write(-5)
    (b'$1,234,567.89', b'-$0.05')
    """
    return b"%s$%s.%02d" % (b"-" if value < 0 else b"", f"{abs(value) // 100:,}".encode(), abs(value) % 100)


MONEY = Codec(read, fixed("!q"), lambda type, style: write, packed("!q"), column_binary=packed_column("!q"))
