"""A worker of Kafka Connect for tests without Java: the requests of `engine.runtime.connect.client`, with connectors in memory."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

SOURCE, SINK = "test.FileSourceConnector", "test.FileSinkConnector"
DEFINITIONS = [{"name": "file", "type": "STRING"}, {"name": "login", "type": "PASSWORD"}]


class ConnectWorker:
    """A worker, as a context manager. `busy`: how many requests it refuses, as while connectors are distributed."""

    def __init__(self) -> None:
        self.connectors: dict[str, dict[str, str]] = {}
        self.requests: list[tuple[str, str]] = []
        self.busy = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.worker = self  # type: ignore[attr-defined]
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ConnectWorker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Returns the status and the document for a request."""
        if self.busy:
            self.busy -= 1
            return 409, {"message": "Cannot complete request because of a conflicting operation"}
        match [method, *map(unquote, urlsplit(path).path.strip("/").split("/"))]:
            case ["GET", "connector-plugins"]:
                return 200, [{"class": SOURCE, "type": "source", "version": "1"}, {"class": SINK, "type": "sink", "version": "2"}]
            case ["GET", "connector-plugins", _, "config"]:
                return 200, DEFINITIONS
            case ["GET", "connectors"]:
                return 200, {
                    name: {"info": _info(name, config), "status": _status(name, config)} for name, config in self.connectors.items()
                }
            case ["POST", "connectors"] if body["name"] in self.connectors:
                return 409, {"message": f"Connector {body['name']} already exists"}
            case ["POST", "connectors"] if "invalid" in body["config"]:
                return 400, {"message": f"Invalid value {body['config']} for configuration invalid"}
            case ["POST", "connectors"]:
                self.connectors[body["name"]] = body["config"]
                return 201, _info(body["name"], body["config"])
            case [_, "connectors", name, *_] if name not in self.connectors:
                return 404, {"message": f"Connector {name} not found"}
            case ["DELETE", "connectors", name]:
                del self.connectors[name]
                return 204, None
            case ["GET", "connectors", name, "config"]:
                return 200, self.connectors[name]
            case ["GET", "connectors", name, "status"]:
                return 200, _status(name, self.connectors[name])
            case ["GET", "connectors", name, "topics"]:
                return 200, {name: {"topics": [self.connectors[name].get("topic", "t")]}}
        return 404, {"message": "HTTP 404 Not Found"}


def _type(config: dict[str, str]) -> str:
    return "source" if config["connector.class"] == SOURCE else "sink"


def _info(name: str, config: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "config": {**config, "name": name}, "tasks": [], "type": _type(config)}


def _status(name: str, config: dict[str, str]) -> dict[str, Any]:
    """Returns the status of a connector. Its task has failed if it has the property `fails`, whose value is in the trace."""
    task = {"id": 0, "state": "RUNNING", "worker_id": "w:8083"}
    if "fails" in config:
        task |= {"state": "FAILED", "trace": f"Exception: access denied, {config}"}
    return {"name": name, "connector": {"state": "RUNNING", "worker_id": "w:8083"}, "tasks": [task], "type": _type(config)}


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        worker: ConnectWorker = self.server.worker  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
        worker.requests.append((self.command, self.path))
        status, document = worker.answer(self.command, self.path, body)
        data = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        pass
