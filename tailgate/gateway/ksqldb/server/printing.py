"""PRINT by /query and /query-stream: the records that a topic has, as lines of text.

    PRINT 'topic' [FROM BEGINNING] [LIMIT n]  ──►  the gateway's lines  ──►  rowtime: …, key: …, value: …, partition: …

In ksqlDB it continues with new records; here it ends.

Source: ksqlDB 0.29, documentation, "PRINT".
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timezone

import psycopg

from tailgate.gateway.asgi.sessions import Caller, Sessions
from tailgate.gateway.ksqldb.server.http.errors import StatementError, of_sql
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.server.statements import PRINT, prepare
from tailgate.gateway.ksqldb.variables import substituted
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import split

LINE = re.compile(r"timestamp: (\d+), key: (.*), value: (.*), partition: (\d+), offset: \d+", re.DOTALL)
END = "Topic printing ceased"
NO_DATA = r"¯\_(ツ)_/¯ - no data processed"


def print_text(request: StatementRequest) -> str | None:
    """Returns the statement of a request that consists of one PRINT, with its variables substituted; otherwise None."""
    try:
        parts = split(request.text, "ksqldb")
        if len(parts) != 1 or not PRINT.match(parts[0].text):
            return None
        return substituted(parts[0].text, request.variables) + ";"
    except TailgateError as error:
        raise StatementError(of_sql(error, request.text), request.text) from None


async def printed(sessions: Sessions, caller: Caller, request: StatementRequest, text: str) -> AsyncGenerator[bytes, None]:
    """Returns the lines of a PRINT."""
    async with sessions.session(caller) as session:
        await prepare(session, request)
        try:
            rows, _ = await session.execute(text)
        except psycopg.Error as error:
            raise StatementError(of_sql(error, text), text) from None
        yield "".join(f"{line}\n" for line in lines([json.loads(row[0]) for row in rows])).encode()


def lines(records: Sequence[str]) -> list[str]:
    """Returns the lines of ksqlDB for those of the gateway.

    >>> lines(["timestamp: 1647614033989, key: 18, value: {}, partition: 0, offset: 3"])[2]
    'rowtime: 2022/03/18 14:33:53.989 Z, key: 18, value: {}, partition: 0'
    """
    parts = [match.groups() for match in map(LINE.fullmatch, records) if match is not None]
    shown = [
        f"rowtime: {_time(int(time))}, key: {_null(key)}, value: {_null(value)}, partition: {partition}"
        for time, key, value, partition in parts
    ]
    return [f"Key format: {_format([p[1] for p in parts])}", f"Value format: {_format([p[2] for p in parts])}", *shown, END]


def _time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{milliseconds % 1000:03} Z"


def _null(text: str) -> str:
    return "<null>" if text == "NULL" else text


def _format(texts: Sequence[str]) -> str:
    """Returns a guess of the format of keys or values."""
    present = [text for text in texts if text != "NULL"]
    if not present:
        return NO_DATA
    return "JSON or KAFKA_STRING" if all(map(_is_json, present)) else "KAFKA_STRING"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
