"""The golden files: texts of every type, and what PostgreSQL 15 makes of them.

A file has a line for each text, which is a JSON array:

    ["1-2", "1 year 2 mons", 7]          the text, PostgreSQL's text of its value, and its rank
    ["1-x", null, "22007", "invalid …"]  the text, and the SQLSTATE and message of the error

Two values have the same rank if they are equal, and a greater value has a greater rank. The tests
of the Java library read the same files. `python -m tests.values.golden` records the results again;
to add a text, add a line `["text"]` before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.types import Type
from tailgate.sql.functions.comparison import INCOMPARABLE
from testing.postgres import Postgres

FOLDER = Path(__file__).parent / "golden"
TYPES = {  # by the name of the file
    "bool": Type("bool"),
    "int2": Type("int2"),
    "int4": Type("int4"),
    "int8": Type("int8"),
    "oid": Type("oid"),
    "money": Type("money"),
    "float4": Type("float4"),
    "float8": Type("float8"),
    "numeric": Type("numeric"),
    "numeric_5_2": Type("numeric", (5, 2)),
    "numeric_3_0": Type("numeric", (3, 0)),
    "text": Type("text"),
    "varchar": Type("varchar"),
    "varchar_3": Type("varchar", (3,)),
    "bpchar": Type("bpchar"),
    "character_3": Type("bpchar", (3,)),
    "character_1": Type("bpchar", (1,)),
    "name": Type("name"),
    "char": Type("char"),
    "bytea": Type("bytea"),
    "date": Type("date"),
    "time": Type("time"),
    "timetz": Type("timetz"),
    "timestamp": Type("timestamp"),
    "timestamptz": Type("timestamptz"),
    "interval": Type("interval"),
    "uuid": Type("uuid"),
    "inet": Type("inet"),
    "cidr": Type("cidr"),
    "macaddr": Type("macaddr"),
    "macaddr8": Type("macaddr8"),
    "bit": Type("bit"),
    "bit_3": Type("bit", (3,)),
    "varbit": Type("varbit"),
    "varbit_3": Type("varbit", (3,)),
    **{name: Type(name) for name in ALL_RANGES},
    "json": Type("json"),
    "jsonb": Type("jsonb"),
    "int4_array": Type("int4", is_array=True),
    "text_array": Type("text", is_array=True),
    "timestamp_array": Type("timestamp", is_array=True),
}


@dataclass(frozen=True)
class Golden:
    """A text, and what PostgreSQL makes of it: either `output` and `rank`, or `sqlstate` and `message`."""

    text: str
    output: str | None = None
    rank: int = 0
    sqlstate: str = ""
    message: str = ""


def declared(type: Type) -> str:
    """Returns the type's name for a statement; `character` and `bit` alone would have the length 1."""
    return f'"{type.name}"' if type.name in ("bpchar", "bit") and not type.modifiers else str(type)


def load(name: str) -> list[Golden]:
    return [_golden(json.loads(line)) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]


def _golden(line: list[Any]) -> Golden:
    if line[1] is None:
        return Golden(line[0], sqlstate=line[2], message=line[3])
    return Golden(line[0], line[1], line[2])


def recorded(connection: psycopg.Connection[Any], type: Type, texts: list[str]) -> list[Golden]:
    """Returns a server's results for texts that are inserted into a column of a type."""
    connection.execute("SET TimeZone = 'UTC'; SET IntervalStyle = 'postgres'; DROP TABLE IF EXISTS golden")
    connection.execute(f"CREATE TEMPORARY TABLE golden (id int, v {declared(type)})".encode())
    errors: dict[int, tuple[str, str]] = {}
    for id, text in enumerate(texts):
        try:
            connection.execute(sql.SQL("INSERT INTO golden VALUES ({}, {})").format(id, sql.Literal(text)))
        except psycopg.Error as error:
            errors[id] = error.sqlstate or "", error.diag.message_primary or ""
    key = "v::text" if type.name in INCOMPARABLE else "v"
    result = connection.pgconn.exec_(f"SELECT id, v, dense_rank() OVER (ORDER BY {key}) FROM golden".encode())
    rows = {int(result.get_value(i, 0) or 0): i for i in range(result.ntuples)}
    entries = []
    for id, text in enumerate(texts):
        if id in errors:
            entries.append(Golden(text, sqlstate=errors[id][0], message=errors[id][1]))
        else:
            output, rank = result.get_value(rows[id], 1), result.get_value(rows[id], 2)
            assert output is not None
            assert rank is not None
            entries.append(Golden(text, output.decode(), int(rank)))
    return entries


def record() -> None:
    server = Postgres()
    server.start()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            for name, type in TYPES.items():
                path = FOLDER / f"{name}.jsonl"
                texts = [json.loads(line)[0] for line in path.read_text().splitlines()]
                with path.open("w") as file:
                    for g in recorded(connection, type, texts):
                        line = [g.text, None, g.sqlstate, g.message] if g.output is None else [g.text, g.output, g.rank]
                        file.write(json.dumps(line) + "\n")
    finally:
        server.stop()


if __name__ == "__main__":
    record()
