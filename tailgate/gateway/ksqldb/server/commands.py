"""The entities of statements that change the catalog: `currentStatus`, with the number of the log entry.

A command's id has the form stream/NAME/create. Its status is kept for GET /status, for the user who ran it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from tailgate.gateway.asgi.sessions import Session
from tailgate.gateway.ksqldb.server.http import limits
from tailgate.gateway.ksqldb.server.http.errors import Document
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.ksqldb.names import back_quoted, ksqldb_name, quoted
from tailgate.sql.ksqldb.types import in_schema


@dataclass(frozen=True, slots=True)
class Command:
    """A statement's id and the message of its success. `item`: the catalog name of an item that it creates with a query, or ''.

    `noticed`: whether a notice is the message instead: with IF [NOT] EXISTS, the statement had no effect.
    """

    id: str
    message: str
    item: str = ""
    noticed: bool = False


def command_of(statement: k.KsqldbStatement) -> Command | None:
    """Returns the command of a statement; None for one that has no entity."""
    match statement:
        case k.CreateItem(type=type, name=name):
            return Command(f"{type}/{ksqldb_name(name)}/create", f"{type.capitalize()} created")
        case k.CreateAs(type=type, name=name):
            return Command(f"{type}/{ksqldb_name(name)}/create", f"{type.capitalize()} created and running", name)
        case k.InsertQuery(name=name):
            return Command(f"stream/{ksqldb_name(name)}/create", "Insert Into query is running.")
        case k.DropItem(type=type, name=name):
            return Command(f"{type}/{ksqldb_name(name)}/drop", f"Source {quoted(name)} was dropped.")
        case k.AddColumns(type=type, name=name):
            return Command(f"{type}/{ksqldb_name(name)}/alter", f"{type.capitalize()} altered")
        case k.ControlQuery(action=action, query=query):
            id = "ALL" if query is None else ksqldb_name(query)
            state = {"terminate": "terminated", "pause": "paused", "resume": "resumed"}[action]
            return Command(f"{action}/{id}/execute", f"Query {state}.")
        case k.CreateType(name=name, type=type_name):
            message = f"Registered custom type with name '{ksqldb_name(name)}' and SQL type {in_schema(type_name)}"
            return Command(f"type/{ksqldb_name(name)}/create", message, noticed=True)
        case k.DropType(name=name):
            return Command(f"type/{ksqldb_name(name)}/drop", f"Dropped type '{ksqldb_name(name)}'", noticed=True)
    return None


def assertion(statement: k.KsqldbStatement) -> Document | None:
    """Returns the entity of ASSERT that has succeeded, without its text; None for another statement."""
    match statement:
        case k.AssertTopic(topic=topic, absent=absent):
            return {"@type": "assert_topic", "topicName": topic, "exists": not absent}
        case k.AssertSchema(subject=subject, id=id, absent=absent):
            return {"@type": "assert_schema", "subject": subject, "id": id, "exists": not absent}
    return None


async def entity(command: Command, text: str, tag: str, warnings: Sequence[Document], session: Session) -> Document:
    """Returns the entity of a command that has succeeded. `tag`: its tag, with the log entry at the end."""
    status = {"status": "SUCCESS", "message": command.message}
    if command.noticed and warnings:
        status["message"] = warnings[0]["message"]
    if command.item and (query := await _query_of(command.item, session)):
        status |= {"message": f"Created query with ID {query}", "queryId": query}
    number = tag.rsplit(" ", 1)[-1]
    return {
        "@type": "currentStatus",
        "statementText": text,
        "commandId": command.id,
        "commandStatus": status,
        "commandSequenceNumber": int(number) if number.isdigit() else -1,
        "warnings": list(warnings),
    }


async def _query_of(item: str, session: Session) -> str | None:
    """Returns the id of the query that maintains a new item."""
    try:
        rows, _ = await session.execute(f"DESCRIBE {back_quoted(item)};")
    except psycopg.Error:  # another session has dropped it
        return None
    queries = json.loads(json.loads(rows[0][0]))["sourceDescription"]["writeQueries"]
    return str(queries[0]["id"]) if queries else None


class Commands:
    """The status of the last commands, by user and id."""

    def __init__(self) -> None:
        self._statuses: OrderedDict[tuple[str, str], Document] = OrderedDict()

    def add(self, user: str, entity: Document) -> None:
        """Keeps the status of an entity. Forgets the oldest one above the limit."""
        key = user, entity["commandId"]
        self._statuses.pop(key, None)
        self._statuses[key] = entity["commandStatus"]
        if len(self._statuses) > limits.COMMANDS_MAX:
            self._statuses.popitem(last=False)

    def find(self, user: str, id: str) -> Document | None:
        """Returns the status of a command."""
        return self._statuses.get((user, id))

    def all(self, user: str) -> dict[str, str]:
        """Returns the state of each command by its id."""
        return {id: status["status"] for (owner, id), status in self._statuses.items() if owner == user}
