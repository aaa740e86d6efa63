"""/openapi.json describes the endpoints that the caller may call."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.authorization.world import World
from tests.gateway.http.conftest import Web

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}


def conforms(value: Any, schema: dict[str, Any]) -> bool:
    """Returns whether a value has the types of a schema and exactly its properties."""
    types = schema.get("type")
    if types is None:
        return True
    types = types if isinstance(types, list) else [types]
    name = JSON_TYPES[type(value)]
    if name not in types and not (name == "integer" and "number" in types):
        return False
    if isinstance(value, list):
        return all(conforms(each, schema["items"]) for each in value)
    if isinstance(value, dict):
        properties = schema["properties"]
        return list(value) == schema["required"] and all(conforms(each, properties[key]) for key, each in value.items())
    return True


def test_responses_conform_to_their_description(web: Web, world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE TABLE things (id bigint PRIMARY KEY, n int, score numeric, ratio float8, ok bool, at timestamptz, data jsonb, tags text[])",
        "INSERT INTO things VALUES (1, 1, 1.5, 'NaN', true, '2026-01-02', '[1]', '{a,NULL}')",
        "INSERT INTO things (id) VALUES (2)",
        "CREATE ENDPOINT thing GET '/things/:id' AS SELECT * FROM things WHERE id = :id",
        "CREATE ENDPOINT things GET '/things' (:least int DEFAULT 0) WITH (numbers = 'text') AS SELECT * FROM things WHERE id >= :least",
        "COMMENT ON ENDPOINT thing IS 'one thing'",
    )
    described = web.get("/openapi.json")
    one, many = described["paths"]["/things/{id}"]["get"], described["paths"]["/things"]["get"]
    assert (described["openapi"], one["summary"]) == ("3.1.0", "one thing")
    assert one["parameters"] == [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
    assert [(p["name"], p["in"], p["required"]) for p in many["parameters"]] == [
        ("least", "query", False), ("limit", "query", False), ("cursor", "query", False),
    ]  # fmt: skip
    object, array = (each["responses"]["200"]["content"] for each in (one, many))
    schema = object["application/json"]["schema"]
    assert all(conforms(web.get(f"/things/{id}"), schema) for id in (1, 2))
    assert conforms(web.get("/things"), array["application/json"]["schema"])
    assert not conforms(web.get("/things"), {"type": "array", "items": schema})  # bigint is a string there
    assert ("text/event-stream" in object, "text/event-stream" in array) == (True, False)


def test_the_path_is_reserved(web: Web, world: World) -> None:
    world.sql("tailgate", "CREATE ENDPOINT any_path GET '/:name' (:name text) AS SELECT :name AS name")
    assert "openapi" in web.get("/openapi.json")
    with pytest.raises(psycopg.errors.ReservedName):
        world.sql("tailgate", "CREATE ENDPOINT own_document GET '/openapi.json' AS SELECT 1 AS one")
    world.sql("tailgate", "DROP ENDPOINT any_path")
