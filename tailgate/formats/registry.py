"""A client of the schema registry's HTTP interface: registers schemas and sets compatibility.

The registry always returns the same id for the
same schema. Responses are classified by HTTP status first, because registries differ in their error
codes.

Source: Confluent Schema Registry, "API reference", POST /subjects/{subject}/versions.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from tailgate.lake import clients
from tailgate.lake.errors import ConnectionFailure, InvalidParameterValue, TailgateError

Answer = TypeVar("Answer")

REQUEST_TIMEOUT = timedelta(seconds=5)  # a healthy registry answers in 2 to 20 ms
RETRIABLE = {408, 429, 500, 502, 503, 504}  # the statuses that Confluent's client retries
NOT_FOUND = 404
ANSWER_BYTES_MAX = 1 << 20  # a response has a few hundred bytes

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A schema of the kind JSON."""

    content: Mapping[str, Any]


# JSON of a schema of Avro, which is a list for a union; or the text of one of Protobuf
Schema: TypeAlias = Mapping[str, Any] | list[Any] | str | JsonSchema


def register(url: str, access: Mapping[str, str], subject: str, schema: Schema) -> int:
    """Registers a schema under a subject and returns its id.

    `access`: settings of `lake.clients`. `url` may have several registries, separated by commas; the
    first that responds is used.

    Raises 08006 (retriable) if none responds, and 22023 with the registry's message if it refuses the schema.
    """
    return _first_answer(url, lambda base: _register(base, access, subject, schema))


def register_all(url: str, access: Mapping[str, str], schemas: Mapping[str, Schema]) -> None:
    """Registers schemas under new subjects. After a failure, it deletes those that it has registered. Raises as `register` does."""
    registered = list[str]()
    try:
        for subject, schema in schemas.items():
            register(url, access, subject, schema)
            registered.append(subject)
    except TailgateError:
        for subject in registered:
            with suppress(TailgateError):
                delete(url, access, subject)
        raise


def compatibility(url: str, access: Mapping[str, str], subject: str, level: str) -> None:
    """Sets the compatibility level of a subject. Raises as `register` does."""
    path = f"/config/{urllib.parse.quote(subject, safe='')}"
    _first_answer(url, lambda base: _ask(base, access, path, {"compatibility": level}, subject, "PUT"))


def delete(url: str, access: Mapping[str, str], subject: str) -> None:
    """Deletes a subject with its schemas, unless it does not exist. Raises as `register` does."""
    path = f"/subjects/{urllib.parse.quote(subject, safe='')}"
    _first_answer(url, lambda base: _ask(base, access, path, {}, subject, "DELETE"))


def _first_answer(url: str, request: Callable[[str], Answer]) -> Answer:
    """Returns the result of a request to the first registry that responds. Raises 08006 if none does."""
    error: TailgateError | None = None
    for base in (part.strip() for part in url.split(",")):
        try:
            return request(base)
        except ConnectionFailure as absent:
            error = absent
    assert error is not None
    raise error


def _register(base: str, access: Mapping[str, str], subject: str, schema: Schema) -> int:
    path = f"/subjects/{urllib.parse.quote(subject, safe='')}/versions"
    return int(_ask(base, access, path, request_body(schema), subject, "POST")["id"])


def request_body(schema: Schema) -> dict[str, str]:
    """Returns a schema as a request has it."""
    match schema:
        case JsonSchema(content):
            return {"schema": json.dumps(content), "schemaType": "JSON"}
        case str():
            return {"schema": schema, "schemaType": "PROTOBUF"}
    return {"schema": json.dumps(schema), "schemaType": "AVRO"}


def _ask(base: str, access: Mapping[str, str], path: str, body: Mapping[str, Any], subject: str, method: str) -> dict[str, Any]:
    """Sends a request to one registry and returns its response. Raises 08006 or 22023."""
    parts = urllib.parse.urlsplit(base)
    shown = clients.shown_url(base)
    headers = {"Content-Type": CONTENT_TYPE, "Accept": f"{CONTENT_TYPE}, application/json"}
    request = urllib.request.Request(f"{shown}{path}", data=json.dumps(body).encode(), headers=headers, method=method)
    request.headers.update(clients.login(parts, access))
    tls = clients.tls(access) if parts.scheme == "https" else None
    try:
        with clients.opener(tls).open(request, timeout=REQUEST_TIMEOUT.total_seconds()) as answer:
            document = json.loads(answer.read(ANSWER_BYTES_MAX))
            return {"id": int(document["id"])} if method == "POST" else {} if method == "DELETE" else dict(document)
    except urllib.error.HTTPError as refused:
        with refused:
            text = _message(refused)
        clients.refuse_redirect(shown, refused)
        if method == "DELETE" and refused.code == NOT_FOUND:
            return {}
        if refused.code in RETRIABLE:
            raise ConnectionFailure(f"schema registry {shown} answers {refused.code}: {text}") from refused
        raise InvalidParameterValue(f'schema registry {shown} refused the schema of "{subject}": {refused.code} {text}') from refused
    except (OSError, ValueError, KeyError, TypeError) as absent:
        reason = getattr(absent, "reason", absent)
        raise ConnectionFailure(f"schema registry {shown} does not answer: {reason}") from absent


def _message(refused: urllib.error.HTTPError) -> str:
    body = refused.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200]
