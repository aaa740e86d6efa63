"""Types of JSON schemas with the annotations of Kafka Connect."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeAlias
from urllib.parse import unquote, urljoin

from tailgate.engine.ddl.ksqldb.inference import naming
from tailgate.engine.ddl.ksqldb.inference.naming import Columns
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName

INTEGERS = {"int8": types.INT, "int16": types.INT, "int32": types.INT}
TITLES = {"Date": types.DATE, "Time": types.TIME, "Timestamp": types.TIMESTAMP}
DATA = "org.apache.kafka.connect.data."
PRECISION = 38  # of a decimal without an annotation
REFERENCES_MAX = 100  # in a schema, with those inside of the parts to which it refers
Parts: TypeAlias = Callable[[str], dict[str, Any]]  # the part of a schema to which a reference refers


def inferred(text: str, others: Sequence[tuple[str, str]] = ()) -> Columns | TypeName:
    """Returns the columns of an object, or the type of another schema. `others`: schemas that it references, by their names.

    Raises 22023.
    """
    root = json.loads(text)
    parts = _parts(root, {name: json.loads(other) for name, other in others})
    schema = _present(root, parts)
    if _is_object(schema):
        return naming.columns((name, _type(member, parts)) for name, member in _members(schema))
    type = _type(schema, parts)
    if type is None:
        raise InvalidParameterValue("the schema in the registry has a type that ksqlDB lacks")
    return type


def _parts(root: Any, others: dict[str, Any]) -> Parts:
    """Returns the parts of schemas by references to them, which raise 22023 for another schema and for too many references."""
    references = count(1)
    documents = {"": root}
    for name, other in others.items():
        documents[name] = _with_name(other, name)
        if isinstance(other, dict) and isinstance(other.get("$id"), str):
            documents.setdefault(other["$id"].partition("#")[0], documents[name])
    base = root["$id"] if isinstance(root, dict) and isinstance(root.get("$id"), str) else ""

    def part(reference: str) -> dict[str, Any]:
        if next(references) > REFERENCES_MAX:  # a schema that contains itself has no end
            raise InvalidParameterValue(f"the schema in the registry has more than {REFERENCES_MAX} references")
        name, _, pointer = reference.partition("#")
        first, *path = unquote(pointer).split("/")
        target: Any = None if first else documents.get(name, documents.get(_resolved(base, name)))
        for step in path:
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise InvalidParameterValue(f'the reference "{reference}" of the schema in the registry is not a part of the schema')
        return target

    return part


def _resolved(base: str, name: str) -> str:
    """Returns the URI of a schema whose name is relative to another URI, or the name if either is not a URI."""
    try:
        return urljoin(base, name)
    except ValueError:
        return name


def _with_name(part: Any, name: str) -> Any:
    """Returns a part of a schema whose references to the schema itself have its name."""
    if isinstance(part, dict):
        own = part.get("$ref")
        of_name = {"$ref": name + own} if isinstance(own, str) and own.startswith("#") else {}
        return {key: _with_name(value, name) for key, value in part.items()} | of_name
    return [_with_name(item, name) for item in part] if isinstance(part, list) else part


def _present(schema: Any, parts: Parts) -> dict[str, Any]:
    """Returns the schema to which one refers, the only schema besides null of a union, or the schema itself."""
    if not isinstance(schema, dict):  # true, the schema of all values, or false
        return {}
    if isinstance(schema.get("$ref"), str):
        return _present({**_without(schema, "$ref"), **parts(schema["$ref"])}, parts)
    branches = [s for s in schema.get("oneOf") or schema.get("anyOf") or () if isinstance(s, dict) and s.get("type") != "null"]
    if len(branches) == 1:
        return _present({**_without(schema, "oneOf", "anyOf"), **branches[0]}, parts)
    if isinstance(schema.get("type"), list):
        kinds = [t for t in schema["type"] if t != "null"]
        return {**schema, "type": kinds[0] if len(kinds) == 1 else ""}
    return schema


def _without(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" and "properties" in schema and schema.get("connect.type") != "map"


def _members(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Returns the members of an object in the order of their index, without those that may be any value."""
    members = [(name, member) for name, member in schema["properties"].items() if isinstance(member, dict)]
    return sorted(members, key=lambda member: member[1].get("connect.index", len(members)))


def _type(schema: dict[str, Any], parts: Parts) -> TypeName | None:
    """Returns the type of a schema, None if ksqlDB has none for it."""
    schema = _present(schema, parts)
    title, connect = str(schema.get("title", "")).removeprefix(DATA), schema.get("connect.type")
    match schema.get("type"):
        case "boolean":
            return types.BOOLEAN
        case "integer":
            return TITLES.get(title) or INTEGERS.get(str(connect), types.BIGINT)
        case "number" if title == "Decimal":
            digits = schema.get("connect.parameters", {})
            return TypeName("decimal", (int(digits.get("connect.decimal.precision", PRECISION)), int(digits.get("scale", 0))))
        case "number":
            return types.DOUBLE
        case "string":
            return types.BYTES if connect == "bytes" else types.VARCHAR
        case "array" if connect == "map":
            value = _present(schema.get("items"), parts).get("properties", {}).get("value")
            return naming.map_of(_type(value, parts)) if isinstance(value, dict) else None
        case "array" if isinstance(schema.get("items"), dict):
            return naming.array(_type(schema["items"], parts))
        case "object" if _is_object(schema):
            return naming.struct((name, _type(member, parts)) for name, member in _members(schema))
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return naming.map_of(_type(schema["additionalProperties"], parts))
        case None if isinstance(schema.get("enum"), list):
            return types.VARCHAR
    return None
