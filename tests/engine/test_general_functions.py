"""Spark's functions of general numerics give the results of `values.numeric`, which tests.values.test_numeric compares with PostgreSQL."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tailgate.lake import sortable
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import GENERAL_SPARK
from tailgate.sql.compute.numeric import general_numerics
from tailgate.values.numeric import arithmetic
from tests.sql.test_general_numerics import random_rows

pytestmark = pytest.mark.spark


def integer(a: Decimal, bits: int) -> int | None:
    """Returns the rounded value, or None if it has no integer of so many bits."""
    value = int(arithmetic.round_to(a, 0)) if a.is_finite() else None
    return value if value is not None and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def floating(a: Decimal) -> float | None:
    """Returns the nearest float, or None if it would be infinite, or 0, and the value is not."""
    value = float(a)
    return value if not a.is_finite() or (math.isfinite(value) and (value or not a)) else None


BINARY: dict[str, Callable[[Decimal, Decimal], Any]] = {
    **general_numerics.BINARY,
    "compare": lambda a, b: (sortable.key(a) > sortable.key(b)) - (sortable.key(a) < sortable.key(b)),
}
UNARY: dict[str, Callable[[Decimal], Any]] = {
    **general_numerics.UNARY,
    "scale": arithmetic.display_scale,
    "min_scale": arithmetic.min_scale,
    "key": general_numerics.general_key,
    "to_text": general_numerics.general_to_text,
    "to_int2": lambda a: integer(a, 16),
    "to_int4": lambda a: integer(a, 32),
    "to_int8": lambda a: integer(a, 64),
    "to_float8": lambda a: floating(a),
}
OF_DIGITS: dict[str, Callable[[Decimal, int], Any]] = {"round": arithmetic.round_to, "trunc": arithmetic.truncate}


def expected(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns a result in stored form, None if it is NULL or an error."""
    if None in arguments:
        return None
    try:
        result = function(*arguments)
    except TailgateError:
        return None
    return plain(sortable.stored(result) if isinstance(result, Decimal) else result)


def plain(value: Any) -> Any:
    """Returns a value of Python or Spark in a form that can be compared."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return bytes(value) if isinstance(value, bytearray) else "NaN" if value != value else value


def test_functions(session: Any, seed: int) -> None:
    rows = random_rows(random.Random(seed))
    stored = [(*(None if a is None else tuple(sortable.stored(a).values()) for a in row[:2]), row[2]) for row in rows]
    session.createDataFrame(stored, f"a {GENERAL_SPARK}, b {GENERAL_SPARK}, n int").createOrReplaceTempView("numbers")
    calls = {f"tg_general_{name}(a, b)": [expected(f, a, b) for a, b, _ in rows] for name, f in BINARY.items()}
    calls |= {f"tg_general_{name}(a)": [expected(f, a) for a, _, _ in rows] for name, f in UNARY.items()}
    calls |= {f"tg_general_{name}(a, n)": [expected(f, a, n) for a, _, n in rows] for name, f in OF_DIGITS.items()}
    calls["tg_text_to_general(tg_general_to_text(a))"] = [expected(lambda a: a, a) for a, _, _ in rows]
    calls["tg_float8_to_general(tg_general_to_float8(a))"] = [
        expected(lambda a: None if (value := floating(a)) is None else general_numerics.float8_to_general(value), a) for a, _, _ in rows
    ]
    results = session.sql(f"SELECT {', '.join(f'tg_try({call})' for call in calls)} FROM numbers").collect()
    for place, (call, right) in enumerate(calls.items()):
        wrong = [(row, plain(result[place]), e) for row, result, e in zip(rows, results, right, strict=True) if plain(result[place]) != e]
        assert not wrong, (call, len(wrong), wrong[:3])
