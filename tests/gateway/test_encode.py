"""Tests the bytes of every type in both formats against PostgreSQL's, and the fast encoders against the plain ones."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.gateway.encode.rows import FEW_ROWS, RowEncoder
from tailgate.gateway.protocol.backend import data_row
from tailgate.lake import types as t
from tailgate.lake.types import Field, Type
from tailgate.values.codec.style import Style

INT = (t.INT2, t.INT4, t.INT8)

# By type: the stored form of a value, and PostgreSQL's literal.
VALUES: list[tuple[Type, list[tuple[Any, str]]]] = [
    (t.BOOL, [(True, "true"), (False, "false")]),
    (t.INT2, [(v, str(v)) for v in (0, 7, -32768, 32767)]),
    (t.INT4, [(v, str(v)) for v in (0, -1, 2**31 - 1, -(2**31))]),
    (t.INT8, [(v, str(v)) for v in (0, 1, -(2**63), 2**63 - 1)]),
    (t.OID, [(v, str(v)) for v in (0, 16384, 2**32 - 1)]),
    (
        t.FLOAT8,
        [
            (v, repr(v))
            for v in (0.0, -0.0, 7.0, 0.1, 1e15, 123456789012345.0, 1e14, 1234567890123456.0, 1.5e300, 1e-5, 0.0001, 5e-324, 1 / 3)
        ],
    ),
    (t.FLOAT8, [(float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (float("nan"), "NaN")]),
    (t.FLOAT4, [(v, repr(v)) for v in (0.0, 1.5, 1.100000023841858, 1e6, 123456.0, 1e-5, 0.0001, 3.4028234663852886e38, 16777216.0)]),
    (t.TEXT, [("", ""), ("a\tb\\n", "a\tb\\n"), ("größe 🐘", "größe 🐘")]),
    (Type("varchar", (10,)), [("abc", "abc")]),
    (Type("bpchar", (5,)), [("ab", "ab"), ("größe", "größe")]),
    (t.NAME, [("pg_class", "pg_class")]),
    (t.BYTEA, [(b"", "\\x"), (bytes(range(256)), "\\x" + bytes(range(256)).hex())]),
    (
        t.DATE,
        [
            (v, d)
            for v, d in ((0, "1970-01-01"), (18262, "2020-01-01"), (-719528, "0001-01-01 BC"), (2932897, "10000-01-01"), (-1, "1969-12-31"))
        ],
    ),
    (t.DATE, [(2**31 - 1, "infinity"), (-(2**31) + 1, "-infinity")]),
    (t.TIME, [(0, "00:00"), (86_399_999_999, "23:59:59.999999"), (3_600_500_000, "01:00:00.5"), (86_400_000_000, "24:00:00")]),
    (
        t.TIMESTAMP,
        [
            (0, "1970-01-01 00:00:00"),
            (1_577_836_800_123_450, "2020-01-01 00:00:00.12345"),
            (-1, "1969-12-31 23:59:59.999999"),
            (253_402_300_800_000_000, "10000-01-01 00:00:00"),
            (-62_167_219_200_000_000 - 1, "0002-12-31 23:59:59.999999 BC"),
            (2**63 - 1, "infinity"),
            (-(2**63) + 1, "-infinity"),
        ],
    ),
    (
        t.TIMESTAMPTZ,
        [
            (0, "1970-01-01 00:00:00+00"),
            (1_593_561_600_000_001, "2020-07-01 00:00:00.000001+00"),
            (1_577_836_800_000_000, "2020-01-01 00:00:00+00"),
            (-2_500_000_000_000_000, "1890-10-11 19:33:20+00"),
            (253_402_300_800_000_000, "10000-01-01 00:00:00+00"),
            (2**63 - 1, "infinity"),
        ],
    ),
    (
        t.INTERVAL,
        [
            ((0, 0, 0), "0"),
            ((14, 3, 3_661_500_000), "1 year 2 mons 3 days 01:01:01.5"),
            ((-14, 3, -1), "-1 year -2 mons +3 days -00:00:00.000001"),
            ((0, -1, 3_600_000_000), "-1 days +01:00:00"),
            ((1, 1, 0), "1 mon 1 day"),
            ((0, 0, 360_000_000_000_000), "100000:00:00"),
        ],
    ),
    (Type("numeric", (10, 2)), [(Decimal(v), v) for v in ("0.00", "1.50", "-0.05", "12345678.90", "10000.00", "0.10")]),
    (t.numeric(0), [(Decimal(v), v) for v in ("0", "12345", "-99999999999999999999999999999999999999", "100000000")]),
    (
        t.numeric(16),
        [(Decimal(v).quantize(Decimal("1e-16")), f"{v}") for v in ("2.5000000000000000", "0.0000000000000001", "0.0000000000000000")],
    ),
    (Type("numeric", (38, 20)), [(Decimal(v), v) for v in ("123456789012345678.12345678901234567890", "0.00000000000000000001")]),
    (t.UUID, [("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",) * 2]),
    (t.JSONB, [('{"a": [1, 2.50, null], "b": "x"}',) * 2, ("1",) * 2, ('"t"',) * 2]),
    (t.INT4.array(), [([1, None, -3], "{1,NULL,-3}"), ([], "{}")]),
    (t.TEXT.array(), [(["a", "", "b c", 'q"', "null", "{x}", "b\\s", "ü,"], r'{a,"","b c","q\"","null","{x}","b\\s","ü,"}')]),
    (t.TIMESTAMPTZ.array(), [([1_577_836_800_000_000], '{"2020-01-01 00:00:00+00"}')]),
    (Type("numeric", (10, 2)).array(), [([Decimal("1.50")], "{1.50}")]),
    (t.BOOL.array(), [([True, False], "{t,f}")]),
    (t.DATE.array(), [([0], "{1970-01-01}")]),
]
STYLES = [
    Style(),
    Style(time_zone="Europe/Berlin", interval_style="iso_8601", extra_float_digits=0, bytea_output="escape"),
    Style(time_zone="Asia/Kolkata", extra_float_digits=-5),
]
ZONE = {
    "extra_float_digits": "extra_float_digits",
    "time_zone": "timezone",
    "interval_style": "intervalstyle",
    "bytea_output": "bytea_output",
}


def column(type: Type, values: list[Any]) -> pa.Array:
    if type == t.INTERVAL:
        values = [None if v is None else {"months": v[0], "days": v[1], "micros": v[2]} for v in values]
    return pa.array(values, type.arrow)


def rows(data: bytes) -> list[list[bytes | None]]:
    out = []
    while data:
        assert data[:1] == b"D"
        size = int.from_bytes(data[1:5], "big")
        body, data = data[7 : size + 1], data[size + 1 :]
        row: list[bytes | None] = []
        while body:
            length = int.from_bytes(body[:4], "big", signed=True)
            row.append(None if length < 0 else body[4 : 4 + length])
            body = body[4 + max(length, 0) :]
        out.append(row)
    return out


@pytest.mark.parametrize("binary", [0, 1])
@pytest.mark.parametrize("style", STYLES, ids=lambda s: s.time_zone)
def test_bytes_are_postgresql_s(postgres: str, style: Style, binary: int) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        for field, setting in ZONE.items():
            connection.execute(f"set {setting} = '{getattr(style, field)}'")
        for type, values in VALUES:
            table = pa.table([column(type, [v for v, _ in values] + [None])], names=["c"])
            encoder = RowEncoder([Field("c", type)], [binary], style)
            ours = [row[0] for row in rows(encoder.data_rows(table))]
            for mine, (_, literal) in zip(ours, values, strict=False):
                result = connection.pgconn.exec_params(f"select $1::{type!s}".encode(), [literal.encode()], result_format=binary)
                assert result.get_value(0, 0) == mine, (type, literal)
            assert ours[-1] is None


@pytest.mark.parametrize("binary", [0, 1])
@pytest.mark.parametrize("style", STYLES, ids=lambda s: s.time_zone)
def test_a_column_at_a_time_is_a_value_at_a_time(style: Style, binary: int, seed: int) -> None:
    chance = random.Random(seed)
    fields, arrays = [], []
    for number, (type, values) in enumerate(VALUES):
        fields.append(Field(f"c{number}", type))
        arrays.append(column(type, [chance.choice([*values, (None, "")])[0] for _ in range(FEW_ROWS + 200)]))
    table = pa.table(arrays, names=[f.name for f in fields]).slice(7)
    encoder = RowEncoder(fields, [binary] * len(fields), style)
    fast = encoder.data_rows(table)
    plain = b"".join(data_row(row) for row in zip(*encoder.field_values(table), strict=True))
    assert fast == plain
    assert encoder.data_rows(table.slice(0, 3)) == fast[: len(encoder.data_rows(table.slice(0, 3)))]


@pytest.mark.parametrize("binary", [0, 1])
def test_common_ranges_take_the_fast_way_too(binary: int, seed: int) -> None:
    """The values above use the plain functions; these are in the ranges that Arrow's functions encode."""
    chance = random.Random(seed)
    size = 2_000
    columns: list[tuple[Type, list[Any]]] = [
        (t.DATE, [chance.randrange(-700_000, 2_900_000) for _ in range(size)]),
        (t.TIMESTAMP, [chance.randrange(-(2**55), 2**57) // chance.choice((1, 1000, 10**6)) for _ in range(size)]),
        (t.TIMESTAMPTZ, [chance.randrange(-(2**55), 2**57) for _ in range(size)]),
        (t.TIMESTAMPTZ, [chance.randrange(3 * 10**14, 2 * 10**15) for _ in range(size)]),
        (Type("numeric", (12, 3)), [Decimal(chance.randrange(-(10**12), 10**12)).scaleb(-3) for _ in range(size)]),
    ]
    columns = [(type, [None if chance.random() < 0.1 else v for v in values]) for type, values in columns]
    fields = [Field(f"c{i}", type) for i, (type, _) in enumerate(columns)]
    table = pa.table([column(type, values) for type, values in columns], names=[f.name for f in fields])
    for zone in ("UTC", "America/New_York"):
        encoder = RowEncoder(fields, [binary] * len(fields), Style(time_zone=zone))
        assert encoder.data_rows(table) == b"".join(data_row(row) for row in zip(*encoder.field_values(table), strict=True))


def test_no_columns_and_no_rows() -> None:
    assert RowEncoder([], [], Style()).data_rows(pa.table({"x": [1, 2]}).select([])) in (b"", b"D\0\0\0\6\0\0" * 2)
    assert RowEncoder([Field("a", t.INT4)], [0], Style()).data_rows(pa.table({"a": pa.array([], pa.int32())})) == b""
