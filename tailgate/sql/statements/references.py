"""The names of other objects in a statement."""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.sql.statements.definitions import CreateAlert
from tailgate.sql.statements.kafka_statements import Avro, CreateConnection, CreateSink, CreateSource, Ksqldb, Protobuf
from tailgate.sql.statements.values import Options, SecretName


def named_connections(statement: object) -> list[Name]:
    """Returns the names of the connections and secrets that a statement uses."""
    if isinstance(statement, CreateConnection):
        return _secrets(statement.options)
    if isinstance(statement, CreateAlert):
        secrets = [name for _, options in statement.webhooks for name in _secrets(options)]
        return secrets + [topic.connection for topic in statement.topics if topic.connection is not None]
    if not isinstance(statement, CreateSource | CreateSink):
        return []
    formats = [f for f in (statement.key_format, statement.value_format) if isinstance(f, Avro | Protobuf | Ksqldb)]
    connections = [c for c in (statement.connection, *(f.connection for f in formats)) if c is not None]
    return connections + _secrets(statement.options) + [s for f in formats if not isinstance(f, Ksqldb) for s in _secrets(f.options)]


def _secrets(options: Options) -> list[Name]:
    """Returns the names of the secrets in options."""
    return [value.name for _, value in options if isinstance(value, SecretName)]
