"""The Kafka, the schema registry and the Kafka Connect of ksqlDB's statements, which name none of them.

options --kafka, --schema-registry, --connect ──► Endpoints ──► within(catalog): the connections KAFKA and REGISTRY in place of the
options, if these exist; they may use TLS and SASL ──► of(source): what a declared stream or table has used since it was created
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.lake.catalog import Catalog, Connection, Source
from tailgate.lake.catalog.formats import ConnectionSettings, Ksqldb
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import SCHEMA
from tailgate.lake.errors import ObjectNotInPrerequisiteState, WrongObjectType
from tailgate.lake.keywords import quoted_text

KAFKA, REGISTRY = Name("ksqldb_kafka", SCHEMA), Name("ksqldb_registry", SCHEMA)  # connections
SERVICES = {KAFKA: ("kafka", "Kafka"), REGISTRY: ("schema registry", "a schema registry")}  # their types


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where ksqlDB's statements find their services. The connections and their names are those of `within` or `of`."""

    kafka: str = ""
    registry: str = ""
    connect: str = ""
    kafka_connection: Connection | None = None
    registry_connection: Connection | None = None
    kafka_name: Name = KAFKA
    registry_name: Name = REGISTRY

    def within(self, catalog: Catalog) -> Endpoints:
        """Returns the endpoints of statements that run in a catalog. Raises 42809 for a connection to another service."""
        kafka, registry = _connection(KAFKA, catalog), _connection(REGISTRY, catalog)
        return replace(
            self,
            kafka=self.kafka if kafka is None else kafka.brokers,
            registry=self.registry if registry is None else registry.url,
            kafka_connection=kafka,
            registry_connection=registry,
        )

    def of(self, source: Source, catalog: Catalog) -> Endpoints:
        """Returns the endpoints of a declared stream or table: those that it was created with, if there are others now, too."""
        connections = {item.type: item for id in source.depends if isinstance(item := catalog[id], Connection)}
        kafka, registry = connections.get("kafka"), connections.get("schema registry")
        changed = replace(self, kafka=source.brokers, kafka_connection=kafka, kafka_name=_name(kafka, catalog, KAFKA))
        urls = [f.registry for f in (source.key_format, source.value_format) if isinstance(f, Ksqldb) and f.registry]
        if not urls:  # no records need a registry, but statements may
            return changed
        return replace(changed, registry=urls[0], registry_connection=registry, registry_name=_name(registry, catalog, REGISTRY))

    def visible(self, catalog: Catalog) -> Catalog:
        """Returns the catalog in which the names of the connections exist, which no statement of ksqlDB has."""
        connections = [c for c in (self.kafka_connection, self.registry_connection) if c is not None]
        if catalog.resolution is None or not connections:
            return catalog
        return replace(catalog, resolution=catalog.resolution.including(connections, catalog.all_schemas()))

    # ---- Kafka

    def brokers(self) -> str:
        """Returns the addresses of the brokers. Raises 55000 if there are none."""
        if not self.kafka:
            hint = f"Start Tailgate with --kafka HOST:PORT, or create the connection {KAFKA.name}."
            raise ObjectNotInPrerequisiteState("there is no Kafka for statements of ksqlDB", hint=hint)
        return self.kafka

    def topic(self, name: str) -> str:
        """Returns a topic as CREATE SOURCE and CREATE SINK have it. Raises as `brokers`."""
        if self.kafka_connection is not None:
            return f"KAFKA CONNECTION {self.kafka_name.sql} (TOPIC {quoted_text(name)})"
        return f"KAFKA BROKER {quoted_text(self.brokers())} TOPIC {quoted_text(name)}"

    @property
    def kafka_settings(self) -> ConnectionSettings:
        """Returns the settings for access to the brokers."""
        return {} if self.kafka_connection is None else self.kafka_connection.settings

    # ---- the registry

    def schemas(self) -> str:
        """Returns the URL of the schema registry. Raises 55000 if there is none."""
        if not self.registry:
            hint = f"Start Tailgate with --schema-registry URL, or create the connection {REGISTRY.name}."
            raise ObjectNotInPrerequisiteState("there is no schema registry for statements of ksqlDB", hint=hint)
        return self.registry

    def registry_clause(self) -> str:
        """Returns the registry as formats of CREATE SOURCE have it. Raises as `schemas`."""
        if self.registry_connection is not None:
            return f"CONFLUENT SCHEMA REGISTRY CONNECTION {self.registry_name.sql}"
        return f"CONFLUENT SCHEMA REGISTRY {quoted_text(self.schemas())}"

    @property
    def registry_settings(self) -> ConnectionSettings:
        """Returns the settings for access to the registry."""
        return {} if self.registry_connection is None else self.registry_connection.settings

    # ---- Kafka Connect

    def workers(self) -> str:
        """Returns the URL of Kafka Connect. Raises 55000 if there is none."""
        if not self.connect:
            hint = "Start Tailgate with --connect URL, or with --connect embedded."
            raise ObjectNotInPrerequisiteState("there is no Kafka Connect for statements of ksqlDB", hint=hint)
        return self.connect


def _name(connection: Connection | None, catalog: Catalog, default: Name) -> Name:
    return default if connection is None else Name(connection.name, catalog.schema_of(connection).name)


def _connection(name: Name, catalog: Catalog) -> Connection | None:
    """Returns one of the connections, which no statement of ksqlDB names; None if it does not exist. Raises 42809.

    One of a role that is no superuser does not count: the role would get the messages that others write.
    """
    roles = catalog.all_roles()
    owned = (c for c in catalog.each(Connection) if c.owner in roles and roles[c.owner].superuser)
    connection = next((c for c in owned if (c.name, catalog.schema_of(c).name) == (name.name, name.schema)), None)
    type, shown = SERVICES[name]
    if connection is not None and connection.type != type:
        raise WrongObjectType(f'connection "{name.name}" is not to {shown}')
    return connection
