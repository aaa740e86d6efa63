"""POST /ksql: runs statements one after the other, and returns an entity for each.

    text ──► variables ──► split, parse ──► a session of the gateway, one statement at a time ──► entities

A text that cannot be parsed is refused before its first statement runs. An error of a statement has the entities of those before it.
SET, UNSET, DEFINE and UNDEFINE have an effect up to the end of the request, and no entity.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from tailgate.gateway.asgi.sessions import Caller, Session, Sessions
from tailgate.gateway.ksqldb.server import commands, connectors
from tailgate.gateway.ksqldb.server.http import errors, limits
from tailgate.gateway.ksqldb.server.http.errors import ApiError, Document, StatementError, of_sql
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.variables import check_name, substituted
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb import parser
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.ksqldb.dialect import SETTING
from tailgate.sql.statements import split

PRINT = re.compile(r"\s*print\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement of a request: its text, with a semicolon, its value, and the variables when it runs, by name in lower case."""

    text: str
    statement: k.KsqldbStatement
    variables: Mapping[str, str]

    @property
    def shown(self) -> str:
        """Returns the text for the response, without passwords."""
        return connectors.shown_text(self.text)


def texts_of(text: str, variables: Mapping[str, str]) -> list[Parsed]:
    """Returns the statements of a text. Substitutes variables, also those that it defines. Raises StatementError."""
    statements, values = list[Parsed](), {name.lower(): value for name, value in variables.items()}
    try:
        for name in values:
            check_name(name)
        parts = split(text, "ksqldb")
    except TailgateError as error:
        raise StatementError(of_sql(error, text), connectors.shown_text(text)) from None
    if len(parts) > limits.STATEMENTS_MAX:
        raise ApiError(errors.BAD_REQUEST, f"A request may have at most {limits.STATEMENTS_MAX} statements")
    for part in parts:
        statement_text = part.text + ";"
        try:
            statement_text = substituted(part.text, values) + ";"
            if PRINT.match(statement_text):
                raise StatementError(_use_query(), statement_text)
            statement = parser.parse(statement_text)
        except TailgateError as error:
            raise StatementError(of_sql(error, statement_text), connectors.shown_text(statement_text)) from None
        if isinstance(statement, k.DefineVariable):
            values.pop(statement.name.lower(), None)
            if statement.value is not None:
                values[statement.name.lower()] = statement.value
        statements.append(Parsed(statement_text, statement, dict(values)))
    return statements


class Statements:
    """Runs the statements of requests. `commands`: the status of those that have run."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.commands = commands.Commands()

    async def run(self, caller: Caller, request: StatementRequest) -> list[Document]:
        """Returns the entities of a request. Raises ApiError."""
        parts = texts_of(request.text, request.variables)
        for part in parts:
            if isinstance(part.statement, k.PushQuery):
                raise StatementError(_use_query(), part.text)
        entities: list[Document] = []
        async with self._sessions.session(caller) as session:
            await prepare(session, request)
            for part in parts:
                try:
                    entities += await self._entities(session, part)
                except (psycopg.Error, ApiError) as error:
                    failure = of_sql(error, part.text) if isinstance(error, psycopg.Error) else error
                    raise StatementError(failure, part.shown, entities) from None
        return entities

    async def select(self, caller: Caller, text: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a query in PostgreSQL's dialect, with values as JSON. Raises psycopg.Error."""
        async with self._sessions.session(caller) as session:
            session.changed = True
            await session.execute(f"SET {SETTING} = postgresql")
            return (await session.execute(text))[0]

    async def _entities(self, session: Session, part: Parsed) -> list[Document]:
        """Runs one statement and returns its entity, if it has one."""
        statement = part.statement
        if isinstance(statement, k.DefineVariable):
            return []
        if isinstance(statement, k.ListItems) and statement.what == "variables":
            listed = [{"name": name, "value": value} for name, value in sorted(part.variables.items())]
            return [{"@type": "variables", "variables": listed, "statementText": part.text, "warnings": []}]
        session.changed |= isinstance(statement, k.SetProperty)
        rows, tag = await session.execute(part.text)
        warnings = [{"message": message} for message in session.notices()]
        if rows:
            return [{**json.loads(json.loads(rows[0][0])), "statementText": part.text, "warnings": warnings}]
        if (assertion := commands.assertion(statement)) is not None:
            return [{**assertion, "statementText": part.text, "warnings": warnings}]
        if isinstance(statement, k.CreateConnector | k.DropConnector):
            return [connectors.entity(statement, part.shown, warnings)]
        command = commands.command_of(statement)
        if command is None:
            return []
        entity = await commands.entity(command, part.text, tag, warnings, session)
        self.commands.add(session.caller.user, entity)
        return [entity]


async def prepare(session: Session, request: StatementRequest) -> None:
    """Sets the properties of a request, and waits for its log entry. Raises ApiError."""
    for name, value in request.properties.items():
        try:
            await session.set(name, value)
        except psycopg.Error as error:
            raise ApiError(errors.BAD_REQUEST, of_sql(error).message) from None
    if request.sequence is not None and request.sequence >= 0:
        await _reach(session, request.sequence)


async def _reach(session: Session, sequence: int) -> None:
    """Waits until the gateway has reached a log entry. Raises 503."""
    deadline = time.monotonic() + limits.SEQUENCE_S
    while True:
        rows, _ = await session.execute("SHOW STREAMS;")
        if int(rows[0][1]) >= sequence:
            return
        if time.monotonic() > deadline:
            raise ApiError(
                errors.NOT_REACHED, f"Timed out while waiting for a previous command to execute. command sequence number: {sequence}"
            )
        await asyncio.sleep(0.05)


def _use_query() -> ApiError:
    """Returns the error for a statement that /ksql does not run."""
    return ApiError(errors.QUERY_ENDPOINT, "SELECT and PRINT queries must use the /query endpoint")
