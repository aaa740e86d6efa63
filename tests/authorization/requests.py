"""Requests of a role over HTTP: random ones to endpoints, with its name or with a token that it has received, and statements for Presto.

own.*     endpoints of boss: the attackers may call `own.numbers` and `own.add` only
/a, /b    endpoints of the attackers
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tailgate.lake.passwords import TOKEN_PREFIX

FOLLOW_S = 0.1  # how long a stream of events is read
TOKEN = re.compile(re.escape(TOKEN_PREFIX).encode() + rb"[A-Za-z0-9_-]{30,}")
ENDPOINTS = (
    "CREATE ENDPOINT own.everyone GET '/everyone' AS SELECT n, name FROM salaries",
    "CREATE ENDPOINT own.salary GET '/salary/:word' (:word text) AS SELECT n FROM own.m WHERE name = :word",
    "CREATE ENDPOINT own.newest GET '/newest/:one' (:one int) AS SELECT :one AS one, max(n) AS n FROM salaries",
    "CREATE ENDPOINT own.numbers GET '/numbers' AS SELECT count(*) AS n FROM salaries",
    "CREATE ENDPOINT own.add POST '/open' AS INSERT INTO own.open VALUES (:n, :name) RETURNING n, name",
    "CREATE ENDPOINT own.promote PATCH '/everyone' AS UPDATE salaries SET name = :name WHERE n > 0 RETURNING n, name",
    "CREATE ENDPOINT own.dismiss DELETE '/everyone' AS DELETE FROM salaries WHERE n > 0 RETURNING n, name",
    "GRANT EXECUTE ON ENDPOINT own.numbers TO low, helper",
    "GRANT EXECUTE ON ENDPOINT own.add TO low, staff",
)
PATHS = ("/everyone", "/salary/x", "/newest/1", "/numbers", "/open", "/a/1", "/b/1", "/a/x", "/openapi.json", "/absent")
METHODS = ("GET", "GET", "GET", "GET", "HEAD", "POST", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of an answer, with its header fields, and its status."""

    request: str
    status: int
    data: bytes


class Requests:
    """The requests of an attacker. `tokens`: those that the attackers have received."""

    def __init__(self, user: str, choose: random.Random, port: int, tokens: list[str]) -> None:
        self._user, self._choose, self._port, self.tokens = user, choose, port, tokens

    def received(self, data: bytes) -> None:
        """Keeps the tokens in bytes that the attacker has received."""
        self.tokens += [token for text in TOKEN.findall(data) if (token := text.decode()) not in self.tokens]

    def send(self) -> Answer:
        """Sends a request. A stream of events is read for FOLLOW_S."""
        method, path = self._choose.choice(METHODS), self._choose.choice(PATHS)
        body = None
        if method in ("POST", "PATCH", "DELETE"):
            body = json.dumps({"n": self._choose.randrange(100), "name": self._choose.choice(("x", "y"))})
        headers = self._headers(body is not None)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            connection.request(method, path, body, headers)
            with connection.getresponse() as answer:
                data = str(answer.getheaders()).encode()
                follows = answer.getheader("Content-Type", "").startswith("text/event-stream")
                data += b"".join(_events(answer)) if follows else answer.read()
        return Answer(f"{method} {path} {sorted(headers)}", answer.status, data)

    def _headers(self, has_body: bool) -> dict[str, str]:
        headers = {"Tailgate-Role": self._user}
        kind = self._choose.random()
        if kind < 0.5 and self.tokens:
            headers = {"Authorization": f"Bearer {self._choose.choice(self.tokens)}"}
        elif kind < 0.6:
            headers = {"Authorization": f"{self._choose.choice(('Bearer', 'Basic'))} {TOKEN_PREFIX}{'x' * 43}"}
        if self._choose.random() < 0.3:
            headers["Accept"] = "text/event-stream"
        if self._choose.random() < 0.1:
            headers["Last-Event-ID"] = str(self._choose.randrange(2**41))
        if has_body:
            headers["Content-Type"] = "application/json"
            if self._choose.random() < 0.3:
                headers["Idempotency-Key"] = self._choose.choice(("one", "two"))
        return headers


def _events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields the bytes of a stream until it is silent for FOLLOW_S."""
    answer.fp.raw._sock.settimeout(FOLLOW_S)  # type: ignore[attr-defined]
    with contextlib.suppress(TimeoutError):
        while part := answer.read1(1 << 16):
            yield part


def over_presto(port: int, user: str, schema: str, text: str, look: Callable[[bytes], None]) -> str:
    """Runs a statement over Presto's HTTP, reading at most four pages. Returns the outcome. Calls `look` with all bytes."""
    url, body = f"http://127.0.0.1:{port}/v1/statement", text.encode()
    outcome = "ok"
    for page in range(4):
        headers = {"X-Trino-User": user, "X-Trino-Schema": schema}
        request = urllib.request.Request(url, body if page == 0 else None, headers, method="POST" if page == 0 else "GET")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                data = answer.read()
        except urllib.error.HTTPError as error:
            look(error.read())
            return "http"
        look(data)
        document = json.loads(data or b"{}")
        if "error" in document:
            outcome = document["error"]["message"].rpartition("SQLSTATE ")[2][:5]
        if "nextUri" not in document:
            return outcome
        url = document["nextUri"]
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60).close()
    return outcome
