"""The stored forms of values: what PostgreSQL sends in text and binary form is read to the same."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import psycopg
import pytest

from tailgate.lake import types as t
from tailgate.lake.errors import InvalidBinaryRepresentation, ProtocolViolation
from tailgate.lake.types import Type
from tailgate.values.codec.style import Style
from tailgate.values.registry import read_binary, read_text
from tailgate.values.stored import stored

READ = [
    (t.BOOL, " yes ", True),
    (t.INT2, "-7", -7),
    (t.INT4, " 2147483647", 2147483647),
    (t.INT8, "-9223372036854775808", -(2**63)),
    (t.OID, "4294967295", 2**32 - 1),
    (t.FLOAT8, "1e-3", 0.001),
    (t.FLOAT8, "-Infinity", float("-inf")),
    (t.TEXT, "größe", "größe"),
    (t.BYTEA, "\\x00ff", b"\0\xff"),
    (t.BYTEA, "a\\\\b\\001", b"a\\b\1"),
    (t.DATE, "2020-02-29", 18321),
    (t.TIME, "23:59:59.5", 86_399_500_000),
    (t.TIMESTAMP, "2020-01-01 12:34:56.789", 1577882096789000),
    (t.TIMESTAMP, "2020-01-01", 1577836800000000),
    (t.TIMESTAMPTZ, "2020-01-01T12:00:00+05:30", 1577860200000000),
    (t.TIMESTAMPTZ, "2020-07-01 12:00:00 Europe/Berlin", 1593597600000000),
    (t.INTERVAL, "1 year -2 mons +3 days 04:05:06.5", {"months": 10, "days": 3, "micros": 14_706_500_000}),
    (t.INTERVAL, "1.5 months", {"months": 1, "days": 15, "micros": 0}),
    (t.INTERVAL, "P1Y2DT3H", {"months": 12, "days": 2, "micros": 10_800_000_000}),
    (t.NUMERIC, "-12345.678900", Decimal("-12345.678900")),
    (t.NUMERIC, "0.00012", Decimal("0.00012")),
    (t.NUMERIC, "100000000", Decimal("100000000")),
    (t.UUID, "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (t.JSONB, '{"bb": 1.50, "a": [1, {"x": null}]}', '{"a": [1, {"x": null}], "bb": 1.50}'),
    (t.INT4.array(), "{1,NULL,3}", [1, None, 3]),
    (t.TEXT.array(), '{a,"b,\\"c",NULL,"NULL"}', ["a", 'b,"c', None, "NULL"]),
    (t.INT8.array(), "{}", []),
]


@pytest.mark.parametrize(("type", "text", "value"), READ, ids=lambda v: str(v)[:30])
def test_text_and_binary(postgres: str, type: Type, text: str, value: object) -> None:
    assert stored(read_text(text, type), type) == value
    with psycopg.connect(postgres, autocommit=True) as connection:
        for format in (0, 1):
            result = connection.pgconn.exec_params(f"select $1::{type!s}".encode(), [text.encode()], result_format=format)
            sent = result.get_value(0, 0)
            assert sent is not None
            received = read_binary(sent, type) if format else read_text(sent.decode(), type)
            assert stored(received, type) == value


@pytest.mark.parametrize("type", [t.INT4, t.TIMESTAMP, t.UUID, t.NUMERIC, t.INTERVAL, t.BOOL], ids=str)
def test_binary_of_the_wrong_size(type: Type) -> None:
    with pytest.raises(InvalidBinaryRepresentation, match="incorrect binary data format"):
        read_binary(b"\0" * 21, type)


def test_binary_too_short() -> None:
    with pytest.raises(ProtocolViolation, match="insufficient data left in message"):
        read_binary(b"\0\0\0", t.INT4)


@pytest.mark.parametrize(
    ("date_order", "text", "expected"),
    [
        ("MDY", "01/02/2003", 12054),
        ("DMY", "01/02/2003", 12084),
        ("YMD", "01/02/03", 11356),
        ("DMY", "13-Feb-03", 12096),
        ("YMD", "03-Feb-13", 12096),
        ("DMY", "2003-02-01", 12084),
    ],
)
def test_order_of_dates(postgres: str, date_order: str, text: str, expected: int) -> None:
    assert read_text(text, t.DATE, Style(date_order=date_order)) == expected
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"SET DateStyle = 'ISO, {date_order}'".encode())
        assert connection.execute("SELECT %s::text::date", (text,)).fetchone() == (date(1970, 1, 1) + timedelta(days=expected),)
