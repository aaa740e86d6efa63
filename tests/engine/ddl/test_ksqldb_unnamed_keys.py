"""KEY = 'column' of KSQL 4 and 5: declarations with an unnamed key, and queries over them."""

from __future__ import annotations

import pytest

from tailgate.lake.catalog import Catalog, Source
from tailgate.lake.catalog.codec import decode_item, encode_item
from tailgate.lake.errors import TailgateError
from tests.engine.ddl.ksqldb_items import RECORD, creation, declared, derived

CUSTOMERS_SRC = "CREATE STREAM customers_src (id INT, name VARCHAR, status VARCHAR) WITH (kafka_topic = 'c', value_format = 'json')"
REKEY = "CREATE STREAM rekey WITH (partitions = 1, value_format = 'avro') AS SELECT * FROM customers_src PARTITION BY id"
CUSTOMERS = "CREATE TABLE customers WITH (kafka_topic = 'REKEY', value_format = 'avro', KEY = 'ID')"
RATINGS = "CREATE STREAM ratings (user_id INT, stars INT) WITH (kafka_topic = 'r', value_format = 'json')"
ENRICHED = "CREATE STREAM enriched AS SELECT r.stars, c.id, c.status FROM ratings r LEFT JOIN customers c ON r.user_id = c.id"


def catalog(*texts: str) -> Catalog:
    result = Catalog()
    for text in texts:
        result = derived(text, result)[2] if " AS " in text else declared(text, result)
    return result


def test_a_column_that_the_value_lacks_is_read_from_the_key() -> None:
    """Its type is that of the stream which writes the topic; so are the other columns, without the registry."""
    item = catalog(CUSTOMERS_SRC, REKEY, CUSTOMERS).relation("customers")
    assert isinstance(item, Source)
    assert item.ksqldb is not None
    assert [(c.name, str(c.type)) for c in item.columns] == [("id", "integer"), ("name", "text"), ("status", "text"), *RECORD]
    assert (item.key, item.ksqldb.message_key, item.ksqldb.unnamed_key) == ((0,), ("id",), True)
    assert "KEY FORMAT KSQLDB KAFKA (id)" in item.sql
    assert decode_item(encode_item(item)) == item


def test_an_item_derived_from_an_unnamed_key_has_one_too() -> None:
    """All columns are in the value, and none of them has to be selected."""
    view, sink, above = derived(ENRICHED, catalog(CUSTOMERS_SRC, REKEY, CUSTOMERS, RATINGS))
    assert view.ksqldb is not None
    assert (view.ksqldb.message_key, view.ksqldb.unnamed_key) == (("rowkey",), True)
    assert [c.name for c in view.columns] == ["stars", "id", "status", "rowkey", "rowtime", "rowpartition", "rowoffset", "_arrival"]
    assert "c.id AS id" in view.query
    assert "r.user_id AS rowkey" in view.query
    assert sink.message_key == (3,)
    view, _, above = derived("CREATE STREAM unhappy AS SELECT status FROM enriched WHERE stars < 3", above)
    assert [c.name for c in view.columns][:2] == ["status", "rowkey"]
    view, _, above = derived("CREATE STREAM all_columns AS SELECT * FROM unhappy", above)
    assert [c.name for c in view.columns][:2] == ["status", "rowkey"]
    view, _, above = derived("CREATE STREAM selected AS SELECT rowkey AS user_id, status FROM enriched", above)
    assert [c.name for c in view.columns][:3] == ["user_id", "status", "rowkey"]
    with pytest.raises(TailgateError, match="Reserved column name in select: `ROWKEY`"):
        derived("CREATE STREAM refused AS SELECT rowkey, status FROM enriched", above)
    view, _, _ = derived("CREATE STREAM named AS SELECT stars, status FROM enriched PARTITION BY status", above)
    assert view.ksqldb is not None
    assert (view.ksqldb.message_key, view.ksqldb.unnamed_key) == (("status",), False)


def test_a_column_of_the_value_leaves_the_key_as_it_is() -> None:
    """The bytes of the key identify rows. `FORMAT` stays the format of the value."""
    text = "CREATE TABLE t (id INT, name VARCHAR) WITH (kafka_topic = 't', format = 'json', key = 'id')"
    item = catalog(text).relation("t")
    assert isinstance(item, Source)
    assert item.ksqldb is not None
    assert [(c.name, str(c.type)) for c in item.columns] == [("rowkey", "bytea"), ("id", "integer"), ("name", "text"), *RECORD]
    assert (item.key, item.ksqldb.key_format, item.ksqldb.value_format) == ((0,), "KAFKA", "JSON")
    view, _, _ = derived("CREATE TABLE u AS SELECT * FROM t EMIT CHANGES", catalog(text))
    assert [c.name for c in view.columns] == ["id", "name", "rowkey", "rowtime"]


def test_a_join_by_the_column_that_the_key_has() -> None:
    """The text of the left side is compared with the key."""
    text = "CREATE TABLE customers (id INT, name VARCHAR) WITH (kafka_topic = 'c', value_format = 'json', KEY = 'ID')"
    view, _, _ = derived(
        "CREATE STREAM e AS SELECT stars, name FROM ratings r LEFT JOIN customers c ON r.user_id = c.id", catalog(text, RATINGS)
    )
    assert "ON convert_to(CAST(r.user_id AS text), 'UTF8') = c.rowkey" in view.query
    assert [c.name for c in view.columns][:3] == ["stars", "name", "rowkey"]
    with pytest.raises(TailgateError, match=r"Got CAST.*\{STRING\} = C.ID\{INTEGER\}"):
        derived(
            "CREATE STREAM e AS SELECT stars FROM ratings r JOIN customers c ON CAST(r.user_id AS VARCHAR) = c.id", catalog(text, RATINGS)
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CREATE TABLE t (id INT PRIMARY KEY) WITH (kafka_topic = 't', value_format = 'json', key = 'id')",
            "the property KEY and a PRIMARY",
        ),
        ("CREATE STREAM s (a INT) WITH (kafka_topic = 't', value_format = 'json', key = 'b')", "does not exist in the schema: 'B'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        declared(text)
    assert error.value.sqlstate == "22023"


def test_queries_do_not_have_the_property() -> None:
    with pytest.raises(TailgateError, match="property KEY is not supported"):
        derived("CREATE STREAM s WITH (key = 'id') AS SELECT * FROM customers_src", catalog(CUSTOMERS_SRC))
    assert creation(CUSTOMERS).name.name == "customers"
