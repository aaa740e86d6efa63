"""ALTER SOURCE … REFRESH SCHEMA in a whole system.

Existing views continue, and new views have the new columns.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake.folder import Lake
from tailgate.sinks.main import Sinks
from testing.engine_process import EngineProcess, rows, until
from tests.engine.ddl.topics import Registered, Topic, field
from tests.lake.relations import table_path
from tests.tables.world import Served

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

Row = tuple[Any, ...]


class World:
    """An engine, a gateway and sinks over one lake, with a separate Kafka."""

    def __init__(self, folder: Path, kafka: Kafka, registry: Registry) -> None:
        self.kafka, self.registry = kafka, registry
        self.engine = EngineProcess(folder / "lake")
        self.engine.start()
        self.lake = Lake(folder / "lake")
        self.served = Served(self.lake)
        self.sinks = Sinks(self.lake)
        threading.Thread(target=self.sinks.follow, daemon=True).start()
        self.producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})

    def close(self) -> None:
        self.sinks.stop()
        self.served.close()
        self.engine.stop()

    def send(self, topic: Topic, schema: Registered | None, *, key: Any = None, **values: Any) -> None:
        message = topic.message(schema, key=key, **values)
        key_bytes, value = (None if message[f] is None else base64.b64decode(message[f]) for f in ("key_b64", "value_b64"))
        self.producer.produce(topic.name, value, key_bytes)
        self.producer.flush()

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.served.dsn, autocommit=True)

    def select(self, sql: str) -> list[Row]:
        with self.connect() as connection:
            try:
                return connection.execute(sql).fetchall()
            except psycopg.errors.ObjectNotInPrerequisiteState as e:  # the view is being backfilled
                return [(str(e),)]

    def shows(self, sql: str, expected: list[Row]) -> None:
        until(lambda: self.select(sql) == expected, 30)


@pytest.fixture(scope="module")
def world(module_kafka: Kafka, registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("refresh"), module_kafka, registry)
    yield world
    world.close()


def row(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the fields of a Debezium envelope."""
    of = {"type": "record", "name": "Value", "namespace": "db", "fields": list(fields)}
    source = {"type": "record", "name": "Source", "namespace": "db", "fields": [field("lsn", ["null", "long"], default=None)]}
    images = [field("before", ["null", of], default=None), field("after", ["null", "db.Value"], default=None)]
    return [*images, field("source", source), field("op", "string")]


def test_everything_continues(world: World) -> None:
    topic = Topic(world.registry, "refreshed")
    world.kafka.create_topic("refreshed")
    topic.register_key(field("id", "int"))
    first = topic.register(*row(field("id", "int"), field("name", "string")))
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{world.registry.url}'"
    brokers = f"KAFKA BROKER '{world.kafka.address}'"

    def send(schema: Registered, lsn: int, id: int, op: str = "c", **after: Any) -> None:
        world.send(topic, schema, key={"id": id}, before=None, after={"id": id, **after}, source={"lsn": lsn}, op=op)

    with world.connect() as sql:
        sql.execute("CREATE TABLE tiers (name text PRIMARY KEY, tier int)")
        sql.execute("INSERT INTO tiers VALUES ('a', 1), ('b', 2)")
        sql.execute(f"CREATE SOURCE users FROM {brokers} TOPIC 'refreshed' {avro} ENVELOPE DEBEZIUM")
        sql.execute("CREATE MATERIALIZED VIEW everyone AS SELECT * FROM users")
        sql.execute("CREATE MATERIALIZED VIEW tiered AS SELECT * FROM users NATURAL JOIN tiers")
        sql.execute("CREATE MATERIALIZED VIEW last AS SELECT DISTINCT ON (name) * FROM users ORDER BY name, id DESC")
        sql.execute("CREATE VIEW plain AS SELECT * FROM users")
        sql.execute(f"CREATE SINK users_out FROM users INTO {brokers} TOPIC 'users-out' KEY (id) FORMAT JSON ENVELOPE UPSERT")
    send(first, 1, 1, name="a")
    send(first, 2, 2, name="b")
    world.shows("SELECT * FROM users ORDER BY id", [(1, "a"), (2, "b")])
    world.shows("SELECT * FROM tiered ORDER BY id", [("a", 1, 1), ("b", 2, 2)])
    until(lambda: (table_path(world.lake, world.lake.catalog().relation("users").id) / "_delta_log").exists())
    before = world.lake.log.newest()
    assert before is not None

    following = world.connect()
    tail = following.cursor().stream("TAIL users")
    assert sorted(r[2:] for r in (next(tail), next(tail))) == [(1, "a"), (2, "b")]

    second = topic.register(
        *row(
            field("id", "int"),
            field("tier", "int"),
            field("name", "string"),
            field("at", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}),
        )
    )
    notices: list[str] = []
    with world.connect() as sql:
        sql.add_notice_handler(lambda d: notices.append(d.message_primary or ""))
        sql.execute("CREATE ROLE bob")
        sql.execute("SET ROLE bob")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner of table users"):
            sql.execute("ALTER SOURCE users REFRESH SCHEMA")
        sql.execute("RESET ROLE")
        sql.execute("DROP ROLE bob")
        assert sql.execute("ALTER SOURCE users REFRESH SCHEMA").statusmessage == "ALTER SOURCE"
        assert notices == ['column "tier" of type integer was added', 'column "at" of type timestamp without time zone was added']
        assert sql.execute("SELECT * FROM users ORDER BY id").fetchall() == [(1, "a", None, None), (2, "b", None, None)]
        sql.execute("CREATE MATERIALIZED VIEW later AS SELECT * FROM users")
        sql.execute("ALTER SOURCE users REFRESH SCHEMA")
        assert notices[2:] == ['source "users" has all columns of its schema']
    send(second, 3, 2, "u", name="b", tier=7, at=0)
    send(second, 4, 3, name="a", tier=9, at=0)
    assert next(tail)[2:] == (3, "a")  # the tail has two columns, so the second row is unchanged for it
    following.close()

    def holds() -> None:
        world.shows("SELECT id, name, tier FROM users ORDER BY id", [(1, "a", None), (2, "b", 7), (3, "a", 9)])
        world.shows("SELECT * FROM everyone ORDER BY id", [(1, "a"), (2, "b"), (3, "a")])
        world.shows("SELECT * FROM plain ORDER BY id", [(1, "a"), (2, "b"), (3, "a")])
        world.shows("SELECT * FROM tiered ORDER BY id", [("a", 1, 1), ("b", 2, 2), ("a", 3, 1)])
        world.shows("SELECT * FROM last ORDER BY id", [(2, "b"), (3, "a")])
        world.shows("SELECT id, tier FROM later ORDER BY id", [(1, None), (2, 7), (3, 9)])

    holds()
    assert world.select(f"SELECT * FROM users ORDER BY id AS OF {before.time}")[0][:2] == (1, "a")
    path = str(table_path(world.lake, world.lake.catalog().relation("users").id))
    until(lambda: sorted(r.get("tier") or 0 for r in DeltaTable(path).to_pyarrow_table().to_pylist()) == [0, 7, 9])

    world.engine.stop()
    world.engine.start()
    holds()
    send(second, 5, 1, "u", name="a", tier=1, at=0)
    send(first, 6, 4, name="b")
    world.shows("SELECT id, tier FROM users ORDER BY id", [(1, 1), (2, 7), (3, 9), (4, None)])
    world.shows("SELECT * FROM tiered ORDER BY id", [("a", 1, 1), ("b", 2, 2), ("a", 3, 1), ("b", 4, 2)])
    world.shows("SELECT count(*) FROM later WHERE tier IS NULL", [(1,)])
    with world.connect() as sql:  # the view is created again, with the current names of its inputs
        sql.execute("CREATE OR REPLACE VIEW plain AS SELECT * FROM users")
        assert sql.execute("SELECT tier FROM plain ORDER BY id").fetchall() == [(1,), (7,), (9,), (None,)]
        sql.execute("ALTER SOURCE users RENAME TO people")
        sql.execute("ALTER TABLE tiers RENAME TO levels")
    world.shows("SELECT * FROM everyone ORDER BY id DESC LIMIT 1", [(4, "b")])
    sent = [
        json.loads(r.rpartition("value: ")[2].partition(", partition")[0])
        for (r,) in world.select("PRINT 'users-out' FROM BEGINNING LIMIT 20")
    ]
    assert sent == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "a"}, {"id": 4, "name": "b"}]


def without_stock(world: World, table: str, source: str, view: str) -> Topic:
    """Creates a view that finds items without a match by a column that is never NULL.

    Returns the source's topic. Of the two items, only the pen has a match.
    """
    topic = Topic(world.registry, source)
    world.kafka.create_topic(source)
    first = topic.register(field("price", "int"), field("stock", "int"))
    formats = f"KEY FORMAT TEXT VALUE FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{world.registry.url}'"
    with world.connect() as sql:
        sql.execute(f"CREATE TABLE {table} (item text PRIMARY KEY)")
        sql.execute(f"INSERT INTO {table} VALUES ('pen'), ('cup')")
        sql.execute(f"CREATE SOURCE {source} FROM KAFKA BROKER '{world.kafka.address}' TOPIC '{source}' {formats} ENVELOPE UPSERT")
        sql.execute(f"CREATE MATERIALIZED VIEW {view} AS SELECT item FROM {table} LEFT JOIN {source} ON key0 = item WHERE stock IS NULL")
    world.send(topic, first, key="pen", price=1, stock=5)
    world.shows(f"SELECT * FROM {view}", [("cup",)])
    return topic


def test_a_view_with_another_plan(world: World) -> None:
    """The plan uses a column that is never NULL to detect matches.

    The new schema lacks this column.
    """
    topic = without_stock(world, "items", "stocked", "missing")
    second, notices = topic.register(field("price", "int")), list[str]()
    with world.connect() as sql:
        sql.add_notice_handler(lambda d: notices.append(d.message_primary or ""))
        sql.execute("ALTER SOURCE stocked REFRESH SCHEMA")
        assert notices[1:] == ['materialized view "missing" is filled again']
    world.send(topic, second, key="pen", price=2)
    world.shows("SELECT * FROM missing ORDER BY item", [("cup",), ("pen",)])
    assert rows(world.lake, "stocked") == {("pen", 2, None): 1}


def test_killed_while_a_view_is_filled_again(world: World) -> None:
    topic = without_stock(world, "wanted", "refilled", "lacking")
    second = topic.register(field("price", "int"))
    world.engine.stop()
    world.engine.start(crash="fill.piece:1")
    until(world.engine._answers)
    with world.connect() as sql, suppress(psycopg.Error):
        sql.execute("ALTER SOURCE refilled REFRESH SCHEMA")
    world.engine.died()
    assert "being filled again" in str(world.select("SELECT * FROM lacking"))
    world.engine.start()
    world.shows("SELECT * FROM lacking", [("cup",)])
    world.send(topic, second, key="pen", price=2)
    world.shows("SELECT * FROM lacking ORDER BY item", [("cup",), ("pen",)])


KILLED_AT = (  # crash point, and whether the columns exist afterwards
    ("entry.half", False),
    ("entry.linked", True),
    ("catalog.entry", True),
)


def test_killed_in_the_middle(world: World) -> None:
    """The columns exist or not.

    Rows from before and after are there in both cases, in the views too.
    """
    topic = Topic(world.registry, "killed")
    world.kafka.create_topic("killed")
    topic.register_key(field("id", "int"))
    fields = [field("id", "int"), field("name", "string")]
    schema = topic.register(*row(*fields))
    avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{world.registry.url}'"
    with world.connect() as sql:
        sql.execute(f"CREATE SOURCE killed FROM KAFKA BROKER '{world.kafka.address}' TOPIC 'killed' {avro} ENVELOPE DEBEZIUM")
        sql.execute("CREATE MATERIALIZED VIEW survivors AS SELECT * FROM killed")
        sql.execute("CREATE MATERIALIZED VIEW names AS SELECT name, count(*) AS n FROM killed GROUP BY name")
    added_columns: list[str] = []  # columns that were added to the source
    sent: list[dict[str, int | None]] = []

    def send() -> None:
        """Sends a new row, and an update of the first one."""
        count = len(sent)
        for id in {0, count}:
            values = {f["name"]: 10 * count + id for f in fields[2:]}
            source, op = {"lsn": 1 + 2 * count + (id > 0)}, "c" if id == count else "u"
            world.send(topic, schema, key={"id": id}, before=None, after={"id": id, "name": "a", **values}, source=source, op=op)
            sent[id : id + 1] = [{name: values.get(name) for name in added_columns}]
        holds()

    def holds() -> None:
        world.shows("SELECT * FROM killed ORDER BY id", [(i, "a", *(r.get(name) for name in added_columns)) for i, r in enumerate(sent)])
        world.shows("SELECT * FROM survivors ORDER BY id", [(i, "a") for i in range(len(sent))])
        world.shows("SELECT * FROM names", [("a", len(sent))])

    def started() -> int:
        """Waits for the first tick of the running engine. Returns the number of its entry."""

        def ticked() -> bool:
            header = world.lake.log.newest()
            return header is not None and header.n > stopped and header.kind == "tick"

        until(ticked)
        return newest()

    def newest() -> int:
        header = world.lake.log.newest()
        assert header is not None
        return header.n

    send()
    world.engine.stop()
    stopped = newest()
    world.engine.start()
    starting = started() - stopped  # log entries that a start writes
    holds()
    for point, exists in KILLED_AT:
        fields.append(field(f"of_{len(fields)}", "int"))
        schema = topic.register(*row(*fields))
        send()
        world.engine.stop()
        stopped = newest()
        world.engine.start(crash=f"{point}:{1 + (starting if point.startswith('entry') else 0)}")
        until(world.engine._answers)
        started()
        with world.connect() as sql, pytest.raises(psycopg.Error):
            sql.execute("ALTER SOURCE killed REFRESH SCHEMA")
        world.engine.died()
        world.engine.start()
        if exists:
            added_columns = [f["name"] for f in fields[2:]]
        holds()
        send()
    notices: list[str] = []
    with world.connect() as sql:
        sql.add_notice_handler(lambda d: notices.append(d.message_primary or ""))
        sql.execute("ALTER SOURCE killed REFRESH SCHEMA")
    assert notices == ['source "killed" has all columns of its schema']
    send()
