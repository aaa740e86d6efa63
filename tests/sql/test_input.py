"""Literals have the values of PostgreSQL's input functions, or their SQLSTATEs and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.sql.input.literals import parse
from tests.sql.oracle import normal

TEXTS: dict[str, list[str]] = {
    "bool": ["t", "TRUE", " yes ", "off", "of", "o", "1", "0", "", "2", "truee", "n", "tru"],
    "int4": ["1", " -7 ", "+5", "2147483648", "-2147483648", "1.0", "", " ", "1e3", "0x10", "1_000", "--1", "\u0663"],
    "int2": ["32767", "32768", "-32769"],
    "int8": ["9223372036854775807", "9223372036854775808"],
    "float8": ["1", "1.5e3", ".5", "5.", "1e400", "1e-400", "NaN", "-inf", "Infinity", "abc", "", "1e"],
    "float4": ["3.4e38", "3.5e38", "1e-46", "0.1"],
    "numeric": ["1.50", "-.5", "1e3", "1e-3", "", "1.2.3", "abc", " 7 ", "00012.3400"],
    "numeric(5,2)": ["123.455", "-123.445", "999.994", "999.995", "1000"],
    "text": ["", "a", "äöü"],
    "varchar(3)": ["abc", "ab"],
    "bytea": ["abc", "\\x4142", "\\x41 42", "\\xzz", "\\x4", "a\\\\b", "\\101", "\\9", "äb"],
    "date": [
        "2021-04-26", "2021-4-6", "20210426", "2021-02-29", "2020-02-29", "2021-13-01", "2021-00-01", "2021-01-32", "", "abc", "epoch",
        "2021-04-26 10:00:00", "2021-04-26T10:00:00Z", "0001-01-01", "2021-04",
    ],
    "timestamp": [
        "2021-04-26 10:11:12", "2021-04-26T10:11:12.123456", "2021-04-26 10:11", "2021-04-26", "2021-04-26 24:00:00", "2021-04-26 24:00:01",
        "2021-04-26 10:60:00", "2021-04-26 10:11:60", "2021-04-26 10:11:12.1234565", "2021-04-26 10:11:12+02",
        "2021-04-26 10:11:12Z", "abc",
        "2021-04-26 25:00:00", "2021-04-26 1:2:3", "  2021-04-26   10:11:12  ",
    ],
    "timestamptz": [
        "2021-04-26 10:11:12", "2021-04-26 10:11:12+02", "2021-04-26 10:11:12-08:30", "2021-04-26T10:11:12Z", "2021-04-26 10:11:12 UTC",
        "2021-04-26 10:11:12+0530", "2021-04-26 10:11:12 +02", "2021-04-26", "2021-04-26Z", "2021-04-26 10:11:12+16", "epoch", "x",
    ],
    "time": ["10:11:12", "10:11", "24:00", "24:01", "10:11:12.5", "1:2", "abc", "25:00", "2021-04-26 10:11:12"],
    "interval": [
        "1 day", "1 day 02:03:04", "-1 day", "1 day ago", "1 year 2 mons -3 days 04:05:06.7", "1-2", "1.5 days", "1.5 hours", "0.5 mon",
        "P1Y2M3DT4H5M6S", "PT36H", "P1W", "@ 1 minute", "1 week", "02:03", "-02:03:04", "90 seconds", "5", "1 foo", "",
        "abc", "1 mon 1 mon",
        "1.5 years", "1 decade", "250 ms", "-1 mons +2 days", "3 4:05:06",
    ],
    "uuid": [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "abc",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "a0eebc99-9c0b4ef8-bb6d-6bb9bd380a11x",
    ],
    "jsonb": [
        '{"b": 1.10, "a": [1e2, "x"], "a": null}', '"\\u00e4\\n\\"\\/"', "1e3", "-0", "1.0E-2", "01", "{a: 1}", '{"a":1,}',
        "", "nul", "[1,2",
        '"a\tb"', '"\\u0000"', '"\\ud83d\\ude00"', '"\\ud83d"', "NaN", "[[], {}]", '{"aa": 1, "b": 2, "": 3, "ä": 4}', "1.", "-", "true ",
        '"\\u001f"', "123456789012345678901234567890.123", "[1] 2",
    ],
    "text[]": ["{}", "{a,b}", '{"a b","c\\"d",NULL,"NULL"}', "{a", "a,b", "{a,}", "{ a , b }", "{{a},{b}}"],
    "int4[]": ["{1,2,NULL}", "{1,x}"],
}  # fmt: skip
CASES = [(type, text) for type, texts in TEXTS.items() for text in texts]


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET IntervalStyle = 'postgres'")
        yield connection


def type_of(name: str) -> Type:
    base, _, rest = name.partition("(")
    if rest:
        return Type(base, tuple(map(int, rest.rstrip(")").split(","))))
    return Type(name.removesuffix("[]"), is_array=name.endswith("[]"))


@pytest.mark.parametrize(("name", "text"), CASES)
def test_literal(name: str, text: str, server: psycopg.Connection[Any]) -> None:
    result = parse_literal(name, text)
    if result[0] != "0A000":  # not supported
        assert result == parse_on_postgres(name, text, server)


def parse_literal(name: str, text: str) -> tuple[str, Any]:
    try:
        return "value", normal(parse(text, type_of(name)))
    except TailgateError as error:
        return error.sqlstate, error.message


def parse_on_postgres(name: str, text: str, server: psycopg.Connection[Any]) -> tuple[str, Any]:
    try:
        row = server.execute(f"SELECT %s::{name}::text", (text,)).fetchone()  # type: ignore[arg-type]
    except psycopg.Error as error:
        return error.sqlstate or "", error.diag.message_primary
    assert row is not None
    return "value", row[0] if name == "jsonb" else normal(parse(row[0], type_of(name)))
