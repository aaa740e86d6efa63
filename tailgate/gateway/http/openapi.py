"""The description of endpoints for other programs: an OpenAPI document made from the catalog.

Source: OpenAPI Specification 3.1.0; JSON Schema 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tailgate.gateway.encode.json_rows import LARGE_NUMBERS, Numbers
from tailgate.gateway.http.bound_endpoints import PAGING, BoundEndpoint, BoundWrite
from tailgate.gateway.writes.plans import InsertPlan
from tailgate.lake.catalog import Endpoint
from tailgate.lake.types import Field, Type

PATH = "/openapi.json"
VERSION = "3.1.0"
FORMATS = {"date": "date", "timestamptz": "date-time", "uuid": "uuid"}
Schema = dict[str, Any]

ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("sqlstate", "message", "detail", "hint")},
            "required": ["sqlstate", "message"],
        }
    },
    "required": ["error"],
}


def document(endpoints: Iterable[BoundEndpoint | BoundWrite]) -> bytes:
    """Returns the document that describes these endpoints, by path."""
    paths: dict[str, Any] = {}
    for bound in sorted(endpoints, key=lambda bound: bound.endpoint.path):
        path = "/".join("{" + part[1:] + "}" if part.startswith(":") else part for part in bound.endpoint.path.split("/"))
        paths.setdefault(path, {})[bound.endpoint.method.lower()] = _operation(bound)
    body = {
        "openapi": VERSION,
        "info": {"title": "Tailgate", "version": "1"},
        "paths": paths,
        "components": {"schemas": {"Error": ERROR}, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
    return json.dumps(body, ensure_ascii=False).encode()


def _operation(bound: BoundEndpoint | BoundWrite) -> Schema:
    endpoint, writes = bound.endpoint, isinstance(bound, BoundWrite)
    object = _object(bound.columns, endpoint.numbers)
    content = {"application/json": {"schema": object if bound.single else {"type": "array", "items": object}}}
    if isinstance(bound, BoundEndpoint) and bound.single and not bound.query.prepared.volatile:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    failed = {"description": "an error", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    answer = {"description": "the object" if bound.single else "the rows" if writes else "a page of rows", "content": content}
    status = "201" if isinstance(bound, BoundWrite) and isinstance(bound.plan, InsertPlan) else "200"
    operation = {
        "operationId": f"{endpoint.name}_{endpoint.id}",
        "parameters": _parameters(bound),
        "responses": {status: answer, "default": failed},
    }
    if writes and (body := _body(endpoint)) is not None:
        operation["requestBody"] = body
    comment = endpoint.comments.get("")
    return operation if comment is None else {"summary": comment, **operation}


def _body(endpoint: Endpoint) -> Schema | None:
    """Returns the description of the JSON object with the parameters that are not in the path, or None if there are none."""
    segments = endpoint.path.split("/")
    members = [p for p in endpoint.parameters if f":{p.name}" not in segments]
    if not members:
        return None
    required = [p.name for p in members if p.name not in endpoint.defaults]
    object = {"type": "object", "properties": {p.name: _nullable(schema_of(p.type)) for p in members}, "required": required}
    return {"required": bool(required), "content": {"application/json": {"schema": {**object, "additionalProperties": False}}}}


def _parameters(bound: BoundEndpoint | BoundWrite) -> list[Schema]:
    segments = bound.endpoint.path.split("/")
    described = []
    for parameter in bound.endpoint.parameters:
        is_path = f":{parameter.name}" in segments
        if isinstance(bound, BoundWrite) and not is_path:
            continue
        required = is_path or parameter.name not in bound.endpoint.defaults
        place = "path" if is_path else "query"
        described.append({"name": parameter.name, "in": place, "required": required, "schema": schema_of(parameter.type)})
    if isinstance(bound, BoundWrite):
        key = {"type": "string", "minLength": 1, "maxLength": 255}
        described.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": key})
    elif not bound.single:
        types = ({"type": "integer"}, {"type": "string"})
        described += [{"name": name, "in": "query", "required": False, "schema": type} for name, type in zip(PAGING, types, strict=True)]
    return described


def _object(fields: Iterable[Field], numbers: Numbers) -> Schema:
    fields = tuple(fields)
    properties = {f.name: _nullable(schema_of(f.type, numbers)) if f.nullable else schema_of(f.type, numbers) for f in fields}
    return {"type": "object", "properties": properties, "required": [f.name for f in fields]}


def _nullable(schema: Schema) -> Schema:
    types = schema.get("type")
    if types is None:  # any value
        return schema
    return {**schema, "type": [*(types if isinstance(types, list) else [types]), "null"]}


def schema_of(type: Type, numbers: Numbers = "number") -> Schema:
    """Returns the schema of the values that `json_rows` writes for a type.

    >>> schema_of(Type("int8")), schema_of(Type("int8"), "text")
    ({'type': 'integer'}, {'type': 'string'})
    """
    if type.multidimensional:
        return {"type": "array", "items": {}}
    if type.is_array:
        return {"type": "array", "items": _nullable(schema_of(type.element, numbers))}
    if numbers == "text" and type.name in LARGE_NUMBERS:
        return {"type": "string"}
    match type.name:
        case "record":
            return _object(type.fields, numbers)
        case "bool":
            return {"type": "boolean"}
        case "int2" | "int4" | "int8" | "oid":
            return {"type": "integer"}
        case "numeric" | "float4" | "float8":
            return {"type": ["number", "string"]}  # NaN and infinity are strings
        case "json" | "jsonb":
            return {}
        case name if name in FORMATS:
            return {"type": "string", "format": FORMATS[name]}
    return {"type": "string"}
