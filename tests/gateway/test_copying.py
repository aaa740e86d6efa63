"""Tests the bytes of COPY … TO STDOUT against PostgreSQL's, for few and for many rows."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tailgate.gateway.encode.copying import CSV, CopyEncoder, CopyOptions
from tailgate.lake import types as t
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.types import Field
from tailgate.values.codec.style import Style

FIELDS = [Field("a", t.INT4), Field("b c", t.TEXT), Field("d", t.BYTEA), Field("e", t.TEXT.array()), Field("f", t.FLOAT8)]
ROWS: list[tuple[Any, ...]] = [
    (1, "plain", b"\1", ["x", None], 1.5),
    (None, None, None, None, None),
    (-2, "tab\tnewline\nreturn\rback\\slash|pipe", b"\\", ['q"uote', "a,b"], 1e300),
    (3, "", b"", [], -0.0),
    (4, 'quoted "word", comma', b"x", ["\\N"], 0.1),
    (5, "\\.", None, ["N"], 7.0),
    (6, "\\N", None, ["größe"], 7.0),
]
OPTIONS = [
    ("", CopyOptions()),
    ("(format text, delimiter '|', null 'nil')", CopyOptions("text", b"|", b"nil")),
    ("(format csv)", CSV),
    ("(format csv, header)", CopyOptions("csv", b",", b"", header=True)),
    ("(format csv, header, delimiter ';', null '-2', quote '''', escape '\\')", CopyOptions("csv", b";", b"-2", True, b"'", b"\\")),
    ("(format csv, force_quote *)", CopyOptions("csv", b",", b"", force_quote=None)),
    ("(format csv, force_quote (a))", CopyOptions("csv", b",", b"", force_quote=frozenset("a"))),
    ("(format binary)", CopyOptions("binary")),
]


def table(times: int) -> pa.Table:
    return pa.table(
        [pa.array(column * times, f.type.arrow) for f, column in zip(FIELDS, map(list, zip(*ROWS, strict=True)), strict=True)],
        [f.name for f in FIELDS],
    )


def payload(frames: bytes) -> bytes:
    out = []
    while frames:
        size = int.from_bytes(frames[1:5], "big")
        if frames[:1] == b"d":
            out.append(frames[5 : size + 1])
        frames = frames[size + 1 :]
    return b"".join(out)


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.parametrize(("words", "options"), OPTIONS, ids=[w or "text" for w, _ in OPTIONS])
def test_copy_is_postgresql_s(postgres: str, words: str, options: CopyOptions, times: int) -> None:
    encoder = CopyEncoder(FIELDS, options, Style())
    ours = payload(encoder.start() + encoder.rows(table(times)) + encoder.end())
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute('create temp table t (n serial, a int4, "b c" text, d bytea, e text[], f float8)')
        cursor.executemany('insert into t (a, "b c", d, e, f) values (%s, %s, %s, %s, %s)', ROWS * times)
        with cursor.copy(f'copy (select a, "b c", d, e, f from t order by n) to stdout {words}') as copy:
            theirs = b"".join(map(bytes, copy))
    assert ours == theirs


def test_contradictory_options() -> None:
    for wrong in ({"delimiter": b"ab"}, {"delimiter": b"\n"}, {"null": b"\n"}, {"delimiter": b"a"}, {"quote": b""}):
        with pytest.raises((InvalidParameterValue, FeatureNotSupported)):
            CopyOptions(**wrong)  # type: ignore[arg-type]
