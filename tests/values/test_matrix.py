"""Every way in and out gives the values and errors of PostgreSQL 15, for every type.

    way       literal, parameter in text and binary form, COPY FROM in text, csv and binary format
    result    the value in text form and in binary form, or SQLSTATE and message

The texts are those of the golden files. The binary forms are those that PostgreSQL sends for them,
and broken ones. `make test` takes a third of both at random. Values that Tailgate does not support must fail with 0A000, 22003 or 22008.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from tailgate.gateway.encode.copying import SIGNATURE, TRAILER
from tailgate.lake.types import NUMERIC_SCALE, Type
from tests.tables.world import World
from tests.values.golden import TYPES, declared, load
from tests.values.outcomes import shown, unsupported

pytestmark = pytest.mark.usefixtures("seed")
Outcome = tuple[bytes | str, ...]
COPY_FORMATS = ("text", "csv", "binary")


@dataclass(frozen=True)
class Sides:
    """Connections to PostgreSQL and to Tailgate; each has a table per type, with a column `v`."""

    theirs: psycopg.Connection[Any]
    ours: psycopg.Connection[Any]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> Iterator[Sides]:
    world = World(tmp_path_factory.mktemp("matrix") / "lake")
    with psycopg.connect(postgres, autocommit=True) as theirs, psycopg.connect(world.dsn, autocommit=True) as ours:
        for connection in (theirs, ours):
            connection.execute("SET TimeZone = 'UTC'")
            for name, type in TYPES.items():
                connection.execute(f"CREATE TABLE of_{name} (id int, v {declared(type)})".encode())
        yield Sides(theirs, ours)
        for name in TYPES:
            theirs.execute(f"DROP TABLE of_{name}".encode())
    world.close()


def check(type: Type, way: str, value: object, ours: Outcome, theirs: Outcome) -> list[str]:
    """Returns the difference of two outcomes, if there is one."""
    if ours == theirs or allowed(type, value, ours, theirs):
        return []
    return [f"{way} {value!r}: {ours}, in PostgreSQL {theirs}"]


def allowed(type: Type, value: object, ours: Outcome, theirs: Outcome) -> bool:
    """Returns whether two different outcomes are of the documented differences."""
    if theirs[0] != b"value":
        if type.is_array and isinstance(value, bytes) and b"\0\0\0\1" < value[:4] < b"\0\0\0\7":  # several dimensions
            return ours[0] == "0A000"
        if type.name == "numeric" and theirs[0] == "22003":  # numeric without a scale has 38 digits and no infinity
            return ours[0] == "22003" or (ours[0] == "0A000" and "inf" in str(value).lower())
        if theirs[1].startswith("invalid memory alloc request size"):  # for a number of ranges that the data cannot have
            return ours == ("08P01", "insufficient data left in message")
        # PostgreSQL's message, but not an internal error
        return theirs[0] == "XX000" and ours == ("22P03", theirs[1])
    if unsupported(type, str(theirs[1], "utf8")):
        return ours[0] in ("0A000", "22003", "22008")
    if ours[0] != b"value":
        return False
    if type.name in ("float4", "float8") and theirs[1] == b"NaN":  # the bits of a NaN have no meaning
        return ours[1] == b"NaN"
    if type.name == "numeric" and len(str(value).partition(".")[2].strip("'")) > NUMERIC_SCALE:  # parameters have 16 digits
        return True
    return (b"value", shown(type, ours[1]), *ours[2:]) == (b"value", shown(type, theirs[1]), *theirs[2:])  # type: ignore[arg-type]


# --- the ways ------------------------------------------------------------------------------------


def error_of(error: psycopg.Error) -> Outcome:
    return error.sqlstate or "", error.diag.message_primary or ""


def error_of_result(result: psycopg.pq.abc.PGresult) -> Outcome:
    fields = psycopg.pq.DiagnosticField
    return str(result.error_field(fields.SQLSTATE), "utf8"), str(result.error_field(fields.MESSAGE_PRIMARY), "utf8")


def execute(connection: psycopg.Connection[Any], statement: bytes, type: Type, data: bytes | None, format: int) -> Outcome:
    """Returns the value of `statement`, maybe with a parameter, in text and in binary form."""
    values: list[bytes] = []
    for result_format in (0, 1):
        parameters = ([data], [type.oid], [format]) if data is not None else (None, None, None)
        result = connection.pgconn.exec_params(statement, *parameters, result_format)  # type: ignore[arg-type]
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            return error_of_result(result)
        values.append(result.get_value(0, 0) or b"")
    return (b"value", values[0]) if type.name == "numeric" and not type.modifiers else (b"value", *values)


def literal(connection: psycopg.Connection[Any], type: Type, text: str) -> Outcome:
    quoted = sql.Literal(text).as_string(None)
    return execute(connection, f"SELECT {quoted}::{declared(type)}".encode(), type, None, 0)


def parameter(connection: psycopg.Connection[Any], type: Type, data: bytes, format: int) -> Outcome:
    return execute(connection, f"SELECT $1::{declared(type)}".encode(), type, data, format)


def copied(connection: psycopg.Connection[Any], name: str, format: str, data: bytes) -> Outcome | list[bytes]:
    """Returns the rows after COPY FROM, as COPY TO sends them, or the error."""
    try:
        with connection.transaction(force_rollback=True):
            with connection.cursor().copy(f"COPY of_{name} FROM STDIN (FORMAT {format})".encode()) as copy:
                copy.write(data)
            return rows(connection, name)
    except psycopg.Error as error:
        return error_of(error)


def rows(connection: psycopg.Connection[Any], name: str) -> list[bytes]:
    result = connection.pgconn.exec_(f"SELECT v FROM of_{name} ORDER BY id".encode())
    return [result.get_value(i, 0) or b"" for i in range(result.ntuples)]


def line(format: str, id: int, data: bytes) -> bytes:
    """Returns a row as COPY's data has it."""
    if format == "csv":
        return b'%d,"%s"\n' % (id, data.replace(b'"', b'""'))
    if format == "text":
        for character, escaped in ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t")):
            data = data.replace(character, escaped)
        return b"%d\t%s\n" % (id, data)
    return struct.pack("!hiii", 2, 4, id, len(data)) + data


def whole(format: str, lines: list[bytes]) -> bytes:
    return SIGNATURE + b"".join(lines) + TRAILER if format == "binary" else b"".join(lines)


# --- tests ---------------------------------------------------------------------------------------

T = TypeVar("T")


def chosen(values: Iterable[T], share: float) -> list[T]:
    """Returns a random part of the values."""
    return [value for value in values if random.random() < share]


shares = pytest.mark.parametrize("share", [pytest.param(1 / 3, id="third"), pytest.param(1.0, id="all", marks=pytest.mark.long)])


@shares
@pytest.mark.parametrize("name", TYPES)
def test_texts(name: str, share: float, sides: Sides) -> None:
    type = TYPES[name]
    mismatches: list[str] = []
    for g in chosen(load(name), share):
        data = g.text.encode()
        mismatches += check(type, "literal", g.text, literal(sides.ours, type, g.text), literal(sides.theirs, type, g.text))
        mismatches += check(type, "parameter", g.text, parameter(sides.ours, type, data, 0), parameter(sides.theirs, type, data, 0))
    assert not mismatches, "\n".join([f"{len(mismatches)} differences", *mismatches])


def binary_forms(name: str, theirs: psycopg.Connection[Any]) -> dict[bytes, str | None]:
    """Returns what PostgreSQL sends for the golden texts, with their text, and broken forms of it, with None."""
    type = TYPES[name]
    sent: dict[bytes, str | None] = {}
    for g in load(name):
        if g.output is not None:
            result = theirs.pgconn.exec_params(f"SELECT $1::{declared(type)}".encode(), [g.text.encode()], [type.oid], [0], 1)
            sent[result.get_value(0, 0) or b""] = g.output
    broken = {bytes([byte]) * size for size in range(26) for byte in (0, 1, 0x7F, 0x80, 0xFF)}
    for data in sorted(sent):
        cut = random.randrange(len(data) + 1)
        broken |= {data[:cut], data + b"\0"}
    return {data: sent.get(data) for data in sorted(sent.keys() | broken)}


@shares
@pytest.mark.parametrize("name", TYPES)
def test_binary(name: str, share: float, sides: Sides) -> None:
    type = TYPES[name]
    mismatches: list[str] = []
    for data in chosen(binary_forms(name, sides.theirs), share):
        mismatches += check(type, "binary", data, parameter(sides.ours, type, data, 1), parameter(sides.theirs, type, data, 1))
    assert not mismatches, "\n".join([f"{len(mismatches)} differences", *mismatches])


@shares
@pytest.mark.parametrize("format", COPY_FORMATS)
@pytest.mark.parametrize("name", TYPES)
def test_copy(name: str, format: str, share: float, sides: Sides) -> None:
    """Valid values are copied together, each invalid value with a COPY that has no other row."""
    type = TYPES[name]
    inputs = binary_forms(name, sides.theirs) if format == "binary" else {g.text.encode(): g.output for g in load(name)}
    mismatches: list[str] = []
    together: list[bytes] = []
    for id, (data, output) in enumerate(chosen(inputs.items(), share)):
        row = line(format, id, data)
        if output is not None and not unsupported(type, output):
            together.append(row)
            continue
        theirs = copied(sides.theirs, name, format, whole(format, [row]))
        if isinstance(theirs, list) and not unsupported(type, theirs[0].decode()):
            together.append(row)
        else:
            ours = copied(sides.ours, name, format, whole(format, [row]))
            mismatches += check(type, f"COPY {format}", data, outcome(ours), outcome(theirs))
    data = whole(format, together)
    theirs, ours = copied(sides.theirs, name, format, data), copied(sides.ours, name, format, data)
    if isinstance(ours, list) and isinstance(theirs, list):
        for row, our, their in zip(together, ours, theirs, strict=True):
            mismatches += check(type, f"COPY {format}", row, outcome([our]), outcome([their]))
    else:
        mismatches.append(f"COPY {format} of {len(together)} values: {ours}, in PostgreSQL {theirs}")
    assert not mismatches, "\n".join([f"{len(mismatches)} differences", *mismatches])


def outcome(rows: Outcome | list[bytes]) -> Outcome:
    return (b"value", *rows) if isinstance(rows, list) else rows
