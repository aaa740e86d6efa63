"""Random values of PostgreSQL's types, at the edges and of the wrong kind for ksqlDB's functions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tailgate.values.strings.jsonb import canonical

JSON = (
    "1", "-0.5", "1e300", "null", "true", '""', '"a"', '"null"', "[]", "[null]", "[1, 2.5]", '["a", null]', '[1, "a", true]',
    "[[1], [2]]", '[{"K": "a", "V": 1}, {"K": null}]', '[{"V": 1}]', "{}", '{"a": 1, "B": null}', '{"K": 1, "V": [1]}',
    '"int"', '["decimal", 4, 2]', '["decimal"]', '["array", "int"]', '["struct", ["A", "int"]]', '["struct", 1]',
)  # fmt: skip
TEXTS = (
    "", " ", "a", "A b", "1", "-1.5", "1e400", "nan", "true", "null", "[1, {}]", '{"a": 1}', "{", "$", "$.a[0]", "$..", "[", "(", "a|*",
    "\\",
    "\\u0041", "%", "%zz", "http://a:b@c:99999/d?e=f&g#h", "http://[", "yyyy-MM-dd", "'", "[[[", "UTC", "no/zone", "+99:99", "hex", "utf8",
    "0x1", "2020-02-30", "ä€😀", "BIG_ENDIAN", "left", "not right", "$1", "host", '["decimal", 4, 2]', '"varchar"',
)  # fmt: skip
VALUES: dict[str, Sequence[Any]] = {
    "jsonb": tuple(map(canonical, JSON)),
    "text": TEXTS,
    "bool": (True, False),
    "int4": (-(2**31), -1, 0, 1, 2, 7, 2**31 - 1),
    "int8": (-(2**63), -1, 0, 1, 2, 7, 10**12, 2**63 - 1),
    "float8": (0.0, -0.0, 1.5, -1.0, 1e308, 5e-324, math.inf, -math.inf, math.nan),
    "numeric": (Decimal(0), Decimal("-1.50"), Decimal(10) ** 37, Decimal("1e-37")),
    "bytea": (b"", b"a", b"\0\xff", bytes(8), bytes(4), bytes(9)),
    "timestamp": (-62_135_596_800_000_000, 0, 1_582_979_401_000_005, 253_402_300_799_999_999, 2**63 - 1),
    "text[]": ((), ("1",), (None, "null"), ("[1]", '"a"')),
}


def value(type: str, random: random.Random) -> Any:
    """Returns a value of a type."""
    return random.choice(VALUES[type])
