"""CREATE SOURCE: the items of the source and of its dead letters.

The reader's Avro schema is the newest in the registry at the time of the statement. It is stored
with the source, without the parts that are not read. Records with older and newer schemas are
resolved to it. `engine.plan.sources.layout` documents the options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from tailgate.engine.ddl import access, connection, letters, protobuf
from tailgate.engine.ddl.connection import Reached
from tailgate.engine.ddl.history import retained
from tailgate.engine.ddl.names import check_columns, free, kept
from tailgate.engine.ddl.registry import SchemaLookup
from tailgate.engine.ddl.transactions import OPTION as TRANSACTIONS
from tailgate.engine.ddl.transactions import metadata
from tailgate.engine.plan.sources import avro, debezium, layout
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_KEY, Catalog, Item
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, InvalidParameterValue, UndefinedObject
from tailgate.lake.protobuf.text import parsed
from tailgate.lake.secrets import settings
from tailgate.lake.types import Field, field_to_json
from tailgate.sql.statements import Avro, Bytes, ColumnDefinition, CreateSource, Csv, Format, Json, Protobuf, Regex, Strategy, Text, option

GROUP = re.compile(r"\(\?P?<(?=[A-Za-z])")  # the start of a named group, in the syntax of Python or Java
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # names of topics that Kafka accepts

# options without effect: settings of Materialize's reader, or behaviour that cannot be changed
PASSED_OVER = frozenset(
    {
        "client_id",
        "group_id_prefix",
        "statistics_interval_ms",
        "timestamp_frequency_ms",
        "topic_metadata_refresh_interval_ms",
        "enable_auto_commit",
        "fetch_message_max_bytes",
        "ignore_source_keys",
    }
)


# options that limit the input of a source, with their largest values
LIMITS = {"max_message_bytes": (1 << 31) - 2, "max_records_per_second": 10_000_000}

# decimal handling modes of Debezium's JSON without schemas; "double" needs no option
DECIMALS = ("precise", "double", "string")


def create_source(statement: CreateSource, text: str, catalog: Catalog, registry: SchemaLookup) -> tuple[Item, Item]:
    """Returns the items of a source and of its dead letters, `<name>_dead_letters`.

    `text` is the statement as typed.
    """
    schema = free(statement.name, catalog)
    name = f"{statement.name.name}_dead_letters"
    catalog.check_new(name, schema)
    _refuse(statement)
    made_of = _Statement(statement, catalog, registry)
    options = made_of.options()
    made = layout(options)
    check_columns(made.columns)
    id = catalog.next_id
    source = Item(
        id=id,
        kind="source",
        name=statement.name.name,
        columns=made.columns,
        key=made.key,
        stored=made.stored,
        depends=tuple(sorted(made_of.depends)),
        sql=text,
        options=options,
        schema=schema.id,
    )
    source = kept(source, statement, catalog)
    others = Item(id + 1, "dead letters", name, DEAD_LETTERS, DEAD_LETTERS_KEY, stored=True, depends=(id,))
    return source, replace(others, sql=source.sql, schema=schema.id)


def value_format(statement: CreateSource, catalog: Catalog, registry: SchemaLookup) -> dict[str, Any]:
    """Returns the option `value_format` that this statement would give a source now."""
    return _Statement(statement, catalog, registry).value_format()


# ---- unsupported statements --------------------------------------------------------------------------------------------------------


def _refuse(statement: CreateSource) -> None:
    """Raises an error for combinations of options that are not valid or not supported."""
    if not TOPIC.fullmatch(statement.topic):
        raise InvalidParameterValue(f'"{statement.topic}" is not the name of a topic')
    for include in statement.include:
        if include.kind == "key" and statement.envelope == "debezium":
            raise FeatureNotSupported(
                "INCLUDE KEY with ENVELOPE DEBEZIUM is not supported", hint="The columns of the key are columns of the row."
            )
    if statement.columns is not None and not isinstance(statement.value_format, Json | Csv | Regex):
        raise FeatureNotSupported(
            "columns can only be declared for FORMAT JSON, CSV and REGEX", hint="Create a view to give columns other names and types."
        )
    if statement.columns is not None and not statement.columns:
        raise InvalidObjectDefinition("a source needs a column at least")
    if statement.primary_key and statement.envelope == "none":
        raise FeatureNotSupported("PRIMARY KEY of a source without an envelope is not supported", hint="Add ENVELOPE UPSERT.")
    if statement.envelope == "debezium" and not isinstance(statement.value_format, Json | Avro):
        raise FeatureNotSupported(
            f"ENVELOPE DEBEZIUM with FORMAT {type(statement.value_format).__name__.upper()} is not supported",
            hint="Use FORMAT AVRO or JSON.",
        )
    if statement.on_error == "null" and statement.envelope != "none":
        raise FeatureNotSupported(
            f"ON ERROR NULL with ENVELOPE {statement.envelope.upper()} is not supported", hint="A value that is NULL deletes a row there."
        )
    history, others = retained(statement.options)
    if history and statement.envelope == "none" and not statement.materialized:
        raise FeatureNotSupported(
            "RETAIN HISTORY FOR of a source that is not stored is not supported", hint="Use CREATE MATERIALIZED SOURCE."
        )
    for name, value in others:
        if name == "decimal_handling_mode" and statement.envelope == "debezium" and value in DECIMALS:
            continue
        if name in ("start_offset", "kafka_time_offset"):
            continue
        if letters.option(name) is not None:
            letters.retention(name, value)
            continue
        if name in LIMITS:
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LIMITS[name]:
                raise InvalidParameterValue(f'option "{name}" is a number from 1 to {LIMITS[name]}')
            continue
        if (name == "isolation_level" and str(value).lower() == "read_committed") or name in PASSED_OVER or access.is_access(name):
            continue
        raise FeatureNotSupported(f'option "{name}" of a source is not supported')


# ---- options -----------------------------------------------------------------------------------------------------------------------


class _Statement:
    """The derivation of a source's options from a CREATE SOURCE statement.

    `depends`: ids of connections and secrets, complete after the options have been derived.
    """

    def __init__(self, statement: CreateSource, catalog: Catalog, registry: SchemaLookup) -> None:
        self._statement, self._catalog, self._lookup = statement, catalog, registry
        self.depends: set[int] = set()
        self._envelope: avro.Schema | None = None  # the complete Avro schema of an envelope

    def options(self) -> dict[str, Any]:
        """Returns the options of the source (`engine.plan.sources.layout`)."""
        statement = self._statement
        reached = connection.kafka(statement.connection, statement.brokers, statement.options, self._catalog)
        self.depends |= set(reached.depends)
        options: dict[str, Any] = {
            "brokers": reached.address,
            "topic": statement.topic,
            "channel": f"{reached.address}/{statement.topic}",
            "kafka": reached.settings,
            "envelope": statement.envelope,
            "value_format": self.value_format(),
            "key_format": self._key_format(),
            "columns": None,
            "primary_key": list(statement.primary_key),
            "include": [[i.kind, i.name, i.header, i.bytes] if i.kind == "header" else [i.kind, i.name] for i in statement.include],
        }
        if statement.materialized:
            options["materialized"] = True
        if statement.columns is not None:
            options["columns"] = [_column(c) for c in statement.columns]
        if option(statement.options, "decimal_handling_mode") == "string":
            options["decimals"] = "string"
        if statement.on_error != "dead letter":
            options["on_error"] = statement.on_error
        options |= {name: value for name, value in statement.options if name in LIMITS} | retained(statement.options)[0]
        for name, value in statement.options:
            options |= letters.retention(name, value) if letters.option(name) is not None else {}
        if (start := _start(statement)) is not None:
            options["start"] = start
        for format in (options["value_format"], options["key_format"]):
            if format is not None and "registry" in format:
                options["registry"] = format["registry"]
        if statement.transactions is not None:
            options[TRANSACTIONS] = metadata(statement.transactions, options, self._envelope, self._catalog)
            self.depends.add(options[TRANSACTIONS]["source"])
        return options

    # ---- formats

    def _registry(self, format: Avro | Protobuf) -> Reached:
        """Returns the access to the registry of a format, and adds its items to `depends`."""
        if format.connection is not None and format.options:
            raise FeatureNotSupported(f'option "{format.options[0][0]}" of a schema registry is not supported')
        found = connection.registry(format.connection, format.registry or "", format.options, self._catalog)
        self.depends |= set(found.depends)
        return found

    def _schema(self, at: Reached, part: str, strategy: Strategy = None) -> str | None:
        """Returns the newest schema of the key or the value, unless the statement has another."""
        access = settings(at.settings, self._catalog)
        if isinstance(strategy, str):
            return _json(strategy)
        if strategy is None:
            return self._lookup.latest(at.address, f"{self._statement.topic}-{part}", access)
        found = self._lookup.by_id(at.address, strategy, access)
        if found is None:
            raise UndefinedObject(f"schema registry has no schema {strategy}")
        return found

    def value_format(self) -> dict[str, Any]:
        """Returns the format of the value. Raises 42704 if the registry lacks its schema."""
        statement, format = self._statement, self._statement.value_format
        if isinstance(format, Protobuf):
            return self._protobuf(format, "value") or _absent(f"{statement.topic}-value")
        if not isinstance(format, Avro):
            return _plain(format, declared=statement.columns is not None)
        if format.schema is not None:
            schema = avro.parse(_json(format.schema))
            if statement.envelope == "debezium":
                self._envelope = schema
                envelope_of(schema, "the statement", before=statement.key_format is None)  # also the writer's schema, so nothing is removed
            return {"type": "avro", "schema": avro.written(schema), "wire": _wire(format)}
        at = self._registry(format)
        subject = f"{statement.topic}-value"
        found = self._schema(at, "value", format.value_strategy)
        if found is None:
            _absent(subject)
        schema = avro.parse(found)
        if statement.envelope == "debezium":
            self._envelope = schema
            keyed = statement.key_format is not None or self._schema(at, "key", format.key_strategy) is not None
            schema = envelope_of(schema, subject, before=bool(statement.primary_key) or not keyed)
        return _by_registry(at, schema)

    def _key_format(self) -> dict[str, Any] | None:
        """Returns the format of the key, or None.

        It is the KEY FORMAT of the statement. With one FORMAT for both, it is the registry's schema
        for the key if there is one, or the format itself if that has single values.
        """
        statement = self._statement
        wanted = statement.envelope != "none" or any(i.kind == "key" for i in statement.include)
        format = statement.key_format or statement.value_format
        if not wanted and statement.key_format is None:
            return None
        if isinstance(format, Avro) and format.schema is not None:
            if statement.key_format is None:
                return None
            return {"type": "avro", "schema": avro.written(avro.parse(_json(format.schema))), "wire": _wire(format)}
        if isinstance(format, Avro):
            at = self._registry(format)
            found = self._schema(at, "key", format.key_strategy)
            if found is not None:
                return _by_registry(at, avro.parse(found))
            if statement.key_format is None and (statement.primary_key or statement.envelope != "upsert"):
                return None
            raise UndefinedObject(
                f'schema registry has no subject "{statement.topic}-key"',
                hint="Name what identifies a row with PRIMARY KEY (…) NOT ENFORCED." if statement.envelope == "debezium" else None,
            )
        if isinstance(format, Protobuf):
            if statement.key_format is None and (format.schema is not None or statement.envelope != "upsert"):
                return None
            return self._protobuf(format, "key") or _absent(f"{statement.topic}-key")
        if statement.key_format is None and isinstance(format, Json | Csv | Regex):
            return None
        if isinstance(format, Csv | Regex):
            raise FeatureNotSupported(f"KEY FORMAT {type(format).__name__.upper()} is not supported")
        return _plain(format)

    def _protobuf(self, format: Protobuf, part: str) -> dict[str, Any] | None:
        """Returns a Protobuf format, or None if the registry does not have the subject."""
        if format.schema is not None:
            return protobuf.written_out(format)
        at = self._registry(format)
        found = self._lookup.protobuf(at.address, f"{self._statement.topic}-{part}", settings(at.settings, self._catalog))
        return None if found is None else protobuf.options(tuple(map(parsed, found)), format.message, wire=True)


def _absent(subject: str) -> NoReturn:
    """Raises 42704: the registry does not have the subject."""
    raise UndefinedObject(
        f'schema registry has no subject "{subject}"',
        hint="Create the source when the first record has been written, or register its schema.",
    )


def _by_registry(at: Reached, schema: Any) -> dict[str, Any]:
    found = {"type": "avro", "registry": at.address, "schema": avro.written(schema)}
    return {**found, "access": at.settings} if at.settings else found


def _start(statement: CreateSource) -> dict[str, Any] | None:
    """Returns the start of the source, or None for the first record.

    It is {"offsets": [one per partition]} or {"time": ms, relative to now if negative}. The runtime
    looks up the offsets in Kafka.
    """
    offsets, time = option(statement.options, "start_offset"), option(statement.options, "kafka_time_offset")
    if offsets is not None and time is not None:
        raise InvalidParameterValue("a start offset and a start timestamp exclude one another")
    if time is not None:
        if not isinstance(time, int) or isinstance(time, bool):
            raise InvalidParameterValue("a start timestamp is a number of milliseconds")
        return {"time": time}
    if offsets is None:
        return None
    given = list(offsets) if isinstance(offsets, tuple) else [offsets]
    if not all(isinstance(o, int) and not isinstance(o, bool) and o >= 0 for o in given):
        raise InvalidParameterValue("start offsets are numbers from 0 up")
    return {"offsets": given}


def _column(column: ColumnDefinition) -> dict[str, Any]:
    """Returns the JSON form of a declared column."""
    out = field_to_json(Field(column.name, column.type, column.nullable))
    return out if column.precision is None else {**out, "precision": column.precision}


def _plain(format: Format, *, declared: bool = False) -> dict[str, Any]:
    """Returns the options of a format without a schema."""
    match format:
        case Csv(columns, header, delimiter):
            names = list(header) or [f"column{i + 1}" for i in range(columns)]
            return {"type": "csv", "names": names, "header": list(header), "delimiter": delimiter, "nulls": declared}
        case Regex(pattern):
            named = {at: name for name, at in re.compile(GROUP.sub("(?P<", pattern)).groupindex.items()}
            count = re.compile(GROUP.sub("(?P<", pattern)).groups
            return {
                "type": "regex",
                "pattern": GROUP.sub("(?<", pattern),
                "names": [named.get(i + 1, f"column{i + 1}") for i in range(count)],
            }
        case Bytes():
            return {"type": "bytes"}
        case Text():
            return {"type": "text"}
        case _:
            return {"type": "json"}


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
        raise InvalidParameterValue(f"the Avro schema is no JSON: {e}") from None
    return schema


def envelope_of(schema: Any, subject: str, *, before: bool) -> Any:
    """Returns Debezium's envelope without the fields that are not read.

    `before`: whether the image of the row before the change is read. Raises 42P17 if the schema is
    not an envelope or lacks this image.
    """
    if not avro.is_record(schema) or not _enveloped(set(avro.fields(schema))) or not avro.is_record(avro.fields(schema)["after"]):
        raise InvalidObjectDefinition(
            f'the schema of "{subject}" is no Debezium envelope', detail="A record with the fields after, and op or before, is expected."
        )
    if before and "before" not in avro.fields(schema):
        raise InvalidObjectDefinition(
            f'the schema of "{subject}" has no image of the row before a change, and the messages no key to tell what goes'
        )
    kept = ["before"] if before else []
    out = _cut(schema, [*kept, "after", "source", "op"])
    for field in out["fields"]:
        if field["name"] == "source":
            inner, _ = avro.present(field["type"])
            field["type"] = _cut(inner, list(debezium.SOURCE))
    return out


def _enveloped(fields: set[str]) -> bool:
    """Returns whether a record with these fields is an envelope.

    Envelopes of Debezium have op. Those of sinks do not.
    """
    return "after" in fields and bool(fields & {"op", "before"})


def _cut(record: Any, names: list[str]) -> Any:
    """Returns a record's schema with only the fields of these names."""
    inner: Mapping[str, Any] = avro.present(record)[0]
    return {**inner, "fields": [dict(f) for f in inner["fields"] if f["name"] in names]}
