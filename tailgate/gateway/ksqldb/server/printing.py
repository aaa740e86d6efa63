"""PRINT by /query and /query-stream: the records of a topic as they arrive, as lines of text.

    PRINT 'topic' [FROM BEGINNING] [INTERVAL n] [LIMIT n]  ──►  the gateway's lines  ──►  rowtime: …, key: …, value: …, partition: …
                                                                               ▲ LIMIT, disconnection, an error
The first records that arrive together determine the guess of the formats.

Source: ksqlDB 0.29, documentation, "PRINT".
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from tailgate.gateway.asgi.limits import ROWS_BYTES
from tailgate.gateway.asgi.rows import Rows
from tailgate.gateway.ksqldb.server.http.errors import StatementError, of_sql
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.server.statements import PRINT
from tailgate.gateway.ksqldb.variables import substituted
from tailgate.lake.errors import TailgateError
from tailgate.sql.statements import split

LINE = re.compile(r"timestamp: (-?\d+), key: (.*), value: (.*), partition: (\d+), offset: \d+", re.DOTALL)
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


async def printed(rows: Rows) -> AsyncGenerator[bytes, None]:
    """Returns the lines of a PRINT. Raises psycopg.Error."""
    records, size, is_first, at_end = list[str](), 0, True, False
    while not at_end:
        row = await rows.next()
        at_end = row is None
        if row is not None:
            records.append(json.loads(row[0]))
            size += len(row[0])
            if not rows.waiting and size < ROWS_BYTES:
                continue
        parts = [match.groups() for match in map(LINE.fullmatch, records) if match is not None]
        records.clear()
        size = 0
        yield "".join(f"{line}\n" for line in [*(_formats(parts) if is_first else []), *map(_line, parts), *[END] * at_end]).encode()
        is_first = False


def _formats(parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns a guess of the formats of the keys and values in the parts of lines."""
    return [f"Key format: {_format([p[1] for p in parts])}", f"Value format: {_format([p[2] for p in parts])}"]


def _line(parts: tuple[str, ...]) -> str:
    """Returns a line of ksqlDB for the parts of one of the gateway.

    >>> _line(("1647614033989", "18", "{}", "0"))
    'rowtime: 2022/03/18 14:33:53.989 Z, key: 18, value: {}, partition: 0'
    """
    time, key, value, partition = parts
    return f"rowtime: {_time(int(time))}, key: {_null(key)}, value: {_null(value)}, partition: {partition}"


def _time(milliseconds: int) -> str:
    """Returns a time in UTC.

    >>> _time(253402300800000)
    '10000/01/01 00:00:00.000 Z'
    """
    return f"{np.datetime64(milliseconds, 'ms')} Z".replace("-", "/").replace("T", " ")


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
