"""Requests of the HTTP API with their responses, in tests/ksqldb/http.jsonl: reading, sending and comparing them.

`python -m tests.gateway.ksqldb.replay` records the responses again. Read the difference before committing it: each response follows
from ksqlDB's documentation.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.gateway.ksqldb.world import Api, KsqldbWorld

FILE = Path(__file__).parents[2] / "ksqldb" / "http.jsonl"
CHANGING = ("queryId", "lastStatusUpdateMs", "commandSequenceNumber")  # members with other values in each run
OTHERS = ("executionPlan",)  # members that other tests compare
Exchange = dict[str, Any]


def exchanges() -> Iterator[Exchange]:
    for line in FILE.read_text().splitlines():
        yield json.loads(line)


def sent(client: httpx2.Client, exchange: Exchange) -> Exchange:
    """Sends the request of an exchange. Returns it with the response: status, media type and body."""
    body = exchange.get("body")
    data = body if body is None or isinstance(body, str) else json.dumps(body)
    request = client.build_request(exchange["method"], exchange["path"], content=data)
    for name in ("accept", "content-type"):
        request.headers.pop(name, None)
    request.headers.update(exchange.get("headers", {}))
    response = client.send(request)
    fields = {name: exchange[name] for name in ("method", "path", "headers", "body") if name in exchange}
    return {**fields, "status": response.status_code, "type": response.headers.get("content-type", ""), "response": _parsed(response.text)}


def _parsed(text: str) -> Any:
    """Returns a body as JSON, or as a list of the JSON of its lines, without what changes."""
    try:
        return _stable(json.loads(text))
    except ValueError:
        return [_stable(json.loads(line)) for line in text.splitlines()]


def _stable(value: Any) -> Any:
    if isinstance(value, list):
        return [_stable(v) for v in value]
    if isinstance(value, dict):
        return {
            "HOST" if key.startswith("127.0.0.1:") else key: "…" if key in (*CHANGING, *OTHERS) and v else _stable(v)
            for key, v in value.items()
        }
    return value.partition("\nKnown:")[0] if isinstance(value, str) else value  # the known properties are those of SET


def client(api: Api, version: str) -> httpx2.Client:
    """Returns a client of HTTP/1.1, or of HTTP/2 by prior knowledge."""
    return httpx2.Client(base_url=f"http://127.0.0.1:{api.port}", http1=version == "1.1", http2=version == "2", timeout=30, trust_env=False)


def record(requests: list[Exchange]) -> None:
    """Writes the file with the current responses to these requests."""
    with tempfile.TemporaryDirectory() as folder:
        world = KsqldbWorld.filled(Path(folder) / "lake")
        api = Api(world)
        try:
            with client(api, "1.1") as http:
                lines = [json.dumps(sent(http, request), ensure_ascii=False) for request in requests]
        finally:
            api.close()
            world.close()
    FILE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record(json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else list(exchanges()))
