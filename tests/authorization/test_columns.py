"""Tests privileges on columns against PostgreSQL: the statements of `columns.sql`, and random grants with random statements.

The statements of `owners.sql` test OWNER TO and who may disable foreign keys in the same way, those of `grants.sql` GRANT OPTION,
DROP OWNED and REASSIGN OWNED.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.authorization.world import World

ROLES = ("boss", "low", "helper")
STEPS = 300  # of the random test
# Statements whose answers differ, with the keys that do
DIFFERENT: dict[str, str] = {
    "CREATE TABLE lo.r2 (id text REFERENCES s (secret))": "sqlstate message",  # privileges are checked first
    "CREATE MATERIALIZED VIEW m AS SELECT 1 AS x": "tag",
    "REASSIGN OWNED BY low TO boss": "message",  # it names the database
    **dict.fromkeys(  # PostgreSQL names the trigger, which Tailgate does not have
        (f"ALTER TABLE {table} {word} TRIGGER ALL" for table in ("keyed", "referring") for word in ("DISABLE", "ENABLE")), "message"
    ),
}


class Pair:
    """Sessions of the same roles in PostgreSQL and in Tailgate."""

    def __init__(self, world: World, postgres: str) -> None:
        self._operator = psycopg.connect(postgres, autocommit=True)
        self._operator.execute("SET client_min_messages = error")
        self._drop()
        self._operator.execute("CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
        for role in ROLES:
            self._operator.execute(f"CREATE ROLE {role}")
        self._operator.execute("GRANT CREATE ON SCHEMA public TO boss; CREATE SCHEMA lo AUTHORIZATION low")
        self._theirs = {role: psycopg.connect(postgres, autocommit=True) for role in ROLES}
        for role, session in self._theirs.items():
            session.execute(f"SET SESSION AUTHORIZATION {role}; SET timezone = 'UTC'")
        self._ours = {role: world.connect(role) for role in ROLES}
        self._theirs["operator"], self._ours["operator"] = psycopg.connect(postgres, autocommit=True), world.connect()

    def differences(self, role: str, sql: str) -> str:
        """Executes a statement in both systems. Returns a text with the parts of the answers that differ, or an empty one."""
        expected, got = _answer(self._theirs[role], sql), _answer(self._ours[role], sql)
        keys = [key for key in {**expected, **got} if expected.get(key) != got.get(key)]
        if not keys or DIFFERENT.get(sql) == " ".join(keys):
            return ""
        lines = [f"  {key}:\n    PostgreSQL {expected.get(key)!r}\n    Tailgate   {got.get(key)!r}" for key in keys]
        return "\n".join([f"{role}: {sql}", *lines])

    def _drop(self) -> None:
        self._operator.execute("DROP SCHEMA IF EXISTS public CASCADE")
        for role in ROLES:
            if self._operator.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone() is not None:
                self._operator.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")

    def close(self) -> None:
        for session in (*self._theirs.values(), *self._ours.values()):
            session.close()
        self._drop()
        self._operator.execute("CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
        self._operator.close()


@pytest.fixture
def pair(world: World, postgres: str) -> Iterator[Pair]:
    pair = Pair(world, postgres)
    yield pair
    pair.close()


def _answer(connection: psycopg.Connection[Any], sql: str) -> dict[str, Any]:
    try:
        cursor = connection.cursor()
        if sql.startswith("COPY"):
            with cursor.copy(sql.encode()) as copy:
                if sql.endswith("STDOUT"):
                    return {"copied": b"".join(copy)}
                copy.write("50\tz\n")
            return {"tag": cursor.statusmessage}
        cursor.execute(sql.encode())
    except psycopg.Error as error:
        return {"sqlstate": error.sqlstate, "message": error.diag.message_primary, "detail": error.diag.message_detail}
    answer = cursor.fetchall() if cursor.description is not None else []
    rows = [repr([sorted(value) if isinstance(value, list) else value for value in row]) for row in answer]  # the order of grants differs
    return {"tag": cursor.statusmessage, "rows": rows if "ORDER BY" in sql else sorted(rows)}


@pytest.mark.parametrize("script", ["columns", "owners", "grants"])
def test_as_postgresql(pair: Pair, script: str) -> None:
    text = Path(__file__).with_name(f"{script}.sql").read_text()
    lines = (line for line in text.splitlines() if line and not line.startswith("--"))
    differences = [pair.differences(role, sql) for role, _, sql in (line.partition(": ") for line in lines)]
    assert not any(differences), "\n" + "\n".join(filter(None, differences))


SET_UP = (
    ("boss", "CREATE TABLE t (a int PRIMARY KEY, b int, c int)"),
    ("boss", "INSERT INTO t VALUES (1, 10, 100), (2, 20, 200)"),
    ("boss", "CREATE VIEW v AS SELECT a, c AS x FROM t"),
    ("operator", "GRANT CREATE ON SCHEMA public TO helper"),
    ("boss", "GRANT SELECT ON t TO helper"),
    ("helper", "CREATE VIEW h AS SELECT a, b FROM t WHERE a > 0"),
    ("helper", "GRANT ALL ON h TO low"),
)
COLUMNS = {"t": ("a", "b", "c"), "v": ("a", "x"), "h": ("a", "b")}


class RandomStatements:
    """A generator of grants on relations, and of statements that read and write them."""

    def __init__(self, choose: random.Random) -> None:
        self._r = choose

    def grant(self) -> tuple[str, str]:
        owner, relation = self._r.choice((("boss", "t"), ("boss", "t"), ("boss", "v"), ("helper", "h")))
        verb, to = self._r.choice((("GRANT", "TO"), ("GRANT", "TO"), ("REVOKE", "FROM")))
        privileges = self._r.sample(("SELECT", "INSERT", "UPDATE", "DELETE"), self._r.randint(1, 2))
        listed = ", ".join(p if p == "DELETE" or self._r.random() < 0.15 else f"{p} ({self._columns(relation)})" for p in privileges)
        grantee = self._r.choice(("low", "low", "PUBLIC", "low" if owner == "helper" else "helper"))  # an owner has all privileges
        return owner, f"{verb} {listed} ON {relation} {to} {grantee}"

    def statement(self) -> tuple[str, str]:
        relation = self._r.choice(tuple(COLUMNS))
        kind = self._r.choice((self._select, self._select, self._insert, self._update, self._delete))
        return self._r.choice(("low", "low", "helper")), kind(relation)

    def _columns(self, relation: str) -> str:
        columns = COLUMNS[relation]
        return ", ".join(self._r.sample(columns, self._r.randint(1, len(columns))))

    def _column(self, relation: str) -> str:
        return self._r.choice(COLUMNS[relation])

    def _where(self, relation: str) -> str:
        return f" WHERE {self._column(relation)} > {self._r.randrange(30)}" if self._r.random() < 0.4 else ""

    def _returning(self, relation: str) -> str:
        return f" RETURNING {self._r.choice(('*', '1', self._column(relation)))}" if self._r.random() < 0.3 else ""

    def _select(self, relation: str) -> str:
        what = self._r.choice((self._columns(relation), self._columns(relation), "count(*)", "*", f"{relation}::text", "1"))
        other = self._r.choice(tuple(COLUMNS))
        joined = (
            f" JOIN {other} AS o USING (a)" if self._r.random() < 0.2 and "*" not in what and "a" not in what and ":" not in what else ""
        )
        if joined and any(column in what.split(", ") for column in COLUMNS[other]):
            joined = ""
        return f"SELECT {what} FROM {relation}{joined}{self._where(relation) if not joined else ''}"

    def _insert(self, relation: str) -> str:
        columns = self._columns(relation).split(", ")
        row = ", ".join(self._r.choice((str(self._r.randrange(40)), "DEFAULT")) for _ in columns)
        names = f" ({', '.join(columns)})" if self._r.random() < 0.8 else ""
        conflict = ""
        if self._r.random() < 0.4:
            value = self._r.choice(("1", f"excluded.{self._column(relation)}", f"{relation}.{self._column(relation)}"))
            update = f"DO UPDATE SET {self._column(relation)} = {value}"
            conflict = " ON CONFLICT" + self._r.choice((" DO NOTHING", " (a) DO NOTHING", f" (a) {update}"))
        return f"INSERT INTO {relation}{names} VALUES ({row}){conflict}{self._returning(relation)}"

    def _update(self, relation: str) -> str:
        column = self._column(relation)
        if column == "a":
            return f"UPDATE {relation} SET a = {self._r.randrange(9)} WHERE a = {self._r.randrange(9)}{self._returning(relation)}"
        value = self._r.choice(("7", self._column(relation), "DEFAULT"))
        return f"UPDATE {relation} SET {column} = {value}{self._where(relation)}{self._returning(relation)}"

    def _delete(self, relation: str) -> str:
        return f"DELETE FROM {relation}{self._where(relation) or ' WHERE false'}{self._returning(relation)}"


def test_random_grants_and_statements(pair: Pair, seed: int) -> None:
    statements = RandomStatements(random.Random(seed))
    assert [pair.differences(role, sql) for role, sql in SET_UP] == [""] * len(SET_UP)
    for _ in range(STEPS):
        for role, sql in (statements.grant(), *(statements.statement() for _ in range(3))):
            assert not (difference := pair.differences(role, sql)), difference
