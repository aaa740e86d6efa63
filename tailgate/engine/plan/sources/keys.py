"""The columns of a message's key."""

from __future__ import annotations

from tailgate.engine.plan.sources import avro, protobuf
from tailgate.engine.plan.sources.column_expressions import ColumnExpression, Decoded, by_name
from tailgate.engine.plan.sources.spark_sql import cast_of, name
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.formats import Avro, Ksqldb, MessageFormat, Protobuf
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, UndefinedColumn
from tailgate.lake.types import BYTEA, JSONB, TEXT, Field, Type

SCALARS: dict[str, Type] = {"bytes": BYTEA, "text": TEXT, "json": JSONB}


def key_columns(source: Source, alias: str | None) -> list[ColumnExpression]:
    """Returns the key's columns: the fields of a record, or one column for a single value.

    The name of a single column is that of the primary key, or `alias`, or key0.
    """
    format = source.key_format
    if format is None:
        raise InvalidObjectDefinition("ENVELOPE UPSERT needs the message's key", hint="Use KEY FORMAT … VALUE FORMAT … instead of FORMAT.")
    at, names = Decoded().key, list(source.primary_key)
    fields = record_columns(format)
    if fields is not None:
        if alias is not None and len(fields) != 1:
            raise FeatureNotSupported(
                "INCLUDE KEY AS for a key of several columns is not supported", hint="Leave out AS; each field becomes a column."
            )
        columns = [ColumnExpression(Field(alias or f.field.name, f.field.type, False), f.expression) for f in fields]
        return by_name(columns, names) if names else columns
    if isinstance(format, Avro):
        type, _, stored = avro.column(avro.parse(format.schema))
        expression = stored(at)
    else:
        type, expression = SCALARS[format.type], at
    if not names:
        return [ColumnExpression(Field(alias or "key0", type, False), expression)]
    if len(names) != 1:
        raise InvalidObjectDefinition(f"the message's key is one value and cannot be the {len(names)} columns of the primary key")
    declared_types = {f.name: f.type for f in (c.field for c in source.declared or ())}
    key_type = declared_types.get(names[0], type)
    return [ColumnExpression(Field(names[0], key_type, False), cast_of(expression, type, key_type))]


def record_columns(format: MessageFormat | None) -> list[ColumnExpression] | None:
    """Returns the fields of a key that is a record or a message, or None for a single value."""
    at = Decoded().key
    if isinstance(format, Ksqldb):
        return ksqldb_columns(format, at)
    if isinstance(format, Protobuf):
        return [ColumnExpression(c, f"{at}.{name(c.name)}") for c in protobuf.columns(format.schema)]
    if not isinstance(format, Avro) or not avro.is_record(schema := avro.parse(format.schema)):
        return None
    return [ColumnExpression(Field(c.name, c.type, c.nullable), c.stored(f"{at}.{name(c.name)}")) for c in avro.columns(schema)]


def ksqldb_columns(format: Ksqldb, at: str) -> list[ColumnExpression]:
    """Returns the columns of a key or a value in a format of ksqlDB, which is decoded to the struct `at`."""
    return [ColumnExpression(field, f"{at}.c{i}") for i, field in enumerate(format.columns)]


def message_key(source: Source, rows: list[ColumnExpression]) -> list[ColumnExpression]:
    """Returns the columns of the message's key, by name, with the types of the row's columns."""
    format = source.key_format
    row_types = {m.field.name: m.field.type for m in rows}
    fields = record_columns(format)
    if fields is None:
        raise FeatureNotSupported(
            "ENVELOPE DEBEZIUM with a key that is not a record is not supported", hint="Name the columns with PRIMARY KEY (…) NOT ENFORCED."
        )
    columns = []
    for c in fields:
        column_name = c.field.name
        if column_name not in row_types:
            raise UndefinedColumn(f'column "{column_name}" of the message\'s key is not a column of the row')
        columns.append(
            ColumnExpression(Field(column_name, row_types[column_name], False), cast_of(c.expression, c.field.type, row_types[column_name]))
        )
    return columns
