"""A server with the S3 API for tests: moto, in a process on 127.0.0.1, whose requests can be made to fail.

moto checks the condition of a PUT and stores the object in two steps. A lock around each request makes
them one, as in S3. One in `failures` requests fails, in the ways of FAILURES.

A process is known by its access key: `S3.environment_of(process)` has the process's name as the key.
"""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import threading
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from tailgate.embedded.children import Child, free_port

BUCKET = "bucket"
CONTROL = "/-tailgate"  # no bucket can have this name
REQUESTS_MAX = 100_000  # requests that are remembered
READY_TIMEOUT = timedelta(seconds=60)  # 3 s measured, to import moto
# (whether the request takes effect, the status of the response, or None if the connection is cut)
FAILURES = ((False, 503), (True, 503), (False, None), (True, None), (False, 412), (True, 412))
REFUSALS = (4, 5)  # only requests with a condition are refused


class Request(NamedTuple):
    """A request: the name of its process, its method, and the object or the listed prefix. A failure is one more, FAILED."""

    process: str
    method: str
    name: str


class S3:
    """A running server. It has the bucket BUCKET. `environment`: the variables with its address and credentials."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_REGION": "us-east-1",
        }
        command = [sys.executable, "-m", "testing.s3", str(self._port)]
        self._child = Child("s3", command, log=folder / "s3.log", environment={"PYTHONPATH": str(Path(__file__).parents[1])})
        self._child.wait_ready(self._answers, READY_TIMEOUT)
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/{BUCKET}", method="PUT"), timeout=10).close()

    def stop(self) -> None:
        self._child.stop()

    def set(
        self,
        *,
        failures: int = 0,
        seed: int = 0,
        kinds: Sequence[int] = range(6),
        count: int = 1 << 30,
        ignored: str = "",
        refused: str = "",
        denied: str = "",
        put_ms: float = 0,
        get_ms: float = 0,
    ) -> None:
        """Sets which requests fail: one in `failures`, none for 0; `kinds` are indexes of FAILURES. No more fail after `count`.

        `ignored`: a header that the server ignores, by its name in WSGI. `refused`: an access key or a session token without access.
        `denied`: a part of the names of objects that cannot be put.
        `put_ms`, `get_ms`: the delays of requests that change objects, and of others.
        """
        settings = {"failures": failures, "seed": seed, "kinds": list(kinds), "count": count, "ignored": ignored, "refused": refused}
        self._control({**settings, "denied": denied, "put_ms": put_ms, "get_ms": get_ms})

    def environment_of(self, process: str) -> dict[str, str]:
        """Returns the variables for a process whose requests are counted under a name."""
        return {**self.environment, "AWS_ACCESS_KEY_ID": process}

    def requests(self) -> Counter[str]:
        """Returns the number of requests since the last call, by method; lists are LIST, failures FAILED."""
        return Counter(request.method for request in self.request_log())

    def request_log(self) -> list[Request]:
        """Returns the requests since the last call of `request_log` or `requests`, the newest REQUESTS_MAX, in order."""
        return [Request(*request) for request in self._control({})]

    def _control(self, settings: dict[str, Any]) -> list[tuple[str, str, str]]:
        request = urllib.request.Request(self.url + CONTROL, data=json.dumps(settings).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            requests: list[tuple[str, str, str]] = json.load(response)
            return requests

    def _answers(self) -> bool:
        try:
            self.requests()
        except OSError:
            return False
        return True


class _Application:
    """moto's WSGI application, one request at a time, with failures."""

    def __init__(self, moto: Callable[..., Iterable[bytes]]) -> None:
        self._moto = moto
        self._lock = threading.Lock()
        self._requests: deque[Request] = deque(maxlen=REQUESTS_MAX)
        self._set(failures=0, seed=0, kinds=[], count=0, ignored="", refused="", denied="", put_ms=0, get_ms=0)

    def _set(
        self,
        *,
        failures: int,
        seed: int,
        kinds: list[int],
        count: int,
        ignored: str,
        refused: str,
        denied: str,
        put_ms: float,
        get_ms: float,
    ) -> None:
        self._delays_ms, self._refused, self._denied = (put_ms, get_ms), refused, denied
        self._failures, self._chance, self._kinds, self._count, self._ignored = failures, random.Random(seed), kinds, count, ignored

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment["PATH_INFO"] == CONTROL:
            return self._control(environment, start)
        time.sleep(self._delays_ms[environment["REQUEST_METHOD"] in ("GET", "HEAD")] / 1000)  # requests are delayed at the same time
        with self._lock:
            return self._answer(environment, start)

    def _control(self, environment: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        settings = json.loads(environment["wsgi.input"].read(int(environment["CONTENT_LENGTH"])))
        with self._lock:
            if settings:
                self._set(**settings)
            requests = list(self._requests)
            if not settings:
                self._requests.clear()
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(requests).encode()]

    def _answer(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, query = environment["REQUEST_METHOD"], environment["QUERY_STRING"]
        key = re.search("Credential=([^/]*)/", environment.get("HTTP_AUTHORIZATION", ""))
        prefix = parse_qs(query).get("prefix", [""])[0] if "list-type" in query else None
        name = environment["PATH_INFO"].removeprefix(f"/{BUCKET}/") if prefix is None else prefix
        request = Request("" if key is None else key[1], method if prefix is None else "LIST", name)
        self._requests.append(request)
        conditional = "HTTP_IF_MATCH" in environment or "HTTP_IF_NONE_MATCH" in environment
        environment.pop(self._ignored, None)
        refused = self._refused and self._refused in (request.process, environment.get("HTTP_X_AMZ_SECURITY_TOKEN"))
        if refused or (self._denied and method == "PUT" and self._denied in name):
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", "0")])
            return []
        if not self._failures or not self._count or self._chance.randrange(self._failures):
            return self._moto(environment, start)
        self._count -= 1
        effective, status = FAILURES[self._chance.choice([kind for kind in self._kinds if kind not in REFUSALS or conditional])]
        self._requests.append(request._replace(method="FAILED"))
        if effective:
            b"".join(self._moto(environment, lambda *_: None))
        else:
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
        if status is None:
            environment["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        start(f"{status} Failed", [("Content-Type", "application/xml"), ("Content-Length", "0")])
        return []


def main(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None: ...

    application = _Application(DomainDispatcherApplication(create_backend_app))
    make_server("127.0.0.1", port, application, threaded=True, request_handler=Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
