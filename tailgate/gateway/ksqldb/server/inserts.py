"""POST /inserts-stream: rows are inserted one after the other, in the order of the body, each with an ack.

    {"target": "RIDERS"} ⏎ {"ID": 1, "NAME": "a"} ⏎ …  ──►  {"status":"ok","seq":0} ⏎ …

An ack is sent when the broker has the row's message. A row that fails has an ack with its error, and the stream continues.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tailgate.gateway.asgi import limits as shared
from tailgate.gateway.asgi.sessions import Caller, Session, Sessions
from tailgate.gateway.ksqldb.server.http import errors
from tailgate.gateway.ksqldb.server.http.errors import ApiError, Document, of_sql
from tailgate.gateway.ksqldb.server.http.requests import parsed, statement_request
from tailgate.lake.errors import TailgateError
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb.names import back_quoted, catalog_name, quoted
from tailgate.sql.ksqldb.tokens import tokens


@dataclass(frozen=True, slots=True)
class Target:
    """The stream of inserts. `columns`: the schemas of its columns by their names in upper case, with their spelling."""

    name: str
    columns: Mapping[str, tuple[str, Document]] = field(default_factory=dict)


class Lines:
    """The non-empty lines of a body that arrives in parts."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body, self._data = body, b""
        self._ended = False

    async def next(self) -> bytes | None:
        """Returns the next line; None at the end. Raises 413."""
        while True:
            line, newline, rest = self._data.partition(b"\n")
            if newline or (self._ended and line):
                self._data = rest
                if line.strip():
                    return line
            elif self._ended:
                return None
            else:
                await self._read()

    async def _read(self) -> None:
        if len(self._data) > shared.BODY_BYTES_MAX:
            raise ApiError(errors.TOO_LARGE, f"A row may have at most {shared.BODY_BYTES_MAX} bytes")
        try:
            self._data += await anext(self._body)
        except StopAsyncIteration:
            self._ended = True


async def acks(sessions: Sessions, caller: Caller, body: AsyncIterator[bytes]) -> AsyncGenerator[Document, None]:
    """Inserts the rows of a body and returns their acks. Raises ApiError for an invalid first line."""
    lines = Lines(body)
    first = await lines.next()
    if first is None:
        raise ApiError(errors.BAD_REQUEST, 'Missing member "target" in the request body')
    request = statement_request(first, "target")
    async with sessions.stream(caller) as session:
        for name, value in request.properties.items():
            await _set(session, name, value)
        target = await _target(session, request.text)
        yield {}  # the stream has begun
        sequence = 0
        while (line := await lines.next()) is not None:
            yield await _ack(session, target, line, sequence)
            sequence += 1


async def _set(session: Session, name: str, value: str) -> None:
    try:
        await session.set(name, value)
    except psycopg.Error as error:
        raise ApiError(errors.BAD_REQUEST, of_sql(error).message) from None


async def _ack(session: Session, target: Target, line: bytes, sequence: int) -> Document:
    """Inserts a row and returns its ack. Raises ApiError if the gateway is gone."""
    try:
        await session.execute(insert(target, parsed(line)))
    except psycopg.OperationalError as error:
        if session.connection.closed:
            raise of_sql(error) from None
        failure = of_sql(error)
    except psycopg.Error as error:
        failure = of_sql(error)
    except ApiError as error:
        failure = error
    else:
        return {"status": "ok", "seq": sequence}
    return {"status": "error", "seq": sequence, "error_code": failure.code, "message": failure.message}


async def _target(session: Session, name: str) -> Target:
    """Returns the target with its columns. Raises 400 if it is not a stream."""
    folded = _spelled(name)
    try:
        rows, _ = await session.execute(f"DESCRIBE {back_quoted(folded)};")
    except psycopg.Error as error:
        raise ApiError(errors.BAD_REQUEST, f"Cannot insert values into an unknown stream/table: {name}: {of_sql(error).message}") from None
    described = json.loads(json.loads(rows[0][0]))["sourceDescription"]
    if described["type"] != "STREAM":
        raise ApiError(errors.BAD_REQUEST, f"Cannot insert into a table: {name}")
    return Target(quoted(folded), {f["name"].upper(): (f["name"], f["schema"]) for f in described["fields"]})


def _spelled(name: str) -> str:
    """Returns the catalog's name for the name of a target: in back-quotes as it is, otherwise regardless of case."""
    try:
        parts = tokens(name)
    except TailgateError:
        parts = ()
    if len(parts) == 2 and parts[0].kind in ("word", "quoted"):
        return parts[0].value
    return catalog_name(name.upper())


def insert(target: Target, row: Mapping[str, Any]) -> str:
    """Returns the INSERT of a row. Column names are not case-sensitive, unless they are in back-quotes. Raises 400."""
    names, values = [], []
    for key, value in row.items():
        quotes = len(key) > 1 and key[0] == key[-1] == "`"
        name, schema = target.columns.get((key[1:-1] if quotes else key).upper(), (None, {}))
        if name is None or (quotes and name != key[1:-1]):
            raise ApiError(errors.BAD_REQUEST, f"Column name {key} does not exist.")
        names.append(quoted(catalog_name(name)))
        values.append(_literal(value, schema))
    if not names:
        raise ApiError(errors.BAD_REQUEST, "A row has at least one column")
    return f"INSERT INTO {target.name} ({', '.join(names)}) VALUES ({', '.join(values)});"


def _literal(value: Any, schema: Document) -> str:
    """Returns a value of JSON as a literal of ksqlDB."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return json.dumps(value)
        case str():
            if schema.get("type") == "DECIMAL" and value.replace(".", "", 1).removeprefix("-").isdigit():
                return value
            return quoted_text(value)
        case list():
            inner = schema.get("memberSchema") or {}
            return f"ARRAY[{', '.join(_literal(v, inner) for v in value)}]"
        case dict() if schema.get("type") == "MAP":
            inner = schema.get("memberSchema") or {}
            return f"MAP({', '.join(f'{_literal(k, {})} := {_literal(v, inner)}' for k, v in value.items())})"
        case dict():
            fields = {f["name"].upper(): f for f in schema.get("fields") or ()}
            value = value or dict.fromkeys([*fields][:1])  # all fields are NULL; ksqlDB has no STRUCT()
            members = ((fields.get(key.upper()), key, v) for key, v in value.items())
            return "STRUCT(" + ", ".join(f"{_field(f, key)} := {_literal(v, (f or {}).get('schema', {}))}" for f, key, v in members) + ")"
    raise ApiError(errors.BAD_REQUEST, f"Unsupported value: {value!r}")


def _field(field: Document | None, key: str) -> str:
    """Returns the name of a member of a STRUCT in back-quotes."""
    name = key if field is None else str(field["name"])
    return "`" + name.replace("`", "``") + "`"
