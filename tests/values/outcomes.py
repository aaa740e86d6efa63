"""PostgreSQL's values that Tailgate does not have, and the text forms of the others."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from tailgate.lake.types import NUMERIC_SCALE, Type

LAST_YEAR = 294_246  # of which there are all timestamps
EXACT = Context(prec=100_000, rounding=ROUND_HALF_UP)


def unsupported(type: Type, output: str) -> bool:
    """Returns whether Tailgate does not have a value of PostgreSQL: timestamps after the year 294246, NaN, more digits."""
    if type.is_array:  # columns of one dimension refuse others
        return output.startswith(("{{", "["))
    match type.name:
        case "timestamp" | "timestamptz":
            year = re.match(r"\d{6}", output)
            return year is not None and int(year[0]) > LAST_YEAR
        case "numeric":
            whole = output.lstrip("-").partition(".")[0]
            precision, scale = type.decimal
            return not whole.isdigit() or len(whole.lstrip("0")) > precision - scale
    return False


def shown(type: Type, output: bytes) -> bytes:
    """Returns an output with 16 digits after the point, if it is a numeric without a scale, and without zeros at the end."""
    if type.name == "numeric" and not type.modifiers and b"." in output:
        rounded = EXACT.quantize(Decimal(output.decode()), Decimal(1).scaleb(-NUMERIC_SCALE))
        return f"{rounded:f}".rstrip("0").removesuffix(".").encode()
    return output
