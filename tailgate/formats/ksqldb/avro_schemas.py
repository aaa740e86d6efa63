"""The format AVRO with a schema of the registry, whose types may have other forms than those of ksqlDB's schema.

    STRUCT                  record, or a union whose types the fields name
    MAP                     map, or array of records with key and value
    BIGINT, DOUBLE          also int, float
    NULL                    null, or the default of a field that is not nullable
    fields without columns  their default, or null

Source: ksqlDB 0.29, documentation, "Schema inference with ID"; Apache Avro 1.11, "Specification".
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import fastavro

from tailgate.formats.ksqldb.values import Column, Type, Values
from tailgate.lake.errors import InvalidTextRepresentation

CACHE_MAX = 64  # schemas
Convert: TypeAlias = Callable[[Any], Any]
Names: TypeAlias = Mapping[str, Any]  # the schemas that have a name


@lru_cache(maxsize=CACHE_MAX)
def _parsed(text: str) -> tuple[Any, dict[str, Any]]:
    """Returns a schema, and the schemas in it by their full names."""
    names: dict[str, Any] = {}
    return fastavro.parse_schema(json.loads(text), named_schemas=names), names


def encoded(text: str, columns: Sequence[Column], values: Sequence[Values], length: int, *, wrapped: bool = True) -> list[bytes | None]:
    """Returns the record of each row, or the value of the only column if it is not `wrapped`; a NULL of that has no bytes.

    Raises 22P02 for a value that the schema does not allow.
    """
    schema, names = _parsed(text)
    if not wrapped:
        convert = _converted(schema, columns[0].type, names)
        return [None if value is None else _written(schema, convert(value)) for value in values[0]]
    record = _record(_present(schema, names), [(column.name, column.type) for column in columns], names)
    rows = zip(*values, strict=True) if values else ((),) * length
    return [_written(schema, record(row)) for row in rows]


def _record(schema: Any, columns: Sequence[tuple[str, Type]], names: Names) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Returns a function from the values of columns to a record without the fields that have their default."""
    types = {field["name"]: field["type"] for field in schema["fields"]}
    members = [(name, _converted(types[name], type, names), _is_nullable(types[name])) for name, type in columns]

    def record(row: Sequence[Any]) -> dict[str, Any]:
        pairs = zip(members, row, strict=True)
        return {name: convert(value) for (name, convert, is_nullable), value in pairs if is_nullable or value is not None}

    return record


def _is_nullable(schema: Any) -> bool:
    return isinstance(schema, list) and "null" in schema


def _written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, schema, value)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise InvalidTextRepresentation(f"a row does not fit the schema of the registry: {error}") from None
    return out.getvalue()


def _branches(schema: Any) -> list[Any]:
    return [branch for branch in schema if branch != "null"] if isinstance(schema, list) else [schema]


def _type_name(schema: Any) -> str:
    """Returns the full name of a type."""
    return str(schema if isinstance(schema, str) else schema.get("name", schema["type"]))


def _present(schema: Any, names: Names) -> Any:
    """Returns a schema without null, as an object."""
    if isinstance(schema, list):
        schema = next(iter(_branches(schema)), "null")
    if isinstance(schema, str):
        schema = names.get(schema, {"type": schema})
    return schema


def _converted(schema: Any, type: Type, names: Names) -> Convert:
    """Returns a function from the value of a type to the value that a schema has."""
    present = _present(schema, names)
    match type:
        case ["array", inner]:
            of_item = _converted(present["items"], inner, names)
            return lambda value: None if value is None else [of_item(item) for item in value]
        case ["map", inner] if present["type"] == "map":
            of_value = _converted(present["values"], inner, names)
            return lambda value: None if value is None else {key: of_value(item) for key, item in value.items()}
        case ["map", inner]:
            fields = {field["name"]: field["type"] for field in _present(present["items"], names)["fields"]}
            of_entry = _converted(fields["value"], inner, names)
            return lambda value: None if value is None else [{"key": key, "value": of_entry(item)} for key, item in value.items()]
        case ["struct", *members] if len(branches := _branches(schema)) > 1:
            by_field = {_type_name(branch).rpartition(".")[2]: branch for branch in branches}
            of_fields = {name: (_type_name(by_field[name]), _converted(by_field[name], inner, names)) for name, inner in members}

            def branch(value: Any) -> Any:  # with the name of its type, because values of several types may be equal
                of_value = next(((n, v) for n, v in (value or {}).items() if v is not None), None)
                if of_value is None:
                    return None
                type_name, convert = of_fields[of_value[0]]
                return type_name, convert(of_value[1])

            return branch
        case ["struct", *members]:
            record, fields_of = _record(present, members, names), [name for name, _ in members]
            return lambda value: None if value is None else record([value[name] for name in fields_of])
    return lambda value: value
