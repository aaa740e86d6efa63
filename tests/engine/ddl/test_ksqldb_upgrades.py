"""CREATE OR REPLACE of streams and tables of ksqlDB, and ALTER … ADD COLUMN."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailgate.engine.ddl.ksqldb import filled_again, upgraded, upgraded_view, with_columns
from tailgate.engine.plan.views import nodes
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Sink, Source
from tailgate.lake.catalog.codec import decode_item, encode_item
from tailgate.lake.catalog.formats import Failure, Ksqldb
from tailgate.lake.errors import TailgateError
from tailgate.lake.readers.failed import failed
from tailgate.sql.definitions import bind_definition
from tailgate.sql.ksqldb.queries.scopes import column_types, hidden_columns
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem
from tailgate.sql.statements import AlterKsqldbItem, CreateKsqldbItem, parse
from tests.engine.ddl.ksqldb_items import ENDPOINTS, READINGS, RECORD, Schemas, connected, declared, derived

TABLE = "CREATE TABLE areas (name VARCHAR, area VARCHAR PRIMARY KEY) WITH (kafka_topic = 'a', value_format = 'delimited')"
HIGH = "CREATE STREAM high AS SELECT sensor, reading FROM readings WHERE reading > 1 EMIT CHANGES"


def replaced(text: str, catalog: Catalog) -> Catalog:
    """Returns the catalog after CREATE OR REPLACE or ALTER of an item that exists."""
    parsed = parse(text, "ksqldb")
    if isinstance(parsed, AlterKsqldbItem):
        item, extended, shown = with_columns(parsed.statement, catalog)
        put = upgraded(extended, shown, item, catalog, Schemas(), ENDPOINTS.within(catalog))  # type: ignore[arg-type]
        return catalog.apply(Change(put=put))
    assert isinstance(parsed, CreateKsqldbItem)
    old, statement = catalog.relation(parsed.name), parsed.statement
    if isinstance(statement, CreateItem):
        put = upgraded(statement, text, old, catalog, Schemas(), ENDPOINTS)  # type: ignore[arg-type]
    else:
        assert isinstance(statement, CreateAs)
        put = upgraded_view(statement, text, old, catalog, Schemas(), ENDPOINTS)
    return catalog.apply(Change(put=put))


def columns(name: str, catalog: Catalog) -> list[str]:
    item = catalog.relation(name)
    return [f"{c.name} {c.type}" for c in item.columns if c.name not in hidden_columns(item)]


def test_a_declared_stream_keeps_its_kafka_and_its_registry() -> None:
    """It depends on no connection that was created after it, and on that which it was created with, under another name, too."""
    text = "CREATE STREAM s (k VARCHAR KEY, n INT) WITH (kafka_topic = 's', value_format = 'avro')"
    before, after = connected(declared(text)), declared(text, connected())
    kafka = after.find("ksqldb_kafka")
    renamed = after.apply(Change(put=(replace(kafka, name="former"),)))  # type: ignore[type-var]
    for catalog, brokers, topic in (
        (before, "kafka:9092", "KAFKA BROKER 'kafka:9092'"),
        (after, "far:9093", "KAFKA CONNECTION public.ksqldb_kafka"),
        (renamed, "far:9093", "KAFKA CONNECTION public.former"),
    ):
        old, new = (of.relation("s") for of in (catalog, replaced("ALTER STREAM s ADD COLUMN m INT", catalog)))
        assert isinstance(old, Source) and isinstance(new, Source)
        assert isinstance(old.value_format, Ksqldb) and isinstance(new.value_format, Ksqldb)
        assert (new.brokers, new.kafka, new.depends) == (brokers, old.kafka, old.depends)
        assert (new.value_format.registry, new.value_format.access) == (old.value_format.registry, old.value_format.access)
        assert topic in new.sql


def test_a_declared_stream_gets_columns_at_the_end() -> None:
    catalog = declared(READINGS)
    view, _, catalog = derived("CREATE STREAM copy AS SELECT * FROM readings EMIT CHANGES", catalog)
    source = catalog.relation("readings")
    text = (
        "CREATE OR REPLACE STREAM readings (sensor VARCHAR KEY, area VARCHAR, reading INT, tags ARRAY<INT>)"
        " WITH (kafka_topic = 'r', value_format = 'json')"
    )
    catalog = replaced(text, catalog)
    new = catalog.relation("readings")
    assert isinstance(new, Source) and new.ksqldb is not None
    assert (new.id, new.channel, new.ksqldb.statement) == (source.id, source.channel if isinstance(source, Source) else "", text)
    assert columns("readings", catalog) == ["sensor text", "area text", "reading integer", "tags jsonb"]
    assert new.columns[: len(source.columns)] == source.columns
    assert column_types(new)["tags"].name == "array"
    assert decode_item(encode_item(new)) == new
    assert bind_definition(catalog[view.id], catalog).columns == view.columns
    catalog = replaced("ALTER STREAM readings ADD COLUMN more DOUBLE, ADD last DATE", catalog)
    assert columns("readings", catalog)[3:] == ["tags jsonb", "more double precision", "last date"]
    again = catalog.relation("readings")
    assert isinstance(again, Source) and again.ksqldb is not None
    assert again.ksqldb.statement == (
        "CREATE STREAM READINGS (SENSOR VARCHAR KEY, AREA VARCHAR, READING INT, TAGS ARRAY<INT>, MORE DOUBLE, LAST DATE)"
        " WITH (KAFKA_TOPIC='r', VALUE_FORMAT='json');"
    )
    assert replaced(again.ksqldb.statement.replace("CREATE", "CREATE OR REPLACE"), catalog).relation("readings").columns == again.columns


def test_a_declared_table_gets_columns() -> None:
    catalog = replaced("ALTER TABLE areas ADD COLUMN size DECIMAL(4, 2)", declared(TABLE))
    assert (columns("areas", catalog), catalog.relation("areas").key) == (["name text", "area text", "size numeric(4,2)"], (1,))
    catalog = replaced("ALTER TABLE areas ADD COLUMN m MAP<VARCHAR, INT>", declared(TABLE.replace("delimited", "json")))
    assert columns("areas", catalog)[-1] == "m jsonb"


def test_columns_of_the_registry_are_kept() -> None:
    catalog = declared("CREATE STREAM calls WITH (kafka_topic = 'calls', value_format = 'avro')")
    before = columns("calls", catalog)
    assert columns("calls", replaced("ALTER STREAM calls ADD COLUMN n INT", catalog)) == [*before, "n integer"]


def test_a_derived_stream_continues_with_another_query() -> None:
    view, sink, catalog = derived(HIGH, declared(READINGS))
    above, _, catalog = derived("CREATE STREAM above AS SELECT * FROM high EMIT CHANGES", catalog)
    catalog = replaced("CREATE OR REPLACE STREAM high AS SELECT sensor, reading, area FROM readings WHERE reading > 2", catalog)
    new = catalog[view.id]
    assert isinstance(new, MaterializedView) and new.ksqldb is not None and view.ksqldb is not None
    assert (new.ksqldb.query, new.ksqldb.number) == (view.ksqldb.query, view.ksqldb.number)
    assert new.columns[: len(view.columns)] == view.columns
    assert columns("high", catalog) == ["sensor text", "reading integer", "area text"]
    assert catalog.expect(Sink, sink.id).known_columns == {view.id: len(new.columns)}
    assert bind_definition(catalog[above.id], catalog).columns == above.columns
    assert bind_definition(new, catalog).columns == new.columns
    again, _, _ = derived("CREATE STREAM second AS SELECT * FROM high EMIT CHANGES", catalog)
    assert [c.name for c in again.columns][:3] == ["sensor", "reading", "area"]
    catalog = replaced("CREATE OR REPLACE STREAM high AS SELECT sensor, reading, area FROM readings", catalog)
    assert "> 2" not in catalog[view.id].query
    assert [c.name for c in catalog[view.id].columns] == [c.name for c in new.columns]


def test_a_derived_table_keeps_its_query() -> None:
    text = "CREATE OR REPLACE TABLE n AS SELECT sensor, COUNT(*) AS n FROM readings GROUP BY sensor"
    view, _, catalog = derived(text, declared(READINGS))
    catalog = replaced(text + " EMIT CHANGES", catalog)
    new = catalog[view.id]
    assert isinstance(new, MaterializedView) and new.ksqldb is not None
    assert new.ksqldb.statement == text + " EMIT CHANGES"


def test_the_same_statement_keeps_the_translation_of_an_earlier_version() -> None:
    text = "TABLE n AS SELECT sensor, COUNT(*) AS n FROM readings GROUP BY sensor"
    view, _, catalog = derived(f"CREATE {text} EMIT CHANGES", declared(READINGS))
    earlier = replace(view, query=view.query + " ", sql=view.sql + " ")
    catalog = catalog.apply(Change(put=(earlier,)))
    new = replaced(f"create or replace {text};", catalog).expect(MaterializedView, view.id)
    assert (new.query, new.sql) == (earlier.query, earlier.sql)
    with pytest.raises(TailgateError, match="with another query"):
        replaced(f"CREATE OR REPLACE {text.replace('COUNT(*)', 'COUNT(reading)')}", catalog)


GROUPED = "TABLE n AS SELECT sensor, COUNT(*) AS n, MAX(reading) AS m FROM readings {} GROUP BY sensor EMIT CHANGES"


def with_nodes(name: str, catalog: Catalog) -> Catalog:
    """Returns the catalog with the operators of a view, as the engine records them."""
    view = catalog.expect(MaterializedView, catalog.relation(name).id)
    return catalog.apply(Change(put=(nodes.with_new_nodes(view, catalog, Streams(catalog)(view)),)))


def test_an_aggregation_of_a_stream_gets_another_filter() -> None:
    """The operator and its state stay. The other parts of the query do not change."""
    _, _, catalog = derived("CREATE " + GROUPED.format("WHERE reading > 1"), declared(READINGS))
    catalog = with_nodes("n", catalog)
    old = catalog.expect(MaterializedView, catalog.relation("n").id)
    for condition in ("WHERE reading > 2 AND area <> 'x'", ""):
        catalog = replaced("CREATE OR REPLACE " + GROUPED.format(condition), catalog)
        new = catalog.expect(MaterializedView, old.id)
        assert [node for _, node in new.nodes] == [node for _, node in old.nodes]
        assert nodes.matches_record(new, catalog, Streams(catalog)(new))
        assert new.columns == old.columns
    for other in (
        GROUPED.replace("EMIT", "HAVING COUNT(*) > 1 EMIT").format(""),
        GROUPED.replace("MAX", "MIN").format(""),
        GROUPED.replace("readings {}", "readings WINDOW TUMBLING (SIZE 1 SECOND)"),
    ):
        with pytest.raises(TailgateError):
            replaced("CREATE OR REPLACE " + other, catalog)
    _, _, catalog = derived("CREATE " + GROUPED.format("").replace("TABLE n", "TABLE o"), catalog)
    other_view = catalog.expect(MaterializedView, catalog.relation("o").id)
    catalog = catalog.apply(Change(put=(replace(other_view, nodes=new.nodes),)))
    with pytest.raises(TailgateError, match="with another query"):
        replaced("CREATE OR REPLACE " + GROUPED.format("WHERE reading > 3"), catalog)


def test_a_table_that_streams_join_keeps_its_filter() -> None:
    """Regression: the joined stream was filled again, with other rows."""
    _, _, catalog = derived("CREATE " + GROUPED.format("WHERE reading > 1"), declared(READINGS))
    catalog = with_nodes("n", catalog)
    query = "SELECT r.sensor, m FROM readings r JOIN n ON r.sensor = n.sensor EMIT CHANGES"
    _, _, catalog = derived(f"CREATE STREAM joined AS {query}", catalog)
    with pytest.raises(TailgateError, match='of a table below "joined"') as error:
        replaced("CREATE OR REPLACE " + GROUPED.format(""), catalog)
    assert error.value.sqlstate == "0A000"


def test_a_failed_view_is_not_replaced() -> None:
    """Regression: the statement succeeded, and the view did not run again."""
    view, _, catalog = derived(HIGH, declared(READINGS))
    catalog = catalog.apply(Change(put=(failed(replace(view, ready=True), Failure(1, "a defect")),)))
    with pytest.raises(TailgateError, match="a defect") as error:
        replaced(HIGH.replace("CREATE", "CREATE OR REPLACE"), catalog)
    assert (error.value.sqlstate, error.value.hint) == ("55000", "Drop it, and create it again.")


def test_tables_of_earlier_versions_have_no_pseudo_columns() -> None:
    """ALTER adds them to a declared table, as its last columns. A derived one continues without ROWTIME."""
    text = "TABLE n AS SELECT sensor, COUNT(*) AS n FROM readings GROUP BY sensor EMIT CHANGES"
    _, _, catalog = derived(f"CREATE {text}", declared(TABLE, declared(READINGS)))
    table, view = catalog.expect(Source, catalog.relation("areas").id), catalog.expect(MaterializedView, catalog.relation("n").id)
    included = " INCLUDE PARTITION AS rowpartition, OFFSET AS rowoffset, TIMESTAMP AS rowtime"
    assert included in table.sql
    table = replace(table, include=(), columns=table.columns[:-3], sql=table.sql.replace(included, ""))
    view = replace(view, columns=view.columns[:-1], query=view.query.replace(", max(rowtime) AS rowtime", ""))
    catalog = catalog.apply(Change(put=(table, view)))
    assert bind_definition(view, catalog).columns == view.columns
    query = "SELECT a.area, name, n FROM areas a JOIN n ON a.area = n.sensor"
    above, _, _ = derived(f"CREATE TABLE above AS {query} EMIT CHANGES", catalog)
    assert [c.name for c in above.columns] == ["area", "name", "n"]
    changed = replaced("ALTER TABLE areas ADD COLUMN size INT", catalog).relation("areas")
    assert [c.name for c in changed.columns] == ["name", "area", "size", *(name for name, _ in RECORD)]
    with pytest.raises(TailgateError) as error:
        replaced(f"CREATE OR REPLACE {text}", catalog)
    assert (error.value.sqlstate, error.value.hint) == ("0A000", "DROP TABLE N, and create it again.")


def test_a_table_of_tables_gets_another_query() -> None:
    """The table and its readers are filled again. New columns follow those that exist."""
    _, _, catalog = derived("CREATE TABLE named AS SELECT area, name FROM areas WHERE name > 'a' EMIT CHANGES", declared(TABLE))
    _, _, catalog = derived("CREATE TABLE above AS SELECT * FROM named EMIT CHANGES", catalog)
    query = "CREATE OR REPLACE TABLE named AS SELECT area, name, LEN(name) AS n FROM areas EMIT CHANGES"
    after = replaced(query, catalog)
    assert [c.name for c in after.relation("named").columns] == ["area", "name", "rowtime", "n"]
    assert [view.name for view in filled_again(tuple(after.items.values()), catalog)] == ["named", "above"]
    assert filled_again(tuple(catalog.items.values()), catalog) == ()
    _, _, catalog = derived("CREATE TABLE n AS SELECT name, COUNT(*) AS n FROM areas GROUP BY name EMIT CHANGES", catalog)
    text = "CREATE OR REPLACE TABLE n AS SELECT name, COUNT(*) AS n FROM areas GROUP BY name HAVING COUNT(*) > 1 EMIT CHANGES"
    assert "HAVING" in replaced(text, catalog).expect(MaterializedView, catalog.relation("n").id).query


BEFORE = "`SENSOR` STRING KEY, `AREA` STRING, `READING` INTEGER"
AFTER, OLD = "`SENSOR` STRING KEY, `READING` INTEGER, `AREA` STRING", "`AREA` STRING, `READING` INTEGER"
UPGRADE = "Cannot upgrade data source: DataSource '`READINGS`' has"
CHANGED = "changed, missing or reordered"
FORMATS = "(key format KAFKA, value format JSON)"
COLUMNS = "CREATE OR REPLACE STREAM readings (sensor VARCHAR KEY, area VARCHAR, reading INT"
WITH = "WITH (kafka_topic = 'r', value_format = 'json')"


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        (
            f"CREATE OR REPLACE STREAM readings (sensor VARCHAR KEY, reading INT, area VARCHAR) {WITH}",
            "42P16",
            f"{UPGRADE} schema = {BEFORE} which is not upgradeable to {AFTER}. (The following columns are {CHANGED}: [{OLD}])",
        ),
        (
            f"{COLUMNS}, k INT KEY) WITH (kafka_topic = 'r', format = 'json')",
            "42P16",
            "not upgradeable",
        ),
        (
            f"{COLUMNS}) WITH (kafka_topic = 'x', value_format = 'json')",
            "42P16",
            f"{UPGRADE} topic = r {FORMATS} which is not upgradeable to x {FORMATS}",
        ),
        (
            f"{COLUMNS}, at BIGINT) WITH (kafka_topic = 'r', value_format = 'json', timestamp = 'at')",
            "42P16",
            f"{UPGRADE} timestamp or header columns = none which is not upgradeable to `AT`",
        ),
        (
            "CREATE OR REPLACE TABLE readings (sensor VARCHAR PRIMARY KEY, n INT) WITH (kafka_topic = 'r', value_format = 'json')",
            "42P07",
            "Cannot add table 'READINGS': A stream with the same name already exists",
        ),
        (f"CREATE OR REPLACE SOURCE STREAM readings (sensor VARCHAR KEY, n INT) {WITH}", "0A000", "is not supported on source streams."),
        (f"CREATE OR REPLACE STREAM high (sensor VARCHAR KEY, n INT) {WITH}", "0A000", "maintained by a query"),
        ("CREATE OR REPLACE STREAM readings AS SELECT * FROM high", "0A000", "of a declared stream"),
        ("CREATE OR REPLACE STREAM high AS SELECT sensor, area FROM readings", "42P16", "missing or reordered: [`READING` INTEGER]"),
        ("CREATE OR REPLACE STREAM high AS SELECT sensor, reading FROM others", "0A000", "Values differ: r vs. o"),
        (
            "CREATE OR REPLACE STREAM high WITH (value_format = 'avro') AS SELECT sensor, reading FROM readings",
            "42P16",
            "value format AVRO",
        ),
        ("CREATE OR REPLACE TABLE high AS SELECT sensor, COUNT(*) FROM readings GROUP BY sensor", "42P07", "A stream with the same name"),
        ("CREATE OR REPLACE TABLE n AS SELECT sensor, SUM(reading) AS n FROM readings GROUP BY sensor", "42P16", "`N` BIGINT"),
        (
            "CREATE OR REPLACE TABLE n AS SELECT sensor, COUNT(area) AS n FROM readings GROUP BY sensor",
            "0A000",
            "of a table",
        ),
        ("ALTER STREAM nothing ADD COLUMN n INT", "42P01", "Source NOTHING does not exist."),
        ("ALTER TABLE readings ADD COLUMN n INT", "42809", "data source type is STREAM, but statement was ALTER TABLE"),
        ("ALTER STREAM high ADD COLUMN n INT", "0A000", "ALTER command is not supported for CREATE ... AS"),
        ("ALTER STREAM fixed ADD COLUMN n INT", "0A000", "Cannot alter stream 'FIXED': ALTER operations"),
        ("ALTER STREAM readings ADD COLUMN area INT", "42P16", "Cannot add column `AREA` to schema."),
        ("ALTER STREAM readings ADD COLUMN k INT KEY", "42P16", "ALTER cannot add the key or header column K"),
    ],
)
def test_wrong_upgrades(text: str, sqlstate: str, message: str) -> None:
    catalog = declared(
        "CREATE STREAM others (sensor VARCHAR KEY, reading INT) WITH (kafka_topic = 'o', value_format = 'json')", declared(READINGS)
    )
    catalog = declared(f"CREATE SOURCE STREAM fixed (n INT) {WITH}", catalog)
    _, _, catalog = derived(HIGH, catalog)
    _, _, catalog = derived("CREATE TABLE n AS SELECT sensor, COUNT(*) AS n FROM readings GROUP BY sensor EMIT CHANGES", catalog)
    with pytest.raises(TailgateError) as error:
        replaced(text, catalog)
    assert (error.value.sqlstate, message in error.value.message or error.value.message) == (sqlstate, True)
