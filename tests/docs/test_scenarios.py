"""The examples in ksqlDB's dialect over HTTP and with the command `ksql`. `test_pages` runs them over the PostgreSQL protocol."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from tailgate.ksql.api import Server
from tailgate.ksql.session import Session
from tests.docs.pages import DOCS, Example, parts
from tests.docs.system import System

EXAMPLES = DOCS.parent / "tailgate" / "examples"
SETTLE_S = 120.0
# not ksqlDB's: it does not order rows, and no query materializes the table CUSTOMERS
OF_POSTGRESQL = re.compile(r"SELECT .*(ORDER BY| FROM CUSTOMERS\b)", re.DOTALL)
Client = Callable[[str], list[list[str]]]  # runs a statement; returns the rows of a query, as text


def over_http(system: System) -> Client:
    """Returns a client that sends each statement with the properties of the SET statements before it."""
    properties: dict[str, str] = {}

    def post(path: str, body: Any) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/vnd.ksql.v1+json"}
        request = urllib.request.Request(f"http://{system.ksqldb}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            return bytes(response.read())

    def run(text: str) -> list[list[str]]:
        if (match := re.match(r"SET '([^']+)' = '([^']+)'", text)) is not None:
            properties[match[1]] = match[2]
        body = {"ksql": text, "streamsProperties": properties}
        if text.startswith("PRINT"):
            return [[line] for line in post("/query", body).decode().splitlines()]
        if not text.startswith("SELECT"):
            assert post("/ksql", body)
            return []
        document = json.loads(post("/query", body))
        assert document[-1] == {"finalMessage": "Query Completed"}
        return [[_shown(value) for value in part["row"]["columns"]] for part in document if "row" in part]

    return run


def with_command(system: System) -> Client:
    """Returns a session of the command `ksql`."""
    lines: list[str] = []
    session = Session(Server(system.ksqldb), lines.append)

    def run(text: str) -> list[list[str]]:
        lines.clear()
        session.run(text)
        if text.startswith("PRINT"):
            return [[line] for line in lines]
        return _cells("\n".join(lines).splitlines()) if text.startswith("SELECT") else []

    return run


CLIENTS = {"http": over_http, "ksql": with_command}


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_statements(system: System, client: str) -> None:
    """Each SELECT has the rows that the example shows. A consumer of Kafka gets flat JSON."""
    system.clear()
    system.delete_topics()
    run = CLIENTS[client](system)
    for name in ("support_calls", "ratings", "sensors"):
        _run(system, run, EXAMPLES / name / "README.md")
    emails = [message["EMAIL"] for message in _messages(system, "UNHAPPY_PLATINUM_CUSTOMERS", 2)]
    assert emails == ["rbrockherst1@ow.ly", "rblaisdell0@rambler.ru"]


def _run(system: System, run: Client, page: Path) -> None:
    terminal = system.terminal()
    try:
        for part in parts(page.read_text()):
            if not isinstance(part, Example):
                system.run(terminal, part, page.parent)
            elif OF_POSTGRESQL.match(part.statement):
                _await(partial(_of_terminal, system, part), part)
            elif part.statement.startswith("SELECT"):
                _await(partial(run, _text(part)), part)
            elif part.statement.startswith("PRINT"):
                assert any("still mean" in line for (line,) in run(_limited(part)))
            else:
                run(_text(part))
    finally:
        terminal.close()


def _text(part: Example) -> str:
    return part.statement.removesuffix(" -- Tailgate")


def _limited(part: Example) -> str:
    """Returns a PRINT that ends after the records that the example shows."""
    (count,) = re.findall(r"^\((\d+) rows\)$", part.output[-1])
    return f"{_text(part).removesuffix(';')} LIMIT {count};"


def _of_terminal(system: System, part: Example) -> list[list[str]]:
    """Returns the rows of a statement over the PostgreSQL protocol."""
    terminal = system.terminal()
    try:
        return _cells(terminal.type(part.statement))
    finally:
        terminal.close()


def _await(rows: Callable[[], list[list[str]]], part: Example) -> None:
    """Waits until a query has the rows that the example shows, in any order."""
    expected, deadline = sorted(_cells(part.output)), time.monotonic() + SETTLE_S
    while (got := sorted(rows())) != expected:
        assert time.monotonic() < deadline, (part.statement, got)
        time.sleep(0.2)


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Returns the values of a table, as psql or `ksql` prints it: what follows the line under the names."""
    rule = next((n for n, line in enumerate(lines) if re.fullmatch("[-+]+", line)), len(lines))
    return [[_shown(cell.strip()) for cell in line.split("|")] for line in lines[rule + 1 :] if not re.match("[-(]|Query", line)]


def _shown(value: Any) -> str:
    """Returns a value as text: whole numbers without a point."""
    return re.sub(r"^(\d+)\.0$", r"\1", str(value))


def _messages(system: System, topic: str, count: int) -> list[dict[str, Any]]:
    """Returns the values of the first messages of a topic."""
    consumer = Consumer(
        {"bootstrap.servers": system.kafka, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    try:
        consumer.subscribe([topic])
        values = []
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None, values
            if message.error() is None:
                values.append(json.loads(message.value() or b"null"))
        return values
    finally:
        consumer.close()
