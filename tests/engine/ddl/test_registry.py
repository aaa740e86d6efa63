"""Answers of the schema registry, and its failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tailgate.engine.ddl import Registry
from tailgate.lake.errors import ConnectionFailure, InvalidParameterValue, UndefinedObject
from tailgate.lake.host.server_thread import ServerThread

ANSWERS = {
    "t-value": (200, {"schema": '{"type":"string"}'}),
    "a%2Fb": (200, {"schema": '"long"'}),
    "p-value": (200, {"schema": "message M {}", "schemaType": "PROTOBUF"}),
    "r-value": (200, {"schema": '{"type":"array","items":"x.Y"}', "references": [{"name": "x.Y", "subject": "y-value", "version": 3}]}),
    "y-value": (200, {"schema": '{"type":"enum","name":"x.Y","symbols":["a"]}'}),
    "g-value": (200, {"schema": '"x.Z"', "references": [{"name": "x.Z", "subject": "gone", "version": 1}]}),
    "j-value": (
        200,
        {"schema": '{"$ref":"y.json"}', "schemaType": "JSON", "references": [{"name": "y.json", "subject": "y-value", "version": 3}]},
    ),
    "broken": (500, {"error_code": 50001}),
}
ASKED: list[str | None] = []


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ASKED.append(self.headers.get("Authorization"))
            status, body = ANSWERS.get(self.path.split("/")[-3], (404, {"error_code": 40401}))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = ServerThread(server, "registry")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    thread.stop()


def test_the_newest_schema_or_none(url: str) -> None:
    assert Registry().latest(url, "t-value") == '{"type":"string"}'
    assert Registry().latest(f"{url}/", "a/b") == '"long"'
    assert Registry().latest(url, "nothing") is None


def test_a_schema_has_those_that_it_references_with_their_names(url: str) -> None:
    schema = Registry().registered(url, "j-value")
    assert schema is not None
    assert (schema.kind, schema.texts[-1]) == ("JSON", '{"$ref":"y.json"}')
    assert schema.names == (("y.json", schema.texts[0]),)


def test_types_of_other_subjects_are_written_out(url: str) -> None:
    schema = json.loads(Registry().latest(url, "r-value") or "")
    assert (schema["items"]["namespace"], schema["items"]["name"], schema["items"]["symbols"]) == ("x", "Y", ["a"])


def test_user_and_password_of_the_url(url: str) -> None:
    Registry().latest(url.replace("//", "//ada:p%40ss@"), "t-value")
    assert ASKED[-1] == "Basic YWRhOnBAc3M="


@pytest.mark.parametrize(
    ("subject", "kind"), [("p-value", InvalidParameterValue), ("g-value", UndefinedObject), ("broken", ConnectionFailure)]
)
def test_what_is_refused(url: str, subject: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Registry().latest(url, subject)


def test_an_unreachable_registry() -> None:
    with pytest.raises(ConnectionFailure) as error:
        Registry().latest("http://ada:secret@127.0.0.1:9", "t-value")
    assert error.value.retriable
    assert "secret" not in error.value.message


def test_no_url() -> None:
    with pytest.raises(InvalidParameterValue):
        Registry().latest("registry:8081", "t-value")
