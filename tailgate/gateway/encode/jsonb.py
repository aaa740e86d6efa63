"""JSON text to the canonical text of a jsonb: keys by length and then bytes, the last of equal ones, numbers as written.

Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c, lengthCompareJsonbStringValue; jsonb_out for blanks.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tailgate.lake.errors import InvalidTextRepresentation


def canonical(text: str) -> str:
    """
    >>> canonical('{"bb":1.50,"a":[1e2,null],"a":[true]}')
    '{"a": [true], "bb": 1.50}'
    """
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidTextRepresentation("invalid input syntax for type json", detail=f'Token "{text[:40]}" is invalid.') from None
    return _write(value)


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _write(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_write(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write, value)) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False)
