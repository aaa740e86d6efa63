"""PostgreSQL's values that Tailgate does not have, and the text forms of the others."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from tailgate.lake.types import NUMERIC_SCALE, Type

EXACT = Context(prec=100_000, rounding=ROUND_HALF_UP)


def unsupported(type: Type, output: str) -> bool:
    """Returns whether Tailgate does not have a value of PostgreSQL: years before 1 or beyond 9999, NaN, more digits."""
    if type.is_array:
        return output.startswith(("{{", "["))
    match type.name:
        case "date" | "timestamp" | "timestamptz":
            return output.endswith("BC") or "infinity" in output or re.match(r"\d{5}", output) is not None
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
