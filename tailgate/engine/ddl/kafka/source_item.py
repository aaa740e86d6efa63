"""The item of a source, derived from its CREATE SOURCE statement and the schema registry.

The reader's Avro schema is the newest in the registry at the time of the statement. It is stored
with the source, without the parts that are not read. Records with older and newer schemas are
resolved to it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, NoReturn

from tailgate.engine.ddl.history import split_retention
from tailgate.engine.ddl.kafka import connection, dead_letters, protobuf_format
from tailgate.engine.ddl.kafka.connection import Endpoint
from tailgate.engine.ddl.kafka.envelope import envelope_of
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.transactions import transaction_metadata
from tailgate.engine.plan.sources import avro
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.catalog import Catalog, Source, formats
from tailgate.lake.catalog.formats import DeclaredColumn, Include, MessageFormat
from tailgate.lake.catalog.secrets import settings
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, UndefinedColumn, UndefinedObject
from tailgate.lake.types import INT8, Field
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.statements import (
    Avro,
    Bytes,
    ColumnDefinition,
    CreateSource,
    Csv,
    Format,
    Json,
    Ksqldb,
    Protobuf,
    Regex,
    Strategy,
    Text,
    option,
)

GROUP = re.compile(r"\(\?P?<(?=[A-Za-z])")  # the start of a named group, in the syntax of Python or Java
# options that limit the input of a source, with their largest values
LIMITS = {"max_message_bytes": (1 << 31) - 2, "max_records_per_second": 10_000_000}


def value_format(statement: CreateSource, catalog: Catalog, registry: SchemaLookup) -> MessageFormat:
    """Returns the format of the value that this statement would give a source now."""
    return SourceDerivation(statement, catalog, registry).value_format()


class SourceDerivation:
    """The derivation of a source from a CREATE SOURCE statement.

    `depends`: ids of connections and secrets, complete after the formats have been derived.
    """

    def __init__(self, statement: CreateSource, catalog: Catalog, registry: SchemaLookup) -> None:
        self._statement, self._catalog, self._lookup = statement, catalog, registry
        self.depends: set[int] = set()
        self._envelope: avro.Schema | None = None  # the complete Avro schema of an envelope

    def source(self) -> Source:
        """Returns the source without its columns and without its text."""
        statement = self._statement
        endpoint = connection.kafka(statement.connection, statement.brokers, statement.options, self._catalog)
        self.depends |= set(endpoint.depends)
        value, key = self.value_format(), self._key_format()
        registries = [f.registry for f in (value, key) if isinstance(f, formats.Avro) and f.registry]
        source = Source(
            self._catalog.next_id,
            statement.name.name,
            brokers=endpoint.address,
            topic=statement.topic,
            channel=f"{endpoint.address}/{statement.topic}",
            kafka=endpoint.settings,
            envelope=statement.envelope,
            value_format=value,
            key_format=key,
            declared=None if statement.columns is None else tuple(map(_column, statement.columns)),
            primary_key=tuple(statement.primary_key),
            include=tuple(Include(i.kind, i.name, i.header, i.bytes, i.column, i.format) for i in statement.include),
            materialized=statement.materialized,
            decimals="string" if option(statement.options, "decimal_handling_mode") == "string" else "precise",
            on_error=statement.on_error,
            timestamp=str(option(statement.options, "timestamp", "")),
            registry=registries[-1] if registries else "",
            retain_history_ms=split_retention(statement.options)[0],
            **_limits(statement),
        )
        if statement.transactions is not None:
            transactions = transaction_metadata(statement.transactions, source, self._envelope, self._catalog)
            self.depends.add(transactions.source)
            source = replace(source, transactions=transactions)
        return replace(source, depends=tuple(sorted(self.depends)))

    # ---- formats

    def _registry(self, format: Avro | Protobuf) -> Endpoint:
        """Returns the access to the registry of a format, and adds its items to `depends`."""
        if format.connection is not None and format.options:
            raise FeatureNotSupported(f'option "{format.options[0][0]}" of a schema registry is not supported')
        endpoint = connection.registry(format.connection, format.registry or "", format.options, self._catalog)
        self.depends |= set(endpoint.depends)
        return endpoint

    def _schema(self, at: Endpoint, part: str, strategy: Strategy = None) -> str | None:
        """Returns the newest schema of the key or the value, unless the statement has another."""
        access = settings(at.settings, self._catalog)
        if isinstance(strategy, str):
            return _json(strategy)
        if strategy is None:
            return self._lookup.latest(at.address, f"{self._statement.topic}-{part}", access)
        schema = self._lookup.by_id(at.address, strategy, access)
        if schema is None:
            raise UndefinedObject(f"schema registry has no schema {strategy}")
        return schema

    def value_format(self) -> MessageFormat:
        """Returns the format of the value. Raises 42704 if the registry lacks its schema."""
        statement, format = self._statement, self._statement.value_format
        if isinstance(format, Protobuf):
            return self._protobuf(format, "value") or _no_subject(f"{statement.topic}-value")
        if not isinstance(format, Avro):
            return self._plain(format)
        if format.schema is not None:
            schema = avro.parse(_json(format.schema))
            if statement.envelope == "debezium":
                self._envelope = schema
                envelope_of(schema, "the statement", before=statement.key_format is None)  # also the writer's schema, so nothing is removed
            return formats.Avro(schema=avro.written(schema), wire=_wire(format))
        at = self._registry(format)
        subject = f"{statement.topic}-value"
        schema_text = self._schema(at, "value", format.value_strategy)
        if schema_text is None:
            _no_subject(subject)
        schema = avro.parse(schema_text)
        if statement.envelope == "debezium":
            self._envelope = schema
            keyed = statement.key_format is not None or self._schema(at, "key", format.key_strategy) is not None
            schema = envelope_of(schema, subject, before=bool(statement.primary_key) or not keyed)
        return _registry_format(at, schema)

    def _key_format(self) -> MessageFormat | None:
        """Returns the format of the key, or None.

        It is the KEY FORMAT of the statement. With one FORMAT for both, it is the registry's schema
        for the key if there is one, or the format itself if that has single values.
        """
        statement = self._statement
        needs_key = statement.envelope != "none" or any(i.kind == "key" for i in statement.include)
        format = statement.key_format or statement.value_format
        if not needs_key and statement.key_format is None:
            return None
        if isinstance(format, Avro) and format.schema is not None:
            if statement.key_format is None:
                return None
            return formats.Avro(schema=avro.written(avro.parse(_json(format.schema))), wire=_wire(format))
        if isinstance(format, Avro):
            at = self._registry(format)
            schema_text = self._schema(at, "key", format.key_strategy)
            if schema_text is not None:
                return _registry_format(at, avro.parse(schema_text))
            if statement.key_format is None and (statement.primary_key or statement.envelope != "upsert"):
                return None
            raise UndefinedObject(
                f'schema registry has no subject "{statement.topic}-key"',
                hint="Name the columns that identify rows with PRIMARY KEY (…) NOT ENFORCED." if statement.envelope == "debezium" else None,
            )
        if isinstance(format, Protobuf):
            if statement.key_format is None and (format.schema is not None or statement.envelope != "upsert"):
                return None
            return self._protobuf(format, "key") or _no_subject(f"{statement.topic}-key")
        if statement.key_format is None and isinstance(format, Json | Csv | Regex):
            return None
        if isinstance(format, Csv | Regex):
            raise FeatureNotSupported(f"KEY FORMAT {type(format).__name__.upper()} is not supported")
        return self._plain(format)

    def _plain(self, format: Format) -> MessageFormat:
        """Returns a format without a schema."""
        columns = self._statement.columns
        if not isinstance(format, Ksqldb):
            return _plain(format, declared=columns is not None)
        fields = {c.name: _column(c).field for c in columns or ()}
        for name in format.columns:
            if name not in fields:
                raise UndefinedColumn(f'column "{name}" of FORMAT KSQLDB is not declared')
        declared = tuple(fields[name] for name in format.columns)
        bounds = tuple(Field(name, INT8) for name in WINDOW_BOUNDS) if format.window else ()
        at = Endpoint(format.registry, {}, ())
        if format.connection is not None:
            at = connection.registry(format.connection, "", (), self._catalog)
            self.depends |= set(at.depends)
        return formats.Ksqldb(
            name=format.name,
            columns=(*declared, *bounds),
            delimiter=format.delimiter,
            wrapped=format.wrapped,
            registry=at.address,
            access=at.settings,
            schema=format.schema,
            window=format.window,
            window_size=format.window_size,
        )

    def _protobuf(self, format: Protobuf, part: str) -> formats.Protobuf | None:
        """Returns a Protobuf format, or None if the registry does not have the subject."""
        if format.schema is not None:
            return protobuf_format.format_of_statement(format)
        at = self._registry(format)
        files = self._lookup.protobuf(at.address, f"{self._statement.topic}-{part}", settings(at.settings, self._catalog))
        return None if files is None else protobuf_format.message_format(tuple(map(parsed, files)), format.message, wire=True)


def _no_subject(subject: str) -> NoReturn:
    """Raises 42704: the registry does not have the subject."""
    raise UndefinedObject(
        f'schema registry has no subject "{subject}"',
        hint="Create the source when the first record has been written, or register its schema.",
    )


def _registry_format(at: Endpoint, schema: Any) -> formats.Avro:
    return formats.Avro(registry=at.address, schema=avro.written(schema), access=at.settings)


def _limits(statement: CreateSource) -> dict[str, Any]:
    """Returns the fields of a source that limit its input, and the retention of its dead letters."""
    limits: dict[str, Any] = {name: value for name, value in statement.options if name in LIMITS}
    for name, value in statement.options:
        limits |= dead_letters.retention_options(name, value) if dead_letters.retention_option(name) is not None else {}
    return limits


def _column(column: ColumnDefinition) -> DeclaredColumn:
    return DeclaredColumn(field=Field(column.name, column.type, column.nullable), precision=column.precision)


def _plain(format: Format, *, declared: bool = False) -> MessageFormat:
    """Returns a format without a schema."""
    match format:
        case Csv(columns, header, delimiter):
            names = list(header) or [f"column{i + 1}" for i in range(columns)]
            return formats.Csv(names=tuple(names), header=tuple(header), delimiter=delimiter, nulls=declared)
        case Regex(pattern):
            group_names = {at: name for name, at in re.compile(GROUP.sub("(?P<", pattern)).groupindex.items()}
            count = re.compile(GROUP.sub("(?P<", pattern)).groups
            names = [group_names.get(i + 1, f"column{i + 1}") for i in range(count)]
            return formats.Regex(pattern=GROUP.sub("(?<", pattern), names=tuple(names))
        case Bytes():
            return formats.Bytes()
        case Text():
            return formats.Text()
        case _:
            return formats.Json()


def _wire(format: Avro) -> bool:
    """Returns whether messages begin with Confluent's header, for a schema in the statement."""
    for name, _ in format.options:
        if name != "confluent_wire_format":
            raise FeatureNotSupported(f'option "{name}" of an Avro schema is not supported')
    return bool(option(format.options, "confluent_wire_format", True))


def _json(schema: str) -> str:
    """Returns an Avro schema. Raises 22023 if it is not valid JSON."""
    try:
        json.loads(schema)
    except ValueError as e:
        raise InvalidParameterValue(f"the Avro schema is not valid JSON: {e}") from None
    return schema
