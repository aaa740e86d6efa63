"""CREATE INDEX in the whole system: errors, changes of its relation, and psql's output."""

from __future__ import annotations

import subprocess
from typing import Any

import psycopg
import pytest

from tailgate.gateway.catalog.relations.fixed_rows import values
from tailgate.gateway.catalog.relations.rows import ACCESS_METHOD
from tailgate.lake.catalog import Catalog, Change, Source, Table, View
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import FACTS, INT4, JSON, Field, Type
from tailgate.sql.statements import CreateIndex, parse
from tailgate.sql.tables.indexes import create_index
from tailgate.sql.tables.storage.access_methods import METHODS
from tests.statements.conftest import World


@pytest.mark.spark
def test_an_index_of_a_view(sql: psycopg.Connection[Any], world: World) -> None:
    sql.execute("CREATE TABLE orders (id int PRIMARY KEY, city text, n int)")
    sql.execute("INSERT INTO orders VALUES (1, 'rome', 5), (2, 'oslo', 6), (3, 'rome', 7)")
    sql.execute("CREATE MATERIALIZED VIEW v AS SELECT id, city, n FROM orders WHERE n > 5")
    notices: list[str] = []
    sql.add_notice_handler(lambda n: notices.append(f"{n.severity} {n.message_primary}"))
    sql.execute("CREATE UNIQUE INDEX by_city ON v (city)")
    sql.execute("CREATE DEFAULT INDEX ON v")
    assert notices == ['NOTICE index "by_city" is not checked: rows with equal values may come']
    shown = [("by_city", "v", "city"), ("v_key", "v", "id"), ("v_primary_idx", "v", "id")]
    assert sql.execute("SHOW INDEXES ON v").fetchall() == shown
    assert sql.execute("SHOW CREATE INDEX by_city").fetchall() == [
        ("by_city", "CREATE UNIQUE INDEX by_city ON public.v USING btree (city)")
    ]
    assert sql.execute("SELECT id FROM v WHERE city = 'rome'").fetchall() == [(3,)]
    sql.execute("INSERT INTO orders VALUES (4, 'rome', 9)")
    assert sorted(sql.execute("SELECT id FROM v WHERE city = 'rome'").fetchall()) == [(3,), (4,)]
    words = dict(w.split("=") for w in world.served.dsn.split())
    typed = ["psql", "-XA", "-h", words["host"], "-p", words["port"], "-U", words["user"], "-d", words["dbname"], "-c", "\\d v"]
    output = subprocess.run(typed, capture_output=True, text=True, check=True, timeout=30).stdout
    assert '"by_city" UNIQUE, btree (city)' in output
    # A new definition with the same columns keeps the index.
    sql.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id, city, n FROM orders WHERE n > 6")
    assert sql.execute("SELECT id, n FROM v WHERE city = 'oslo'").fetchall() == []
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot change the columns") as error:
        sql.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id, n FROM orders")
    assert "index by_city depends on materialized view v" in (error.value.diag.message_detail or "")
    sql.execute("DROP INDEX v_primary_idx")
    sql.execute("DROP MATERIALIZED VIEW v")
    assert sql.execute("SHOW INDEXES").fetchall() == [("orders_pkey", "orders", "id")]


@pytest.mark.spark
def test_an_index_on_columns_that_are_not_looked_up(sql: psycopg.Connection[Any]) -> None:
    sql.execute("CREATE TABLE prices (id int PRIMARY KEY, f float8, n numeric, i interval, j jsonb, a int[], c char(3))")
    sql.execute("INSERT INTO prices VALUES (1, 0, 1.0, '1 day', '1.0', '{1}', 'a'), (2, '-0', 1, '24 hours', '1', '{1}', 'a ')")
    notices: list[str] = []
    sql.add_notice_handler(lambda n: notices.append(n.message_primary or ""))
    for column in "fnijac":
        sql.execute(f"CREATE INDEX ON prices ({column})".encode())
    sql.execute("CREATE INDEX ON prices (id, f)")
    assert notices[0] == 'index "prices_f_idx" is not used by queries, because a column has the type double precision'
    assert len(notices) == 7
    for condition in ("f = 0", "n = 1", "i = '1 day'", "j = '1'", "a = '{1}'", "c = 'a'"):
        assert sql.execute(f"SELECT id FROM prices WHERE {condition} ORDER BY id".encode()).fetchall() == [(1,), (2,)], condition
    assert sql.execute("SELECT id FROM prices WHERE id = 2 AND f = 0").fetchall() == [(2,)]
    sql.execute("DROP TABLE prices")


def test_operator_classes_are_those_of_postgresql() -> None:
    types = {oid: name for oid, name in values("pg_type", "oid", "typname") if name in FACTS or name.startswith("any")}
    for method, oid in ACCESS_METHOD.items():
        rows = [row for row in values("pg_opclass", "opcname", "opcmethod", "opcintype", "opcdefault") if row[1] == oid]
        assert set(METHODS[method].classes) == {name for name, _, type, _ in rows if type in types}, method
        defaults = {types[type]: name for name, _, type, is_default in rows if is_default and type in types}
        for type, name in defaults.items():
            if type in FACTS:
                assert METHODS[method].default_class(Type(type)) == name, (method, type)


REFUSED = {
    "CREATE UNIQUE INDEX ON t ((a * interval '1 day'))": ("0A000", "a unique index on a column of type interval is not supported"),
    "CREATE INDEX ON t (a) TABLESPACE x": ("0A000", "TABLESPACE of an index is not supported"),
    "CREATE INDEX ON t USING bloom (a)": ("0A000", "USING bloom is not supported"),
    "CREATE INDEX ON t USING gin (a)": ("42704", 'data type integer has no default operator class for access method "gin"'),
    "CREATE INDEX ON t USING gin (a jsonb_ops)": ("42804", 'operator class "jsonb_ops" does not accept data type integer'),
    "CREATE INDEX ON t USING hash (m)": ("42704", 'data type money has no default operator class for access method "hash"'),
    "CREATE INDEX ON t USING gin (a int4_ops)": ("42704", 'operator class "int4_ops" does not exist for access method "gin"'),
    "CREATE UNIQUE INDEX ON t USING gin (a)": ("0A000", 'access method "gin" does not support unique indexes'),
    "CREATE INDEX ON t USING brin (a) INCLUDE (j)": ("0A000", 'access method "brin" does not support included columns'),
    "CREATE INDEX ON t USING spgist (a, j)": ("0A000", 'access method "spgist" does not support multicolumn indexes'),
    "CREATE INDEX ON t USING gist (a DESC)": ("0A000", 'access method "gist" does not support ASC/DESC options'),
    "CREATE INDEX ON t USING hash (a NULLS FIRST)": ("0A000", 'access method "hash" does not support NULLS FIRST/LAST options'),
    "CREATE INDEX ON t (a jsonb_path_ops)": ("42704", 'operator class "jsonb_path_ops" does not exist for access method "btree"'),
    "CREATE INDEX i IN CLUSTER c ON t (a)": ("0A000", "IN CLUSTER is not supported"),
    "CREATE DEFAULT INDEX IN CLUSTER c ON t": ("0A000", "IN CLUSTER is not supported"),
    "CREATE INDEX ON ONLY t (a)": ("0A000", "ON ONLY is not supported"),
    "CREATE INDEX ON t (j)": ("42704", 'data type json has no default operator class for access method "btree"'),
    "CREATE INDEX ON v (a)": ("42809", 'cannot create index on relation "v"'),
    "CREATE INDEX ON s (a)": ("55000", 'source "s" is not stored, so it has no rows to look up'),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    columns = (Field("a", INT4), Field("j", JSON), Field("m", Type("money")))
    items = (
        Table(20000, "t", columns, stored=True),
        View(20002, "v", columns),
        Source(20004, "s", columns),
    )
    with pytest.raises(TailgateError) as error:
        create_index(parse(text), Catalog().apply(Change(put=items)))  # type: ignore[arg-type]
    assert (error.value.sqlstate, error.value.message) == REFUSED[text]


def test_names_that_are_too_long_are_cut() -> None:
    long = Table(20000, "t" * 60, (Field("c" * 63, INT4),), stored=True)
    catalog = Catalog().apply(Change(put=(long,)))
    text = f"CREATE INDEX ON {long.name} ({long.columns[0].name})"
    statement = parse(text)
    assert isinstance(statement, CreateIndex)
    first, _ = create_index(statement, catalog)
    assert first is not None
    second, _ = create_index(statement, catalog.apply(Change(put=(first,))))
    assert second is not None
    assert (len(first.name), len(second.name), second.name[-5:]) == (63, 63, "_idx1")
    assert first.name.startswith("t" * 29)
