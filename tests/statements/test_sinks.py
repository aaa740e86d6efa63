"""Sinks over a query: the sink's view is created and dropped with it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from tailgate.lake.catalog import Sink
from tests.statements.conftest import World

INTO = "INTO KAFKA BROKER 'nowhere:1' TOPIC 'out' KEY (item)"
JSON = "FORMAT JSON ENVELOPE UPSERT"


@pytest.fixture
def stock(sql: psycopg.Connection, world: World) -> Iterator[psycopg.Connection]:
    sql.execute("CREATE TABLE stock (item text PRIMARY KEY, n int, meta jsonb)")
    yield sql
    for item in world.lake.catalog().visible:
        if isinstance(item, Sink):
            sql.execute(f"DROP SINK {item.name}")


def test_its_view_goes_with_it(stock: psycopg.Connection, world: World) -> None:
    stock.execute(f"CREATE SINK shelf FROM (SELECT item, n * 2 AS n FROM stock WHERE n > 0) {INTO} {JSON}")
    stock.execute("INSERT INTO stock VALUES ('pen', 4), ('cup', 0)")
    assert stock.execute("SELECT * FROM shelf_query").fetchall() == [("pen", 8)]
    sink, view = world.lake.catalog().find("shelf"), world.lake.catalog().find("shelf_query")
    assert isinstance(sink, Sink)
    assert view is not None
    assert (sink.query_view, sink.depends[0], view.key) == (view.id, view.id, (0,))
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        stock.execute("DROP TABLE stock")
    assert (error.value.diag.message_detail or "").splitlines()[0] == "sink shelf depends on table stock"
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        stock.execute("DROP MATERIALIZED VIEW shelf_query")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot replace materialized view shelf_query because sink shelf"):
        stock.execute("CREATE OR REPLACE MATERIALIZED VIEW shelf_query AS SELECT item, n * 3 AS n FROM stock")
    stock.execute("ALTER TABLE stock RENAME TO goods")
    ((_, created),) = stock.execute("SHOW CREATE SINK shelf").fetchall()
    assert "FROM goods AS stock WHERE" in created
    stock.execute("DROP SINK shelf")
    assert [world.lake.catalog().find(n) for n in ("shelf", "shelf_query", "shelf_query_errors")] == [None] * 3
    stock.execute("ALTER TABLE goods RENAME TO stock")


def test_readers_of_its_view_prevent_drop(stock: psycopg.Connection) -> None:
    stock.execute(f"CREATE SINK shelf FROM (SELECT item FROM stock) {INTO} {JSON}")
    stock.execute("CREATE VIEW above AS SELECT * FROM shelf_query")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="cannot drop sink shelf"):
        stock.execute("DROP SINK shelf")
    stock.execute("DROP VIEW above")
    stock.execute("DROP MATERIALIZED VIEW shelf_query CASCADE")
    assert stock.execute("SELECT count(*) FROM tailgate.sinks").fetchone() == (0,)


def test_what_is_refused(stock: psycopg.Connection) -> None:
    stock.execute("CREATE TABLE taken_query (i int)")
    for sql, message, at in (
        (f"CREATE SINK shelf FROM (SELECT none FROM stock) {INTO} {JSON}", 'column "none" does not exist', "none"),
        (f"CREATE SINK shelf FROM (SELECT item, random() FROM stock) {INTO} {JSON}", "random", "random"),
        (f"CREATE SINK taken FROM (SELECT item FROM stock) {INTO} {JSON}", 'relation "taken_query" already exists', None),
        (f"CREATE SINK shelf FROM (SELECT item || '' AS item FROM stock) {INTO} {JSON}", "could not be validated as unique", None),
        (f"CREATE SINK shelf FROM stock {INTO} WITH (foo = 1) {JSON}", 'option "foo" of a sink is not supported', None),
        (f"CREATE SINK shelf FROM stock {INTO} WITH (partition_count = 'x') {JSON}", "is a whole number", None),
        (f"CREATE SINK shelf FROM stock {INTO} WITH (compression_type = 'brotli') {JSON}", "is one of none, gzip", None),
        (f"CREATE SINK shelf FROM stock {INTO} HEADERS no {JSON}", 'column "no" named in HEADERS does not exist', None),
        (f"CREATE SINK shelf FROM stock {INTO} HEADERS n {JSON}", 'column "n" named in HEADERS is of type integer, not jsonb', None),
    ):
        with pytest.raises(psycopg.Error, match=message) as error:
            stock.execute(sql)
        if at is not None:
            assert int(error.value.diag.statement_position or 0) - 1 == sql.index(at)
    assert stock.execute("SELECT name FROM (SELECT 'shelf_query' AS name) s WHERE to_regclass(name) IS NOT NULL").fetchall() == []


def test_schemas_are_explained(stock: psycopg.Connection) -> None:
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://nowhere:1'"
    options = f"{INTO} WITH (avro_value_fullname = 'shop.shelf') {avro}"
    create = f"CREATE SINK shelf FROM (SELECT item, n + 1 AS n FROM stock) {options} ENVELOPE UPSERT"

    def explained(what: str) -> dict[str, object]:
        return json.loads("\n".join(line for (line,) in stock.execute(f"EXPLAIN {what}").fetchall()))

    item, n = {"name": "item", "type": "string"}, {"name": "n", "type": ["null", "int"]}
    value = {"type": "record", "name": "shelf", "namespace": "shop", "fields": [item, n]}
    assert explained(f"SCHEMA FOR {create}") == value
    key = {"type": "record", "name": "row", "fields": [item]}
    assert explained(f"KEY SCHEMA AS JSON FOR {create}") == key
    assert stock.execute("SELECT count(*) FROM tailgate.sinks").fetchone() == (0,)
    stock.execute(create)
    assert (explained("VALUE SCHEMA FOR SINK shelf"), explained("KEY SCHEMA FOR SINK shelf")) == (value, key)
    proto = create.replace("AVRO", "PROTOBUF").replace("shelf FROM", "other FROM")
    assert ("  string item = 1;",) in stock.execute(f"EXPLAIN VALUE SCHEMA FOR {proto}").fetchall()
    with pytest.raises(psycopg.errors.WrongObjectType, match="FORMAT JSON has no schema"):
        stock.execute(f"EXPLAIN SCHEMA FOR CREATE SINK other FROM stock {INTO} {JSON}")
    with pytest.raises(psycopg.errors.UndefinedTable) as error:
        stock.execute(f"EXPLAIN SCHEMA FOR CREATE SINK other FROM nothing {INTO} {avro}")
    assert error.value.diag.statement_position == str(len("EXPLAIN SCHEMA FOR CREATE SINK other FROM n"))
