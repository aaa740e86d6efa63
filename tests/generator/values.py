"""Random values of every type, in PostgreSQL's text format.

Most are small and from a short list, so that joins and groups find matching rows.
"""

from __future__ import annotations

import random

from tests.sql.generated import random_value
from tests.sql.samples import SAMPLES

# Probabilities of an edge case of the type and of an arbitrary value. They are low because most
# functions fail on such values.
EDGES, ANYTHING = 0.02, 0.02

COMMON: dict[str, list[str]] = {
    "bool": ["true", "false"],
    "int2": ["0", "1", "2", "3", "-1", "5"],
    "int4": ["0", "1", "2", "3", "4", "-1", "7", "10"],
    "int8": ["0", "1", "2", "3", "-2", "7", "100"],
    "numeric": ["0", "1", "2.5", "-1.25", "3.00", "0.01", "10", "7.75"],
    "float4": ["0", "1", "0.5", "-2.25", "3", "1.5"],
    "float8": ["0", "1", "0.5", "-2.25", "3", "1.5", "100"],
    "text": ["", "a", "b", "ab", "abc", "B", "a b", "x,y", "12", "日本", "a_c", "%"],
    "varchar": ["", "a", "b", "ab", "Abc", "12"],
    "bpchar": ["", "a", "b", "ab", "abc"],
    "name": ["", "a", "b", "abc"],
    "money": ["0", "1", "-1.25", "99.99", "1234.50"],
    "char": ["", "a", "b", "B", "x"],
    "bytea": ["", "\\x00", "\\x61", "\\x6162", "\\xff00"],
    "date": ["2024-02-29", "2024-03-01", "2023-12-31", "2024-01-01", "1999-12-31", "2024-02-01"],
    "time": ["00:00", "12:34:56", "23:59:59.5", "06:00", "12:00"],
    "timetz": ["00:00Z", "12:34:56+02", "10:34:56+00", "23:59:59.5-03:30", "12:00+14", "12:00-12"],
    "timestamp": ["2024-02-29 12:34:56", "2024-03-01 00:00", "2023-12-31 23:59:59.5", "2024-01-01", "1999-12-31 06:00"],
    "timestamptz": ["2024-02-29 12:34:56Z", "2024-03-01 00:00Z", "2023-12-31 23:59:59.5Z", "2024-01-01 02:00+02", "1999-12-31 06:00Z"],
    "interval": ["0", "1 day", "36 hours", "1 mon", "-1 day 02:00", "00:30", "2 mons 3 days"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-00000000000a"],
    "inet": ["10.0.0.1", "10.0.0.0/8", "10.1.2.3/16", "192.168.1.5/24", "::1", "2001:db8::/32", "0.0.0.0/0"],
    "cidr": ["10.0.0.0/8", "10.1.0.0/16", "192.168.1.0/24", "10.0.0.1/32", "2001:db8::/32"],
    "macaddr": ["08:00:2b:01:02:03", "00:00:00:00:00:00", "08:00:2b:ff:ff:ff"],
    "macaddr8": ["08:00:2b:ff:fe:01:02:03", "08:00:2b:01:02:03:04:05"],
    "bit": ["101", "110", "010", "000", "1"],
    "varbit": ["", "1", "10", "101", "0110"],
    **{t: ["empty", "[1,3)", "[0,7)", "[3,10)", "(,2)", "[2,)"] for t in ("int4range", "int8range")},
    **{
        t: ["empty", "[2024-01-01,2024-03-01)", "[2024-02-01,2024-02-29)", "[1999-12-31,2024-01-01)", "(,2024-02-29)", "[2024-03-01,)"]
        for t in ("daterange", "tsrange", "tstzrange")
    },
    **{t: ["{}", "{[1,3)}", "{[0,3),[5,7)}", "{[3,10)}", "{(,2),[4,)}", "{[2,)}"] for t in ("int4multirange", "int8multirange")},
    **{
        t: ["{}", "{[2024-01-01,2024-03-01)}", "{[1999-12-31,2024-01-01),[2024-02-01,2024-02-29)}", "{(,2024-02-29),[2024-03-01,)}"]
        for t in ("datemultirange", "tsmultirange", "tstzmultirange")
    },
    "jsonb": [
        "null", "true", "1", "2.5", '"a"', "[]", "{}", '{"a": 1}', '{"a": "x", "b": [1, 2]}', '[1, "a", null]', '{"b": {"c": 2}}',
        "[1, 2, 3]", '["a", "b"]',
    ],
    "oid": ["0", "1", "2", "3"],
    "jsonpath": ["$", "$.a", "$.b.c", "$[*]", "strict $.a", "$[*] ? (@ > 1)", "exists($.a)"],
}  # fmt: skip
# Elements of generated arrays.
ELEMENTS = {"text": ["a", "b", "ab", "x y"], "jsonb": ["1", "[]", '{"a": 1}'], "bytea": ["\\x61", "\\xff"]}


def value(type: str, chance: random.Random) -> str:
    """Returns a random value as text, never NULL."""
    if type.endswith("[]"):
        element = type[:-2]
        pool = ELEMENTS.get(element, COMMON[element])
        items = ["NULL" if chance.random() < 0.1 else quoted_element(chance.choice(pool)) for _ in range(chance.choice((0, 1, 2, 3)))]
        return "{" + ",".join(items) + "}"
    luck = chance.random()
    if luck < EDGES:
        edges = [v for v in SAMPLES.get(type, []) if v is not None and steady(type, v)]
        if edges:
            return chance.choice(edges)
    elif luck < EDGES + ANYTHING:
        candidate = random_value(type, chance)
        if steady(type, candidate):
            return candidate
    return chance.choice(COMMON[type])


def steady(type: str, text: str) -> bool:
    """Returns whether results computed from a value are the same in any order and any locale."""
    if type in ("text", "varchar", "bpchar", "name", "jsonb"):
        return not any(c.isalpha() and not c.isascii() and c.lower() != c.upper() for c in text)
    if type == "interval":
        return text not in ("24 hours", "30 days")  # equal to other common values with another text
    if type in ("float4", "float8"):
        return text in ("NaN", "Infinity", "-Infinity") or (abs(float(text)) < 1e6 and not text.startswith("-0"))
    return True


def quoted_element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def quoted(text: str) -> str:
    """Returns a string literal.

    >>> quoted("o'k"), quoted(chr(92))
    ("'o''k'", "'\\\\'")
    """
    return "'" + text.replace("'", "''") + "'"
