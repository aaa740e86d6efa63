"""The properties of a session that are defaults of WITH in CREATE STREAM and CREATE TABLE.

    ksql.persistence.default.format.key, .value   the formats of declared items; that of keys also for queries over the format NONE
    ksql.persistence.wrap.single.values           whether the only column of a value is in an object or a record
    ksql.output.topic.name.prefix                 what begins the names of topics of queries that KAFKA_TOPIC does not name

Source: ksqlDB 0.29, documentation, "ksqlDB server configuration".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailgate.sql.ksqldb.declared.formats import FORMATS, UNWRAPPING
from tailgate.sql.ksqldb.declared.sources import value_columns
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem, PropertyValue

KEY_FORMAT, VALUE_FORMAT = "ksql.persistence.default.format.key", "ksql.persistence.default.format.value"
WRAPS = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"
DEFAULTS = (KEY_FORMAT, VALUE_FORMAT, WRAPS, TOPIC_PREFIX)
NO_FORMAT = "none"  # the value of VALUE_FORMAT without a default
KEY_FORMATS = tuple(name.lower() for name in FORMATS if name != "NONE")
VALUE_FORMATS = (*KEY_FORMATS, NO_FORMAT)


def with_defaults(statement: CreateItem | CreateAs, settings: Mapping[str, str]) -> CreateItem | CreateAs:
    """Returns a statement with the properties that it lacks and a session's settings have."""
    wraps = settings.get(WRAPS, "on") == "on"
    if isinstance(statement, CreateAs):
        properties = statement.properties
        if (prefix := settings.get(TOPIC_PREFIX, "")) and "KAFKA_TOPIC" not in dict(properties):
            properties = (*properties, ("KAFKA_TOPIC", prefix + ksqldb_name(statement.name)))
        key_format = settings.get(KEY_FORMAT, statement.key_format).upper()
        return replace(statement, properties=properties, wraps=wraps, key_format=key_format)
    complete: dict[str, PropertyValue] = dict(statement.properties)
    for name, setting in (("KEY_FORMAT", KEY_FORMAT), ("VALUE_FORMAT", VALUE_FORMAT)):
        value = settings.get(setting, NO_FORMAT)
        if value != NO_FORMAT and not complete.keys() & {name, "FORMAT"}:
            complete[name] = value.upper()
    format = str(complete.get("VALUE_FORMAT", complete.get("FORMAT"))).upper()
    if not wraps and format in UNWRAPPING and len(value_columns(statement)) == 1:
        complete.setdefault("WRAP_SINGLE_VALUE", False)
    return replace(statement, properties=tuple(complete.items()))
