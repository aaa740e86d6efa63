"""Recorded messages of Debezium through the real circuit: the source holds the database's rows, also if messages come again."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from engine.ddl import Registry, create_source
from engine.plan import circuit
from engine.plan.plans import Streams
from lake.catalog import Catalog, Change, Item
from sql.statements import CreateSource, parse

pytestmark = pytest.mark.spark

FIXTURES = Path(__file__).parents[2] / "fixtures" / "debezium"
KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"

Message = dict[str, Any]


def messages(folder: str, table: str) -> list[Message]:
    return [json.loads(line) for line in (FIXTURES / folder / f"{folder}.{table}.jsonl").read_text().splitlines()]


def schemas(folder: str) -> list[dict[str, Any]]:
    found = json.loads((FIXTURES / folder / "schemas.json").read_text())
    return [{**s, "schema": s["schema"] if isinstance(s["schema"], str) else json.dumps(s["schema"])} for s in found]


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    """Schemas of the fixtures: a folder's ids are its own, so each has its path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            folder, *path = self.path.strip("/").split("/")
            known = schemas(folder)
            if path[:2] == ["schemas", "ids"]:
                found = [s for s in known if s["id"] == int(path[2].split("?")[0])]
            else:
                found = [s for s in known if s["subject"] == path[1]]
            data = json.dumps({"schema": found[-1]["schema"]} if found else {"error_code": 40401}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from engine.runtime import session

    running = session.start(tmp_path_factory.mktemp("spark"), 1)
    yield running
    running.stop()


class Source:
    """A source and what its relations hold."""

    def __init__(self, session: Any, folder: Path, statement: str) -> None:
        from engine.runtime.circuits import Circuits

        parsed = parse(statement)
        assert isinstance(parsed, CreateSource)
        self.items = create_source(parsed, statement, Catalog(), Registry())
        catalog = Catalog().apply(Change(put=self.items))
        self.session, self.state, self.ids = session, folder, ""
        self.circuit = Circuits(session).build(circuit.compile_catalog(catalog, Streams(catalog)))
        self.rows: dict[int, dict[tuple[Any, ...], int]] = {i.id: {} for i in self.items}

    @property
    def item(self) -> Item:
        return self.items[0]

    def send(self, batch: list[Message]) -> None:
        rows = []
        for m in batch:
            key, value = (None if m[f] is None else bytearray(base64.b64decode(m[f])) for f in ("key_b64", "value_b64"))
            at = datetime.fromtimestamp(m["timestamp"] / 1000, timezone.utc)
            rows.append((key, value, self.item.options["channel"], m["partition"], m["offset"], at, 0))
        frame = self.session.createDataFrame(rows, KAFKA)
        result = self.circuit.tick(frame._jdf, str(self.state), 0, self.ids, 1)
        self.ids = result.stateIds()
        for i, relation in enumerate(result.relations()):
            for row in pa.ipc.open_stream(bytes(result.changes(i))).read_all().to_pylist():
                *values, weight = (tuple(v.items()) if isinstance(v, dict) else v for v in row.values())
                held = self.rows[relation]
                held[tuple(values)] = held.get(tuple(values), 0) + weight
                if not held[tuple(values)]:
                    del held[tuple(values)]

    def held(self, *columns: str) -> set[tuple[Any, ...]]:
        names = [c.name for c in self.item.columns]
        assert set(self.rows[self.item.id].values()) <= {1}
        return {tuple(row[names.index(c)] for c in columns) for row in self.rows[self.item.id]}

    def reasons(self) -> list[str]:
        return sorted(row[-1] for row in self.rows[self.items[1].id])


def folded(folder: str, table: str, key: tuple[str, ...], columns: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """What the database holds in the end, without any of our code: the last image of each key."""
    by_id = {s["id"]: fastavro.parse_schema(json.loads(s["schema"])) for s in schemas(folder)} if folder.endswith("avro") else {}
    out: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for m in messages(folder, table):
        if m["value_b64"] is None or m["key_b64"] is None:
            continue
        data = base64.b64decode(m["value_b64"])
        if by_id:
            envelope = fastavro.schemaless_reader(io.BytesIO(data[5:]), by_id[struct.unpack(">i", data[1:5])[0]], None)
        else:
            envelope = json.loads(data)
            envelope = envelope.get("payload", envelope)
        image = envelope["after"] or envelope["before"]
        at = tuple(image[k] for k in key)
        if envelope["op"] == "d":
            out.pop(at, None)
        else:
            out[at] = tuple(image.get(c) for c in columns)
    return set(out.values())


USERS = ("id", "email", "name", "is_vip")


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
def test_the_source_holds_the_tables_rows(session: Any, registry: str, tmp_path: Path, database: str) -> None:
    folder, table = f"{database}-avro", "shop.users" if database == "mariadb" else "public.users"
    source = Source(session, tmp_path, _avro(folder, table, registry))
    sent = messages(folder, table)
    expected = folded(folder, table, ("id",), USERS)
    source.send(sent[:7])
    source.send(sent[7:])
    assert source.held(*USERS) == expected
    truncates = [r for r in source.reasons() if r != "op is none of c, u, r and d; a truncate is not applied"]
    assert truncates == []
    # at least once: what came after the snapshot comes again, from an old place on, and changes nothing
    streamed = [m for m in sent if b'"r"' not in base64.b64decode(m["value_b64"] or "")][5:]
    source.send(streamed[3:])
    assert source.held(*USERS) == expected


@pytest.mark.parametrize("form", ["json", "jsonschema"])
def test_json_with_and_without_connects_wrapping(session: Any, tmp_path: Path, form: str) -> None:
    folder = f"mariadb-{form}"
    columns = "id bigint, email text, name text, is_vip smallint, created_at timestamptz"
    statement = f"""CREATE SOURCE users ({columns}, PRIMARY KEY (id) NOT ENFORCED)
        FROM KAFKA BROKER 'kafka:9092' TOPIC '{folder}.shop.users' FORMAT JSON ENVELOPE DEBEZIUM"""
    source = Source(session, tmp_path, statement)
    source.send(messages(folder, "shop.users"))
    assert source.held(*USERS) == folded(folder, "shop.users", ("id",), USERS)


def test_columns_without_a_type_of_the_decoder(session: Any, tmp_path: Path) -> None:
    statement = """CREATE SOURCE users (id bigint, email jsonb, is_vip smallint, PRIMARY KEY (id) NOT ENFORCED)
        FROM KAFKA BROKER 'kafka:9092' TOPIC 'mariadb-jsonschema.shop.users' FORMAT JSON ENVELOPE DEBEZIUM"""
    source = Source(session, tmp_path, statement)
    source.send(messages("mariadb-jsonschema", "shop.users"))
    expected = folded("mariadb-jsonschema", "shop.users", ("id",), ("id", "email", "is_vip"))
    assert source.held("id", "email", "is_vip") == {(i, json.dumps(e, ensure_ascii=False), v) for i, e, v in expected}


def test_keys_of_several_columns_times_and_decimals(session: Any, registry: str, tmp_path: Path) -> None:
    source = Source(session, tmp_path, _avro("mariadb-avro", "shop.purchases", registry))
    source.send(messages("mariadb-avro", "shop.purchases"))
    columns = ("user_id", "item_id", "n", "quantity", "price")
    assert source.held(*columns) == folded("mariadb-avro", "shop.purchases", columns[:3], columns)
    assert all(t is None or [name for name, _ in t] == ["months", "days", "micros"] for (t,) in source.held("ship_time"))


def test_what_cannot_be_a_row_is_a_dead_letter_with_its_reason(session: Any, registry: str, tmp_path: Path) -> None:
    source = Source(session, tmp_path, _avro("mariadb-avro", "shop.users", registry))
    good = messages("mariadb-avro", "shop.users")[0]
    bad = [
        {**good, "offset": 100, "key_b64": None},
        {**good, "offset": 101, "value_b64": base64.b64encode(b"not avro").decode()},
        {**good, "offset": 102, "value_b64": base64.b64encode(b"\0\0\0\x7f\x7f.").decode()},
    ]
    source.send([*bad, good])
    source.send(bad)
    assert len(source.held("id")) == 1
    assert source.reasons() == ["not in Confluent's wire format", "null key", "schema 32639 is not in the registry"]
    assert {row[0] for row in source.rows[source.items[1].id]} == {"mariadb-avro.shop.users"}


def _avro(folder: str, table: str, registry: str) -> str:
    return f"""CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC '{folder}.{table}'
        FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}/{folder}' ENVELOPE DEBEZIUM"""
