"""Tests the embedded registry with confluent-kafka's client, and over HTTP where the client has no call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tailgate.embedded.children import free_port
from tailgate.embedded.registry import Registry

ID = '{"name": "id", "type": "long"}'


def user(*fields: str) -> str:
    return '{"type": "record", "name": "User", "fields": [' + ", ".join(fields) + "]}"


USER = user(ID)
USER_WITH_EMAIL = user(ID, '{"name": "email", "type": ["null", "string"], "default": null}')
USER_WITH_DEMANDED_EMAIL = user(ID, '{"name": "email", "type": "string"}')
USER_WITH_TEXT_ID = user('{"name": "id", "type": "string"}')


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Registry]:
    """Starts an empty registry for one test; its ids begin at 1."""
    registry = Registry(tmp_path / "registry")
    registry.start()
    yield registry
    registry.stop()


@pytest.fixture
def client(own: Registry) -> SchemaRegistryClient:
    return client_of(own)


_opened: list[SchemaRegistryClient] = []


def client_of(registry: Registry) -> SchemaRegistryClient:
    """Returns a client with an empty cache; it is closed at the end of the test."""
    _opened.append(SchemaRegistryClient({"url": registry.url}))
    return _opened[-1]


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def avro(text: str) -> Schema:
    return Schema(text, "AVRO")


def call(registry: Registry, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(registry.url + path, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def refused(code: int) -> Any:
    return pytest.raises(SchemaRegistryError, check=lambda error: error.error_code == code and error.http_status_code == int(str(code)[:3]))


def test_serializers_write_and_read(own: Registry) -> None:
    context = SerializationContext("users", MessageField.VALUE)
    data = AvroSerializer(client_of(own), USER_WITH_EMAIL)({"id": 7, "email": "a@b"}, context)
    assert data[:5] == b"\0" + (1).to_bytes(4, "big")
    assert AvroDeserializer(client_of(own))(data, context) == {"id": 7, "email": "a@b"}
    # The deserializer reads with an older schema.
    assert AvroDeserializer(client_of(own), USER)(data, context) == {"id": 7}
    assert client_of(own).get_subjects() == ["users-value"]


def test_serializers_without_registration(own: Registry) -> None:
    context = SerializationContext("users", MessageField.KEY)
    strict = AvroSerializer(client_of(own), USER, conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError):
        strict({"id": 1}, context)
    client_of(own).register_schema("users-key", avro(USER))
    assert strict({"id": 1}, context)[:5] == b"\0\0\0\0\1"
    latest = AvroSerializer(client_of(own), USER, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert latest({"id": 1}, context)[:5] == b"\0\0\0\0\1"


def test_an_id_belongs_to_a_content(client: SchemaRegistryClient) -> None:
    assert client.register_schema("a", avro(USER)) == 1
    assert client.register_schema("a", avro(USER_WITH_EMAIL)) == 2
    assert client.register_schema("b", avro(USER_WITH_EMAIL)) == 2
    assert client.register_schema("a", avro(json.dumps(json.loads(USER), indent=2))) == 1
    assert client.get_versions("a") == [1, 2]
    assert client.get_versions("b") == [1]
    registered = client.get_latest_version("b")
    assert (registered.subject, registered.version, registered.schema_id) == ("b", 1, 2)
    assert client.get_version("a", 1).schema.schema_str == USER
    schema = client.lookup_schema("a", avro(USER))
    assert (schema.version, schema.schema_id) == (1, 1)
    assert client.get_schema(2).schema_str == USER_WITH_EMAIL
    assert [(v.subject, v.version) for v in client.get_schema_versions(2)] == [("a", 2), ("b", 1)]
    assert client.get_subjects_by_schema_id(2) == ["a", "b"]


def test_misses_have_confluents_codes(client: SchemaRegistryClient) -> None:
    with refused(40401):
        client.get_latest_version("nobody")
    with refused(40401):
        client.get_versions("nobody")
    with refused(40403):
        client.get_schema(99)
    client.register_schema("s", avro(USER))
    with refused(40402):
        client.get_version("s", 9)
    with refused(40403):
        client.lookup_schema("s", avro(USER_WITH_EMAIL))
    with refused(42201):
        client.register_schema("s", avro('{"type": "recrod"}'))
    with refused(42201):
        client.register_schema("s", avro("not even JSON"))
    with refused(42201):
        client.register_schema("s", Schema("[]", "JSON"))


def test_compatibility_by_level(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema("s", avro(USER))
    assert client.test_compatibility("s", avro(USER_WITH_EMAIL))
    assert not client.test_compatibility("s", avro(USER_WITH_DEMANDED_EMAIL))
    with refused(40901):
        client.register_schema("s", avro(USER_WITH_DEMANDED_EMAIL))

    assert client.set_compatibility("s", "FORWARD") == {"compatibility": "FORWARD"}
    assert client.get_compatibility("s") == "FORWARD"
    assert client.test_compatibility("s", avro(USER_WITH_DEMANDED_EMAIL))
    client.set_compatibility("s", "FULL")
    assert not client.test_compatibility("s", avro(USER_WITH_DEMANDED_EMAIL))
    client.set_compatibility("s", "NONE")
    assert client.test_compatibility("s", avro(USER_WITH_TEXT_ID))
    with refused(42203):
        client.set_compatibility("s", "SIDEWAYS")
    with refused(40408):
        client.get_compatibility("without")


def test_transitive_levels_look_at_all_versions(client: SchemaRegistryClient) -> None:
    client.set_compatibility("s", "NONE")
    client.register_schema("s", avro(USER_WITH_TEXT_ID))
    client.register_schema("s", avro(USER))
    client.set_compatibility("s", "BACKWARD")
    assert client.test_compatibility("s", avro(USER_WITH_EMAIL))
    client.set_compatibility("s", "BACKWARD_TRANSITIVE")
    with refused(40901):
        client.register_schema("s", avro(USER_WITH_EMAIL))


def test_deletes_are_soft_then_permanent(own: Registry, client: SchemaRegistryClient) -> None:
    client.register_schema("s", avro(USER))
    client.register_schema("s", avro(USER_WITH_EMAIL))
    with refused(40407):
        client.delete_version("s", 1, permanent=True)
    assert client.delete_version("s", 1) == 1
    with refused(40406):
        client.delete_version("s", 1)
    assert client.get_versions("s") == [2]
    assert client.get_versions("s", deleted=True) == [1, 2]
    assert call(own, "GET", "/schemas/ids/1")[0] == 200, "messages with it may still be about"
    with refused(40405):
        client.delete_subject("s", permanent=True)
    assert client.delete_subject("s") == [2]
    with refused(40404):
        client.delete_subject("s")
    assert client.get_subjects() == []
    assert client.get_subjects(deleted=True) == ["s"]
    assert call(own, "DELETE", "/subjects/s?permanent=true") == (200, [1, 2])
    assert call(own, "GET", "/schemas/ids/1") == (404, {"error_code": 40403, "message": "Schema 1 not found"})
    assert client_of(own).register_schema("s", avro(USER)) == 1, "a content keeps its id"


def test_versions_continue_after_a_soft_delete(own: Registry) -> None:
    client_of(own).register_schema("s", avro(USER))
    call(own, "DELETE", "/subjects/s")
    assert client_of(own).register_schema("s", avro(USER)) == 1
    assert client_of(own).get_versions("s") == [2]


def test_modes_and_the_rest_of_the_tour(own: Registry, client: SchemaRegistryClient) -> None:
    assert client.get_global_mode() == "READWRITE"
    client.update_mode("s", "READONLY")
    assert client.get_mode("s") == "READONLY"
    with refused(42205):
        client.register_schema("s", avro(USER))
    with refused(42204):
        client.update_mode("s", "SOMETIMES")
    assert call(own, "DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    client.register_schema("s", avro(USER))
    assert client.get_contexts() == ["."]
    assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]
    assert call(own, "GET", "/associations/resources/-/s?resourceType=topic&associationType=value")[0] == 404
    assert call(own, "GET", "/nowhere") == (404, {"error_code": 404, "message": "HTTP 404: GET /nowhere"})
    assert call(own, "DELETE", "/subjects")[0] == 405
    assert call(own, "GET", "/subjects/s/versions/zero")[1]["error_code"] == 42202
    assert call(own, "POST", "/subjects/s/versions", b"[]")[1]["error_code"] == 42201
    assert call(own, "GET", "/subjects/s/versions/latest/schema") == (200, json.loads(USER))


def test_subjects_may_hold_any_sign(client: SchemaRegistryClient) -> None:
    for subject in ("a/b", "ä ö", "100%", "a?b&c"):
        client.register_schema(subject, avro(USER))
        assert client.get_latest_version(subject).subject == subject
    with refused(42208):
        client.register_schema(":.context:s", avro(USER))


def test_references(own: Registry, client: SchemaRegistryClient) -> None:
    client.register_schema("user", avro(USER))
    order = '{"type": "record", "name": "Order", "fields": [{"name": "by", "type": "User"}]}'
    with refused(42201):
        client.register_schema("order", avro(order))
    referring = Schema(order, "AVRO", [SchemaReference("User", "user", 1)])
    assert client.register_schema("order", referring) == 2
    references = client.get_version("order", 1).schema.references
    assert [(r.name, r.subject, r.version) for r in references] == [("User", "user", 1)]
    assert call(own, "GET", "/subjects/user/versions/1/referencedby") == (200, [2])
    with refused(42206):
        client.delete_subject("user")


def test_protobuf(own: Registry, client: SchemaRegistryClient) -> None:
    """Protobuf schemas are stored unchanged, parsed with their imports, and checked for compatibility."""
    part = 'syntax = "proto3"; package shop; message Part { int32 n = 1; }'
    client.register_schema("part", Schema(part, "PROTOBUF"))
    order = 'syntax = "proto3"; import "part.proto"; message Order { int64 id = 1; %s shop.Part part = 2; }'
    referring = [SchemaReference("part.proto", "part", 1)]
    assert client.register_schema("order", Schema(order % "", "PROTOBUF", referring)) == 2
    assert client.register_schema("order", Schema((order % "").replace(" ", "\n"), "PROTOBUF", referring)) == 2, (
        "the same but for white space"
    )
    with refused(42201):
        client.register_schema("order", Schema(order % "", "PROTOBUF"))  # without its import
    with refused(42201):
        client.register_schema("order", Schema("message Order {", "PROTOBUF"))
    with refused(42201):
        client.register_schema("order", Schema("message Order {", "PROTOBUFF"))
    assert client.register_schema("order", Schema(order % "string note = 3;", "PROTOBUF", referring)) == 3
    for change in ("required int32 n = 4;", "string id = 1;", "repeated int32 id = 1;"):
        changed = (
            (order % change).replace('syntax = "proto3";', "").replace("int64 id = 1;", "" if "= 1" in change else "optional int64 id = 1;")
        )
        with refused(40901):
            client.register_schema("order", Schema(changed.replace("shop.Part", "optional shop.Part"), "PROTOBUF", referring))
    with refused(40901):
        client.register_schema("order", Schema('syntax = "proto3"; message Other { int64 id = 1; }', "PROTOBUF"))
    with refused(40901):
        client.register_schema("order", avro(USER))
    newest = client.get_latest_version("order")
    assert (newest.version, newest.schema.schema_type, newest.schema.schema_str) == (2, "PROTOBUF", order % "string note = 3;")
    assert client.get_schema(3).schema_type == "PROTOBUF"
    assert call(own, "GET", "/schemas/ids/3/schema") == (200, order % "string note = 3;")


def test_apicurios_converter_registers(own: Registry) -> None:
    path = "/apis/registry/v2/groups/default/artifacts?ifExists=RETURN_OR_UPDATE&canonical=false"
    headers = {"X-Registry-ArtifactId": "shop.users-value", "X-Registry-ArtifactType": "AVRO"}
    for _ in range(2):
        status, answer = call(own, "POST", path, USER.encode(), headers)
        assert status == 200
        assert (answer["id"], answer["globalId"], answer["contentId"], answer["version"]) == ("shop.users-value", 1, 1, "1")
    assert client_of(own).get_latest_version("shop.users-value").schema_id == 1


def test_everything_outlives_the_process(own: Registry) -> None:
    first = client_of(own)
    first.register_schema("a", avro(USER))
    first.register_schema("a", avro(USER_WITH_EMAIL))
    first.register_schema("b", avro(USER_WITH_TEXT_ID))
    first.set_compatibility("a", "FULL")
    first.update_mode("b", "READONLY")
    first.delete_version("a", 1)
    port = own.port
    os.killpg(own.pid, signal.SIGKILL)
    # A crash in the middle of a line, before the registration was acknowledged.
    with (own.data / "events.jsonl").open("ab") as events:
        events.write(b'{"event":"version","subject":"c","ver')

    again = Registry(own.data)
    again.start()
    try:
        client = client_of(again)
        assert again.port == port
        assert client.get_subjects() == ["a", "b"]
        assert client.get_versions("a", deleted=True) == [1, 2]
        assert client.get_versions("a") == [2]
        assert client.get_schema(3).schema_str == USER_WITH_TEXT_ID
        assert client.get_compatibility("a") == "FULL"
        assert client.get_mode("b") == "READONLY"
        assert client.register_schema("c", avro('"long"')) == 4
    finally:
        again.stop()


def test_many_register_at_once(registry: Registry) -> None:
    def register(n: int) -> int:
        return int(client_of(registry).register_schema(f"many-{n % 3}", avro(f'{{"type": "fixed", "name": "Many", "size": {n // 8 + 1}}}')))

    client_of(registry).set_compatibility(level="NONE")
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(register, range(32)))
    assert len(set(ids)) == 4
    assert all(len(set(ids[i : i + 8])) == 1 for i in range(0, 32, 8))
    client_of(registry).set_compatibility(level="BACKWARD")


def test_debezium_schemas_are_taken(registry: Registry) -> None:
    """The schemas reuse names, have Debezium's logical types, and have null first or last in unions."""
    value = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.Timestamp"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 2}},
        ],
    }
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.users",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "snapshot", "type": [{"type": "string", "connect.default": "false"}, "null"], "default": "false"},
        ],
    }
    client = client_of(registry)
    id = client.register_schema("debezium-value", avro(json.dumps(envelope)))
    value["fields"].append({"name": "score", "type": ["null", "double"], "default": None})  # type: ignore[attr-defined]
    assert client.register_schema("debezium-value", avro(json.dumps(envelope))) != id


def test_another_port_is_refused_for_a_folder_that_has_one(tmp_path: Path) -> None:
    port = free_port()
    assert Registry(tmp_path, port).url == f"http://127.0.0.1:{port}"
    with pytest.raises(ValueError, match=f"has port {port}"):
        Registry(tmp_path, port + 1)


def test_a_path_is_taken_apart_before_it_is_unquoted(registry: Registry) -> None:
    subject = quote("x/versions/1", safe="")
    assert call(registry, "POST", f"/subjects/{subject}/versions", {"schema": USER})[0] == 200
    assert call(registry, "GET", f"/subjects/{subject}/versions")[1] == [1]


def test_other_addresses_than_loopback_need_an_option(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailgate.embedded.registry", "--data", str(tmp_path), "--port", "1", "--host", "0.0.0.0"]
    refusal = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert refusal.returncode == 2
    assert "--insecure" in refusal.stderr
