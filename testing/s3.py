"""A server with the S3 API for tests: moto, in a process on 127.0.0.1, whose requests can be made to fail.

moto checks the condition of a PUT and stores the object in two steps. A lock around each request makes
them one, as in S3. One in `failures` requests fails, in the ways of FAILURES.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tailgate.embedded.children import Child, free_port

BUCKET = "bucket"
CONTROL = "/-tailgate"  # no bucket can have this name
READY_TIMEOUT = timedelta(seconds=60)  # 3 s measured, to import moto
# (whether the request takes effect, the status of the response, or None if the connection is cut)
FAILURES = ((False, 503), (True, 503), (False, None), (True, None), (False, 412), (True, 412))
REFUSALS = (4, 5)  # only requests with a condition are refused


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

    def set(self, *, failures: int = 0, seed: int = 0, kinds: Sequence[int] = range(6), count: int = 1 << 30, ignored: str = "") -> None:
        """Sets which requests fail: one in `failures`, none for 0; `kinds` are indexes of FAILURES. No more fail after `count`.

        `ignored`: a header that the server ignores, by its name in WSGI.
        """
        self._control({"failures": failures, "seed": seed, "kinds": list(kinds), "count": count, "ignored": ignored})

    def requests(self) -> Counter[str]:
        """Returns the number of requests since the last call, by method; lists are LIST, failures FAILED."""
        return Counter(self._control({}))

    def _control(self, settings: dict[str, Any]) -> dict[str, int]:
        request = urllib.request.Request(self.url + CONTROL, data=json.dumps(settings).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            counts: dict[str, int] = json.load(response)
            return counts

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
        self._counts: Counter[str] = Counter()
        self._set(failures=0, seed=0, kinds=[], count=0, ignored="")

    def _set(self, failures: int, seed: int, kinds: list[int], count: int, ignored: str) -> None:
        self._failures, self._chance, self._kinds, self._count, self._ignored = failures, random.Random(seed), kinds, count, ignored

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment["PATH_INFO"] == CONTROL:
            return self._control(environment, start)
        with self._lock:
            return self._answer(environment, start)

    def _control(self, environment: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        settings = json.loads(environment["wsgi.input"].read(int(environment["CONTENT_LENGTH"])))
        with self._lock:
            if settings:
                self._set(**settings)
            counts, self._counts = self._counts, Counter()
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(counts).encode()]

    def _answer(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, query = environment["REQUEST_METHOD"], environment["QUERY_STRING"]
        self._counts["LIST" if "list-type" in query else method] += 1
        conditional = "HTTP_IF_MATCH" in environment or "HTTP_IF_NONE_MATCH" in environment
        environment.pop(self._ignored, None)
        if not self._failures or not self._count or self._chance.randrange(self._failures):
            return self._moto(environment, start)
        self._count -= 1
        effective, status = FAILURES[self._chance.choice([kind for kind in self._kinds if kind not in REFUSALS or conditional])]
        self._counts["FAILED"] += 1
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
