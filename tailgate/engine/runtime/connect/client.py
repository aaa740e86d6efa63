"""A client for the REST interface of a Kafka Connect worker.

Source: Apache Kafka 4.3, documentation, "Kafka Connect", "REST API".
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tailgate.lake import clients
from tailgate.lake.errors import ConnectionFailure, DuplicateObject, InvalidParameterValue, TailgateError, UndefinedObject

ANSWER_S, CHANGE_S = 10.0, 30.0  # longest wait for an answer; a worker that creates a connector asks its database first
BUSY_S = 10.0  # longest wait for workers that distribute their connectors, during which they refuse requests
BUSY_LOOK_S = 0.3  # between two attempts
ANSWER_BYTES_MAX = 8 << 20  # of an answer; a connector's description has some kB
MESSAGE_MAX = 2000  # characters of a worker's error
REBALANCING = 409


class Worker:
    """A worker at a URL, which may have a user and a password. Raises 08006 if it does not answer."""

    def __init__(self, url: str) -> None:
        self._parts = urllib.parse.urlsplit(url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise InvalidParameterValue(f'"{clients.shown_url(url)}" is not the URL of Kafka Connect', hint="Write it as http://host:port.")
        self._base = clients.shown_url(url)

    def connectors(self) -> dict[str, Any]:
        """Returns the connectors with their information and status, by name."""
        answer: dict[str, Any] = self._get("/connectors?expand=info&expand=status")
        return answer

    def config(self, name: str) -> dict[str, str]:
        """Returns the properties of a connector. Raises 42704."""
        return dict(self._get(f"{_path(name)}/config", name))

    def status(self, name: str) -> dict[str, Any]:
        """Returns the status of a connector and its tasks. Raises 42704."""
        return dict(self._get(f"{_path(name)}/status", name))

    def topics(self, name: str) -> list[str]:
        """Returns the topics that a connector has used. Raises 42704."""
        answer = self._get(f"{_path(name)}/topics", name)
        return sorted(answer.get(name, {}).get("topics", ()))

    def plugins(self) -> list[dict[str, Any]]:
        """Returns class, type and version of all plugins: connectors, converters and others."""
        return list(self._get("/connector-plugins?connectorsOnly=false"))

    def definitions(self, plugin: str) -> dict[str, str]:
        """Returns the types of a plugin's properties by their names."""
        answer = self._get(f"/connector-plugins/{urllib.parse.quote(plugin, safe='')}/config")
        return {str(row["name"]): str(row["type"]) for row in answer}

    def exists(self, name: str) -> bool:
        """Returns whether there is a connector with this name."""
        try:
            self.config(name)
        except UndefinedObject:
            return False
        return True

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Creates a connector. Raises 42710 if it exists, 22023 for properties that the worker refuses."""
        self._ask("POST", "/connectors", name, {"name": name, "config": dict(config)})

    def drop(self, name: str) -> None:
        """Deletes a connector. Raises 42704."""
        self._ask("DELETE", _path(name), name)

    def _get(self, path: str, name: str = "") -> Any:
        return self._ask("GET", path, name)

    def _ask(self, method: str, path: str, name: str, body: Mapping[str, Any] | None = None) -> Any:
        """Sends a request and returns the JSON of the answer. Repeats it while the workers distribute their connectors."""
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                return self._request(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code != REBALANCING or time.monotonic() > deadline:
                    raise self._failed(error, name) from None
                error.close()
            if method == "POST" and self.exists(name):  # the same status as while connectors are distributed
                raise DuplicateObject(f"Connector {name} already exists")
            time.sleep(BUSY_LOOK_S)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Sends a request. Returns the JSON of the answer, None without one. Raises 08006, HTTPError for another status than 2xx."""
        headers = {"Accept": "application/json", "Content-Type": "application/json", **clients.login(self._parts, {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}{path}", data=data, headers=headers, method=method)
        tls = clients.tls({}) if self._parts.scheme == "https" else None
        try:
            with clients.opener(tls).open(request, timeout=ANSWER_S if method == "GET" else CHANGE_S) as answer:
                return json.loads(answer.read(ANSWER_BYTES_MAX) or b"null")
        except urllib.error.HTTPError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ConnectionFailure(f"Kafka Connect at {self._base} does not answer: {reason}") from None

    def _failed(self, error: urllib.error.HTTPError, name: str) -> TailgateError:
        """Returns the error for an answer with a status other than 2xx. `name`: of the connector."""
        with error:
            message = _message(error)
        match error.code:
            case 404 if name:
                return UndefinedObject(f"Connector {name} does not exist")
            case 400 | 422:
                return InvalidParameterValue(f"Kafka Connect refused the connector: {message}")
            case 401 | 403:
                return ConnectionFailure(f"Kafka Connect at {self._base} refused the user or the password: {error.code}")
        return ConnectionFailure(f"Kafka Connect at {self._base} answers {error.code}: {message}")


def _path(name: str) -> str:
    return f"/connectors/{urllib.parse.quote(name, safe='')}"


def _message(error: urllib.error.HTTPError) -> str:
    """Returns the message of an error's body."""
    text = error.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["message"])
    return text[:MESSAGE_MAX].strip()
