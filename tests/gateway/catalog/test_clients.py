"""Runs the catalog queries of real clients on PostgreSQL 15 and on Tailgate, for the same schema.

Columns, types and rows must be equal, except oids. `tests/fixtures/client-sql.jsonl` was captured
from clients that talked to PostgreSQL. tests/wire/test_client_sql.py compares its other statements.

Known differences are listed with their reason. A statement whose answers become equal must be
removed from the list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import duckdb
import psycopg
import pytest
from sqlglot import exp

from tailgate.gateway.catalog.catalog_query import CatalogQuery, catalog_query, is_catalog_query, parsed
from tailgate.gateway.catalog.relations import rows
from tailgate.gateway.catalog.relations.database import relations
from tailgate.gateway.catalog.system_catalog import SystemCatalog
from tailgate.gateway.mirrors.sandbox import open_sandbox
from tailgate.gateway.settings import definitions
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.catalog import Catalog, MaterializedView, Table, View
from tailgate.lake.catalog.roles import OPERATOR
from tailgate.lake.catalog.schemas import TAILGATE
from tailgate.lake.errors import SyntaxError_
from tailgate.lake.types import FLOAT8, INT4, INT8, TEXT, TIMESTAMP, Field
from tailgate.sql.authorization import Authorized, authorize
from testing.postgres import Postgres

STATEMENTS = [json.loads(line) for line in (Path(__file__).parents[2] / "fixtures" / "client-sql.jsonl").read_text().splitlines()]
VALUES = {5: ["catalogs"], 6: ["catalogs", "public"], 7: ["public"]}

DIFFERENT = {
    58: "an array that is cast from a vector counts from 1, not from 0",
    79: "settings of that server's configuration file",
    93: "sizes are 0",
    98: "sizes are 0",
    101: "version() names another server",
    102: "PostgreSQL lists the columns of TOAST tables, which we have none of",
    113: "version() names another server",
    132: "version() names another server",
}
NOT_ASKED = {
    108: "EXECUTE of a statement that was prepared before",
    142: "EXECUTE of a statement that was prepared before",
    117: "the name of a snapshot",
}

SCHEMA = """
CREATE TABLE kv (id bigint PRIMARY KEY, name text, amount double precision, cnt int, updated_at timestamp);
CREATE VIEW kv_view AS SELECT id, name FROM kv;
CREATE MATERIALIZED VIEW kv_mv AS SELECT cnt, count(*) AS n FROM kv GROUP BY cnt
"""
KV = (Field("id", INT8, False), Field("name", TEXT), Field("amount", FLOAT8), Field("cnt", INT4), Field("updated_at", TIMESTAMP))


VIEW = "SELECT kv.id,\n    kv.name\n   FROM kv"


def items(oid: dict[str, int]) -> Catalog:
    return Catalog(
        {
            oid["kv"]: Table(oid["kv"], "kv", KV, (0,), True),
            oid["kv_view"]: View(oid["kv_view"], "kv_view", KV[:2], depends=(oid["kv"],), query=VIEW),
            oid["kv_mv"]: MaterializedView(
                oid["kv_mv"], "kv_mv", (Field("cnt", INT4), Field("n", INT8)), None, True, depends=(oid["kv"],),
                query="SELECT kv.cnt,\n    count(*) AS n\n   FROM kv\n  GROUP BY kv.cnt",
            ),
        }
    )  # fmt: skip


def authorized_query(sql: str, catalog: Catalog) -> Authorized[CatalogQuery]:
    return authorize(catalog_query(parsed(sql), (), catalog), OPERATOR, Catalog())


class Oracle:
    """PostgreSQL and Tailgate's system catalog, for the same relations with the same oids."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self.connection = connection
        names = "SELECT relname, oid::int FROM pg_class WHERE relname IN ('kv', 'kv_view', 'kv_mv')"
        self.oids: dict[str, int] = dict(connection.execute(names).fetchall())  # type: ignore[arg-type]
        self.catalog = items(self.oids)
        self.ours = SystemCatalog(lambda prepare: open_sandbox(prepare).connection)
        settings = Settings()
        self.session = SimpleNamespace(
            computed=lambda relation: [],
            database="catalogs",
            user="postgres",
            process=connection.info.backend_pid,
            settings=settings,
            role=OPERATOR,
            may_see=lambda item: True,
        )

    def compare(self, sql: str, values: list[str | None]) -> list[str]:
        """Returns descriptions of the differences."""
        sql = re.sub(r"\b16388\b", str(self.oids["kv"]), sql).strip().rstrip(";")
        theirs: list[tuple[object, ...]] | psycopg.Error
        try:
            cursor = self._execute(sql, values)
            theirs, columns = cursor.fetchall(), [(d.name, d.type_code) for d in cursor.description or ()]
        except psycopg.Error as error:
            theirs = error
        try:
            fields, table = self.ours.run(authorized_query(sql, self.catalog), values, self.session, self.catalog)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001  # any error is compared
            if isinstance(theirs, psycopg.Error) and theirs.sqlstate == getattr(error, "sqlstate", None):
                return []
            return [f"{type(error).__name__}: {error}"]
        if isinstance(theirs, psycopg.Error):
            return [f"rows, where PostgreSQL fails with {theirs.sqlstate}"]
        out = []
        if (mine := [(f.name, f.type.oid) for f in fields]) != columns:
            out.append(f"columns {[p for p in zip(columns, mine, strict=False) if p[0] != p[1]]}")
        ours = [row for row in zip(*(c.to_pylist() for c in table.columns), strict=True) if TAILGATE not in row]
        left, right = [[tuple(map(_shown, row)) for row in answer] for answer in (theirs, ours)]
        if Counter(left) != Counter(right):
            missing, more = Counter(left) - Counter(right), Counter(right) - Counter(left)
            out.append(f"rows: {len(missing)} missing {list(missing)[:1]}, {len(more)} more {list(more)[:1]}")
        return out

    def _execute(self, sql: str, values: list[str | None]) -> psycopg.Cursor[tuple[object, ...]]:
        if not values:
            return self.connection.execute(sql.encode())
        self.connection.execute("DEALLOCATE ALL")
        self.connection.execute(f"PREPARE p AS {sql}".encode())
        arguments = ", ".join("NULL" if v is None else f"'{v}'" for v in values)
        return self.connection.execute(f"EXECUTE p({arguments})".encode())


def _shown(value: object) -> str:
    """Returns a value as text, with the oids of user objects masked."""
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_shown, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return re.sub(r"\b(1[6-9]\d{3}|[2-9]\d{4}|\d{6,})\b", "OID", str(value))


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """Starts a separate server, whose catalog has no databases and roles of other tests. PostgreSQL has no relations of `tailgate`."""
    server, patch = Postgres(), pytest.MonkeyPatch()
    patch.setattr(rows, "SYSTEM_RELATIONS", {})
    try:
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("CREATE DATABASE catalogs")
        dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname="catalogs")
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
            for statement in SCHEMA.split(";"):
                connection.execute(statement.encode())
            yield Oracle(connection)
    finally:
        patch.undo()
        server.stop()


def _catalog_queries() -> list[int]:
    """Returns the numbers of the statements that are catalog queries."""
    catalog = items({"kv": 16388, "kv_view": 16393, "kv_mv": 16397})
    out = []
    for number, statement in enumerate(STATEMENTS):
        try:
            tree = parsed(statement["sql"].strip().rstrip(";"))
        except SyntaxError_:
            continue
        if isinstance(tree, exp.Query) and is_catalog_query(tree, catalog) and number not in NOT_ASKED:
            out.append(number)
    return out


CATALOG_QUERIES = _catalog_queries()


@pytest.mark.parametrize("number", CATALOG_QUERIES)
def test_as_postgresql_answers(oracle: Oracle, number: int) -> None:
    sql = STATEMENTS[number]["sql"]
    values = VALUES.get(number, [None] * max([0, *map(int, re.findall(r"\$(\d+)", sql))]))
    differences = oracle.compare(sql, list(values))
    if number in DIFFERENT:
        assert differences, f"statement {number} is equal now: take it from the list"
    else:
        assert not differences, f"{sql}\n{differences}"


@pytest.mark.parametrize("function", ["pg_get_function_arguments", "pg_get_function_identity_arguments", "pg_get_function_result"])
def test_signatures_of_functions(oracle: Oracle, function: str) -> None:
    """Compares the signatures of all built-in functions, with the defaults of their arguments."""
    assert oracle.compare(f"SELECT oid, {function}(oid), pg_get_expr(proargdefaults, 0) FROM pg_proc WHERE oid < 16384", []) == []


def test_the_score(record_property) -> None:
    """A minimum of equal statements, so that none is dropped by accident."""
    assert len(CATALOG_QUERIES) - len([n for n in CATALOG_QUERIES if n in DIFFERENT]) >= 100, len(CATALOG_QUERIES)


@pytest.mark.parametrize("type", ["float4", "float8", "real", "double precision", "numeric", "bytea", "float8[]", "numeric[]", "json"])
def test_casts_have_the_names_of_their_types(oracle: Oracle, type: str) -> None:
    """A query that mentions type oid is a catalog query."""
    assert oracle.compare(f"SELECT NULL::{type}, 1::oid", []) == []


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT * FROM pg_catalog.pg_nonsense", "42P01"),
        ("SELECT nonsense FROM pg_class", "42703"),
        ("SELECT pg_nonsense(1) FROM pg_class", "42883"),
        ("SELECT 'nonsense'::regclass", "42P01"),
        ("SELECT 'nonsense'::regtype", "42704"),
        ("SELECT current_setting('nonsense')", "42704"),
    ],
)
def test_errors(oracle: Oracle, sql: str, sqlstate: str) -> None:
    assert oracle.compare(sql, []) == []
    with pytest.raises(Exception) as caught:  # noqa: PT011
        oracle.ours.run(authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog)  # type: ignore[arg-type]
    assert getattr(caught.value, "sqlstate", None) == sqlstate


def test_a_setting_that_may_be_missing(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Similar names are sought for an error only: queries of pg_settings would repeat the search for each row."""
    monkeypatch.setattr(definitions, "near", lambda *names: pytest.fail("searched"))
    calls = ", ".join(f"current_setting('{name}', true)" for name in ("nonsense", "a.nonsense", "search_path", "block_size"))
    assert oracle.compare(f"SELECT {calls}, 1::oid", []) == []


@pytest.mark.parametrize(
    "escape", ["read_csv('/etc/passwd')", "glob('/*')", "arrow_scan(1, 2, 3)", "duckdb_settings()", "read_text('/etc/passwd')"]
)
def test_no_way_out(oracle: Oracle, escape: str) -> None:
    for sql in (f"SELECT * FROM {escape}, pg_class", f"SELECT {escape} FROM pg_class"):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            oracle.ours.run(authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog)  # type: ignore[arg-type]
        assert getattr(caught.value, "sqlstate", None) in ("42883", "42601")


def test_oids_stay(oracle: Oracle) -> None:
    """Another process computes the same oids."""
    sql = "SELECT oid, relname, reltype FROM pg_class WHERE oid >= 16384 ORDER BY oid"
    one = oracle.ours.run(authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog)[1]  # type: ignore[arg-type]
    other = SystemCatalog(lambda prepare: open_sandbox(prepare).connection).run(
        authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog
    )[1]  # type: ignore[arg-type]
    assert one.equals(other)


def test_a_query_creates_the_relations_that_it_needs_and_no_others(oracle: Oracle) -> None:
    connections: list[duckdb.DuckDBPyConnection] = []

    def opened(prepare: Callable[[duckdb.DuckDBPyConnection], None]) -> duckdb.DuckDBPyConnection:
        connections.append(open_sandbox(prepare).connection)
        return connections[0]

    ours, expected = SystemCatalog(opened), {"nothing"}
    for sql, new in (
        ("SELECT tablename FROM pg_tables", {"pg_class", "pg_namespace", "pg_tablespace"}),
        ("SELECT nspname FROM pg_namespace", set()),
        ("SELECT word FROM pg_get_keywords()", {"pg_keywords"}),
    ):
        ours.run(authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog)  # type: ignore[arg-type]
        expected |= new
        names = connections[0].execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert {name for (name,) in names} == expected


def test_each_relation_can_be_read(oracle: Oracle) -> None:
    oracle.session.listing = lambda relation, status: []
    for relation in relations():
        sql = f"SELECT count(*) FROM {relation}"
        oracle.ours.run(authorized_query(sql, oracle.catalog), [], oracle.session, oracle.catalog)  # type: ignore[arg-type]
