"""A Confluent-compatible schema registry over HTTP, as a separate process.

    python -m tailgate.embedded.registry --data DIR --port N

    request ──► ROUTES: the first pattern that matches ──► Subjects (durable) ──► JSON
                                                               └─ RegistryError ──► {"error_code", "message"}, status from the code

Besides Confluent's interface it supports the request with which Apicurio's Connect converter
registers a schema, so a Debezium worker can write Avro with it. It has no users (`RegistryServer` can
be given one), so it listens on 127.0.0.1 unless `--insecure` allows another address. The default
context is the only one.

Measured on a 2-core machine: ready in 0.1 to 0.3 s, 25 MB, idle under 0.1 % of a core.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tailgate.embedded.children import Child, ChildServer, await_free, free_port
from tailgate.embedded.kinds import KINDS
from tailgate.embedded.subjects import Reference, RegistryError, Schema, Subjects
from tailgate.lake.host.http import BadRequest, body_length

BODY_BYTES_MAX = 16 << 20  # Confluent's limit is 8 MB for a record with a schema
IDLE_CONNECTION = timedelta(minutes=5)  # each connection has a thread; clients reconnect automatically
READY_TIMEOUT = timedelta(seconds=30)  # 0.1 to 0.3 s measured
LOOPBACK = "127.0.0.1"
ANNOUNCEMENT = "schema registry on"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class Request:
    """A request to a route: the matched parts of its path, the query, the body, and the subjects."""

    def __init__(
        self, subjects: Subjects, parts: tuple[str, ...], query: dict[str, list[str]], body: bytes, headers: dict[str, str]
    ) -> None:
        self.subjects = subjects
        self.parts = tuple(unquote(part) for part in parts)
        self.headers = headers
        self._query = query
        self._body = body

    def flag(self, name: str) -> bool:
        """Returns whether a query parameter is true."""
        return self.text(name).lower() == "true"  # Python clients say True

    def text(self, name: str) -> str:
        """Returns a query parameter, or an empty text."""
        return self._query.get(name, [""])[-1]

    def number(self, name: str, otherwise: int) -> int:
        """Returns a query parameter as an integer, or `otherwise` if it is not one."""
        try:
            return int(self.text(name) or otherwise)
        except ValueError:
            return otherwise

    def raw(self) -> str:
        """Returns the body as text."""
        return self._body.decode("utf-8", "replace")

    def json(self) -> dict[str, Any]:
        """Returns the body as a JSON object. Raises 42201 if it is not one."""
        try:
            value = json.loads(self._body or b"{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise RegistryError(42201, "The request's body is not a JSON object")
        return value

    def schema(self) -> Schema:
        """Returns the schema in the body, which has no id yet."""
        body = self.json()
        kind = body.get("schemaType") or "AVRO"
        if kind not in KINDS:
            raise RegistryError(42201, f"Invalid schema type {kind}: this registry holds {' and '.join(KINDS)}")
        if not isinstance(body.get("schema"), str):
            raise RegistryError(42201, "Empty schema")
        try:
            references = tuple(Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in body.get("references") or ())
        except (KeyError, TypeError, ValueError) as error:
            raise RegistryError(42201, "A reference is not {name, subject, version}") from error
        return Schema(0, body["schema"], references, kind)


def _described(schema: Schema) -> dict[str, Any]:
    references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    kind = {} if schema.kind == "AVRO" else {"schemaType": schema.kind}
    return {"schema": schema.text, **kind, **({"references": references} if references else {})}


def _versioned(subject: str, version: int, schema: Schema) -> dict[str, Any]:
    return {"subject": subject, "version": version, "id": schema.id, **_described(schema)}


def _page(request: Request, items: list[Any]) -> list[Any]:
    offset, limit = request.number("offset", 0), request.number("limit", -1)
    return items[offset:] if limit < 0 else items[offset : offset + limit]


def _id(text: str) -> int:
    if not text.isdecimal():
        raise RegistryError(40403, f"Schema {text} not found")
    return int(text)


def _schema_of_id(request: Request) -> Any:
    answer = _described(request.subjects.schema(_id(request.parts[0])))
    return {**answer, "maxId": request.subjects.newest_id()} if request.flag("fetchMaxId") else answer


def _uses_of_id(request: Request) -> list[tuple[str, int]]:
    id = _id(request.parts[0])
    request.subjects.schema(id)
    return request.subjects.uses(id, request.flag("deleted"))


def _subjects_of_id(request: Request) -> Any:
    return sorted({subject for subject, _ in _uses_of_id(request)})


def _register(request: Request) -> Any:
    version, id = request.subjects.register(request.parts[0], request.schema())
    return _versioned(request.parts[0], version, request.subjects.schema(id))


def _lookup(request: Request) -> Any:
    version, schema = request.subjects.lookup(request.parts[0], request.schema(), deleted=request.flag("deleted"))
    return _versioned(request.parts[0], version, schema)


def _numbers(request: Request) -> Any:
    return _page(request, request.subjects.numbers(request.parts[0], request.flag("deleted"), request.flag("deletedOnly")))


def _version(request: Request) -> Any:
    return _versioned(request.parts[0], *request.subjects.version(*request.parts, deleted=request.flag("deleted")))


def _schema_of_version(request: Request) -> Any:
    return _written(request.subjects.version(*request.parts, deleted=request.flag("deleted"))[1])


def _written(schema: Schema) -> Any:
    """Returns the schema as a JSON value; a Protobuf schema is a string."""
    return json.loads(schema.text) if schema.kind == "AVRO" else schema.text


def _referenced_by(request: Request) -> Any:
    return request.subjects.referenced_by(request.parts[0], request.subjects.version(*request.parts)[0])


def _compatible(request: Request) -> Any:
    against = request.parts[1] if len(request.parts) > 1 else None
    problems = request.subjects.incompatibilities(request.parts[0], request.schema(), against=against)
    return {"is_compatible": not problems, **({"messages": problems} if request.flag("verbose") else {})}


def _subject_or_all(request: Request) -> str | None:
    return request.parts[0] if request.parts else None


def _level(request: Request) -> Any:
    own = bool(request.parts) and not request.flag("defaultToGlobal")
    return {"compatibilityLevel": request.subjects.level(_subject_or_all(request), default_to_global=not own)}


def _set_level(request: Request) -> Any:
    return {"compatibility": request.subjects.set_level(_subject_or_all(request), str(request.json().get("compatibility")).upper())}


def _mode(request: Request) -> Any:
    own = bool(request.parts) and not request.flag("defaultToGlobal")
    return {"mode": request.subjects.mode(_subject_or_all(request), default_to_global=not own)}


def _set_mode(request: Request) -> Any:
    return {"mode": request.subjects.set_mode(_subject_or_all(request), str(request.json().get("mode")).upper())}


def _apicurio_register(request: Request) -> Any:
    """Registers a schema in Apicurio's protocol, under the subject in the header X-Registry-ArtifactId."""
    subject = request.headers.get("x-registry-artifactid", "")
    version, id = request.subjects.register(subject, Schema(0, request.raw()))
    name = json.loads(request.raw())
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000")
    return {
        "id": subject,
        "type": "AVRO",
        "version": str(version),
        "globalId": id,
        "contentId": id,  # the converter writes either of the two ids, so both are equal
        "state": "ENABLED",
        "name": name.get("name", subject) if isinstance(name, dict) else subject,
        "createdOn": now,
        "modifiedOn": now,
        "createdBy": "",
        "modifiedBy": "",
        "references": [],
    }


def _no_associations(request: Request) -> Any:
    raise RegistryError(40410, f"No associations for resource {request.parts[0]}")  # clients then derive subject names from topics


ROUTES: tuple[tuple[str, re.Pattern[str], Callable[[Request], Any]], ...] = tuple(
    (method, re.compile(pattern.replace("*", "([^/]+)")), answer)
    for method, pattern, answer in (
        ("GET", "/", lambda request: {}),
        ("GET", "/schemas/types", lambda request: list(KINDS)),
        ("GET", "/schemas/ids/*", _schema_of_id),
        ("GET", "/schemas/ids/*/schema", lambda request: _written(request.subjects.schema(_id(request.parts[0])))),
        ("GET", "/schemas/ids/*/subjects", _subjects_of_id),
        ("GET", "/schemas/ids/*/versions", lambda request: [{"subject": name, "version": number} for name, number in _uses_of_id(request)]),
        (
            "GET",
            "/subjects",
            lambda request: _page(request, request.subjects.names(request.flag("deleted"), request.text("subjectPrefix"))),
        ),
        ("POST", "/subjects/*", _lookup),
        ("DELETE", "/subjects/*", lambda request: request.subjects.delete_subject(request.parts[0], request.flag("permanent"))),
        ("GET", "/subjects/*/versions", _numbers),
        ("POST", "/subjects/*/versions", _register),
        ("GET", "/subjects/*/versions/*", _version),
        ("DELETE", "/subjects/*/versions/*", lambda request: request.subjects.delete_version(*request.parts, request.flag("permanent"))),
        ("GET", "/subjects/*/versions/*/schema", _schema_of_version),
        ("GET", "/subjects/*/versions/*/referencedby", _referenced_by),
        ("POST", "/compatibility/subjects/*/versions", _compatible),
        ("POST", "/compatibility/subjects/*/versions/*", _compatible),
        ("GET", "/config", _level),
        ("PUT", "/config", _set_level),
        ("DELETE", "/config", lambda request: request.subjects.set_level(None, None)),
        ("GET", "/config/*", _level),
        ("PUT", "/config/*", _set_level),
        ("DELETE", "/config/*", lambda request: request.subjects.set_level(request.parts[0], None)),
        ("GET", "/mode", _mode),
        ("PUT", "/mode", _set_mode),
        ("GET", "/mode/*", _mode),
        ("PUT", "/mode/*", _set_mode),
        ("DELETE", "/mode/*", lambda request: {"mode": request.subjects.set_mode(request.parts[0], None)}),
        ("GET", "/contexts", lambda request: ["."]),
        ("GET", "/associations/resources/[^/]+/*", _no_associations),
        ("POST", "/apis/registry/v2/groups/[^/]+/artifacts", _apicurio_register),
    )
)


class _Handler(BaseHTTPRequestHandler):
    """The handler of one HTTP connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_CONNECTION.total_seconds()
    wbufsize = -1  # sends header and body in one packet
    disable_nagle_algorithm = True
    server: RegistryServer

    def _answer(self) -> None:
        """Checks the credentials, finds the route of the request, and sends its response."""
        if self.server.authorization not in (None, self.headers.get("Authorization")):
            return self._send(401, {"error_code": 401, "message": "Unauthorized"})
        try:
            body = self.rfile.read(body_length(self.headers, BODY_BYTES_MAX))
        except BadRequest as error:
            self.close_connection = True
            return self._send(error.status, {"error_code": error.status, "message": error.message})
        url = urlsplit(self.path)
        path = url.path.rstrip("/") or "/"
        for method, pattern, answer in ROUTES:
            if method == self.command and (match := pattern.fullmatch(path)):
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.server.subjects, match.groups(), parse_qs(url.query), body, headers)
                try:
                    return self._send(200, answer(request))
                except RegistryError as error:
                    return self._send(error.status, {"error_code": error.code, "message": error.message})
        path_exists = any(pattern.fullmatch(path) for _, pattern, _ in ROUTES)
        status = 405 if path_exists else 404
        return self._send(status, {"error_code": status, "message": f"HTTP {status}: {self.command} {path}"})

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # names that http.server requires

    def _send(self, status: int, answer: Any) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Discards the log of requests. Errors are sent to the client, and tracebacks go to standard error."""


class RegistryServer(ThreadingHTTPServer):
    """The registry in this process: call `serve_forever()` in a thread, and `shutdown()` to end it.

    `user`: name and password that every request must have, if set. `tls`: enables HTTPS.
    """

    daemon_threads = True
    request_queue_size = 128
    address_family = socket.AF_INET

    def __init__(
        self, data: Path, port: int, host: str = LOOPBACK, user: tuple[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.subjects = Subjects(data / "events.jsonl")
        self.authorization = None if user is None else "Basic " + base64.b64encode(":".join(user).encode()).decode()
        super().__init__((host, port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)  # the handshake is done in threads

    def server_close(self) -> None:
        super().server_close()
        self.subjects.close()


class Registry(ChildServer):
    """The registry as a child process over a data folder, which remembers its port. `environment`: variables added to ours."""

    ready_timeout = READY_TIMEOUT

    def __init__(self, data: Path, port: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.data = data.absolute()
        self._environment = environment
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        remembered = self.data / "port"
        if remembered.exists():
            self.port = int(remembered.read_text())
            if port not in (None, self.port):
                raise ValueError(f"the registry of {self.data} has port {self.port}, which its clients know; {port} was asked for")
        else:
            self.port = port or free_port()
            remembered.write_text(f"{self.port}\n")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> Child:
        """Starts it without waiting; it announces itself when it accepts requests. Raises ChildFailed if its port is in use."""
        await_free(LOOPBACK, self.port)
        command = [sys.executable, "-m", "tailgate.embedded.registry", "--data", str(self.data), "--port", str(self.port)]
        log = self.data / "registry.log"
        self._child = Child("schema registry", command, log=log, environment=self._environment, announces=ANNOUNCEMENT)
        return self._child


def main() -> None:
    """Runs the registry as a process until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tailgate.embedded.registry", description="A Confluent-compatible schema registry.")
    parser.add_argument("--data", type=Path, required=True, help="its folder")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default=LOOPBACK, help=f"the address to listen on ({LOOPBACK})")
    parser.add_argument("--insecure", action="store_true", help="allow --host beyond loopback: anybody who reaches it may write")
    arguments = parser.parse_args()
    if arguments.host != LOOPBACK and not arguments.insecure:
        parser.error(f"--host {arguments.host} would let any machine write; give --insecure where something else guards the port")
    server = RegistryServer(arguments.data, arguments.port, arguments.host)
    for number in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever(), which runs in this thread, so it needs another thread
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"{ANNOUNCEMENT} http://{arguments.host}:{arguments.port}", flush=True)
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
