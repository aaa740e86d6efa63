"""A complete system for pages and examples: Kafka, registry, engine, gateway and sinks, each a process."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from tailgate.embedded.children import free_port
from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.examples.shop.debezium import Table, topic
from tailgate.lake.catalog import Function
from tailgate.lake.catalog.schemas import BUILT_IN
from tailgate.lake.catalog.secrets import KEY_BYTES
from tailgate.lake.folder import Lake
from tailgate.sinks.status import sinks
from tailgate.sql.statements import split
from testing.engine_process import until
from tests.docs.pages import INTERRUPT, AvroRecords, Changes, Example, Part, Records
from tests.docs.terminal import Terminal

KINDS = ("sink", "materialized view", "view", "source", "table", "connection", "secret")  # in the order in which they are dropped
STATEMENT_MS = 120_000  # cancels a statement that hangs
INCLUDE = "\\i "
TOPICS_S = 30.0  # wait for the broker
KAFKA, REGISTRY = "kafka:9092", "http://schema-registry:8081"


class System:
    """A running system, as a context manager. `data`: the location of the lake, unless it is the folder; `engine`: its arguments."""

    def __init__(self, folder: Path, data: Path | str | None = None, engine: tuple[str, ...] = ()) -> None:
        key = folder / "secret.key"
        key.write_bytes(base64.b64encode(os.urandom(KEY_BYTES)))
        key.chmod(0o600)
        secrets = ("--secret-key-file", str(key))
        http = f"127.0.0.1:{free_port()}"
        listen = f"127.0.0.1:{free_port()}"
        plan = Plan(data or folder, listen, "embedded", "embedded", secrets=secrets, ksqldb=http, engine=engine, work_dir=folder)
        self.supervisor = Supervisor(plan, lambda _: None)
        self._lake = data or folder
        self._tables: dict[str, Table] = {}
        self._schemas: dict[str, tuple[int, Any]] = {}  # by topic

    def __enter__(self) -> System:
        self.supervisor.__enter__()
        self.kafka, self.registry = str(self.supervisor.kafka), str(self.supervisor.registry)
        self._producer = self._new_producer()
        return self

    def _new_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.kafka, "enable.idempotence": True, "log_level": 2})  # keeps the order

    def __exit__(self, *_: object) -> None:
        self.supervisor.__exit__()

    @property
    def dsn(self) -> str:
        host, _, port = self.supervisor.plan.listen.rpartition(":")
        return f"host={host} port={port} user=ann dbname=shop options='-c statement_timeout={STATEMENT_MS}'"

    @property
    def ksqldb(self) -> str:
        """Returns the address of ksqlDB's HTTP API."""
        return str(self.supervisor.plan.ksqldb)

    def terminal(self) -> Terminal:
        return Terminal(self.dsn)

    def with_local_addresses(self, text: str) -> str:
        """Replaces the addresses in pages by this machine's."""
        return re.sub("'(kafka|localhost|kafka:9092|localhost:9092)'", f"'{self.kafka}'", text).replace(REGISTRY, self.registry)

    def with_page_addresses(self, text: str) -> str:
        """Replaces this machine's addresses by those in pages."""
        return text.replace(self.kafka, KAFKA).replace(self.registry, REGISTRY)

    def write(self, part: Records | AvroRecords | Changes) -> None:
        if isinstance(part, AvroRecords):
            messages: list[tuple[Any, Any]] = [(None, value) for value in self._avro(part)]
            to = part.topic
        elif isinstance(part, Records):
            messages = list(part.records)
            to = part.topic
        else:
            table = self._tables.setdefault(part.table, Table(self.registry, part.table))
            messages = [table.change(c["op"], c.get("before"), c.get("after")) for c in part.changes]
            to = topic(part.table)
        for key, value in messages:
            self._producer.produce(to, key=key, value=value)
        assert self._producer.flush(30) == 0

    def _avro(self, part: AvroRecords) -> Iterator[bytes]:
        """Returns the values of a block in Avro. Registers its schema and creates its topic."""
        if part.schema is not None:
            with SchemaRegistryClient({"url": self.registry}) as client:
                id = client.register_schema(f"{part.topic}-value", Schema(part.schema, "AVRO"))
            self._schemas[part.topic] = id, fastavro.parse_schema(json.loads(part.schema))
            admin = AdminClient({"bootstrap.servers": self.kafka})
            with suppress(KafkaException):  # it exists
                admin.create_topics([NewTopic(part.topic, 1, 1)], operation_timeout=30)[part.topic].result(60)
        id, schema = self._schemas[part.topic]
        for value in part.values:
            data = io.BytesIO()
            fastavro.schemaless_writer(data, schema, value)
            yield struct.pack(">bI", 0, id) + data.getvalue()

    def run(self, terminal: Terminal, part: Part, folder: Path) -> tuple[str, ...]:
        """Runs a part of a page. Returns the printed lines; none for parts that are not examples.

        `folder` is the folder of files named in statements.
        """
        if isinstance(part, Records | AvroRecords | Changes):
            self.write(part)
        if not isinstance(part, Example):
            return ()
        if part.statement.startswith(INCLUDE):
            file = folder / part.statement.removeprefix(INCLUDE)
            outputs = [terminal.type(self.with_local_addresses(s.text)) for s in split(file.read_text())]
            return tuple(self.with_page_addresses(line) for lines in outputs for line in lines)
        until = len(part.output) - 1 if part.output and part.output[-1] == INTERRUPT else None
        return tuple(self.with_page_addresses(line) for line in terminal.type(self.with_local_addresses(part.statement), part.data, until))

    def clear(self) -> None:
        """Drops all objects and roles."""
        terminal, catalog = self.terminal(), Lake.open(self._lake).catalog()
        for schema in catalog.schemas.values():
            if schema.id not in BUILT_IN:
                terminal.type(f'DROP SCHEMA "{schema.name}" CASCADE')
        for kind in KINDS:
            for item in catalog.visible:
                if item.kind == kind and item.schema in BUILT_IN:
                    terminal.type(f'DROP {kind.upper()} IF EXISTS "{item.name}" CASCADE')
        for item in catalog.visible:
            if isinstance(item, Function):
                terminal.type(f"DROP FUNCTION IF EXISTS {item.display_name} CASCADE")
        for role in _roles(catalog):
            terminal.type(f'DROP ROLE IF EXISTS "{role}"')
        terminal.close()

    def delete_topics(self) -> None:
        """Deletes all topics after `clear`, and waits until they are gone. Until the sinks have ended they may create them again."""
        lake = Lake.open(self._lake)
        until(lambda: not sinks(lake))
        self._producer = self._new_producer()  # one that has written to a topic creates it again when it refreshes its metadata
        admin = AdminClient({"bootstrap.servers": self.kafka})

        def topics() -> list[str]:
            return [name for name in admin.list_topics(timeout=TOPICS_S).topics if not name.startswith("_")]

        if names := topics():
            for deleted in admin.delete_topics(names).values():
                deleted.result(TOPICS_S)
        until(lambda: not topics())


def _roles(catalog: Any) -> list[str]:
    return [name for name in (role.name for role in catalog.roles.values()) if name != "tailgate"]
