"""Random requests of the HTTP API: statements of tests/ksqldb, bodies, paths and header fields, which are changed at random.

    statements of http.jsonl and cases.txt ──► tokens, some removed, repeated, replaced ──► members of a body ──► bytes, some changed

Each request follows from a seed and its number alone.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "ksqldb"
TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\"[^\"]*\"|\w+|->|=>|:=|<>|!=|<=|>=|\s+|.", re.DOTALL)
STATEMENTS = re.compile(r"(?:CREATE|INSERT|SELECT|DROP|ALTER|ASSERT|PRINT|DESCRIBE|SHOW|LIST|TERMINATE|PAUSE|RESUME|EXPLAIN|SET|DEFINE)\b")
QUERY = re.compile(r"\s*(?:SELECT|PRINT)\b", re.IGNORECASE)
STRANGE = (
    *("\0", "\ufffd", "\U0001f600", "'", '"', "`", "--", "/*", "*/", "${", "${v}", "\\", ";", ";;", "=>", "::", "$1", "1e999"),
    *(
        "(" * 50,
        ")" * 50,
        "[" * 500,
        "(" * 5_000,
        "9" * 400,
        "-" * 60,
        "NOT " * 300,
        "a->" * 200,
        "x" * 70_000,
        "ARRAY[" * 40,
        "STRUCT<a " * 40,
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, "", "x", "\0", "\ud800", "earliest", "auto.offset.reset", "ksql.streams.x"),
    *([], [1], {}, {"a": 1}, [[[[]]]]),
)
MEMBERS = (
    *("ksql", "sql", "properties", "streamsProperties", "sessionVariables"),
    *("commandSequenceNumber", "queryId", "target", "deleteTopicList", "x"),
)
QUERIES = ("/ksql", "/query", "/query-stream")
PATHS = (
    *QUERIES,
    *("/inserts-stream", "/close-query", "/ksql/terminate", "/status", "/info", "/healthcheck", "/clusterStatus", "/v1/metadata"),
    *("/is_valid_property/x", "/status/stream/X/create", "/nothing", "/ksql/%00", "/%ff", "/ws/query", "//", "/is_valid_property/%F0%9F"),
)
MEDIA = (
    *("application/vnd.ksql.v1+json", "application/vnd.ksqlapi.delimited.v1", "application/vnd.ksql.v1+protobuf"),
    *("application/json", "*/*", "text/html"),
    *("", ";;;", "application/json;q=x"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `statement`: the text that its body has, if it has one that is not changed later."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    statement: str | None

    @property
    def may_continue(self) -> bool:
        """Returns whether the response may have no end: of a push query or a PRINT."""
        return re.search(rb"(?i)emit|print|\\u", self.body) is not None


@cache
def corpus() -> tuple[str, ...]:
    """Returns the statements from which random ones are made."""
    out = []
    for line in (FOLDER / "http.jsonl").read_text().splitlines():
        body = json.loads(line).get("body")
        out += [body[name] for name in ("ksql", "sql") if isinstance(body, dict) and isinstance(body.get(name), str)]
    for line in (FOLDER / "cases.txt").read_text().splitlines():
        if STATEMENTS.match(line):
            out.append(line.replace("~", "x"))
    return tuple(dict.fromkeys(out))


@cache
def tokens() -> tuple[str, ...]:
    return tuple(sorted({token for text in corpus() for token in TOKEN.findall(text) if not token.isspace()}))


def statement(chance: random.Random) -> str:
    """Returns a statement of the corpus with some changes, perhaps none."""
    parts = TOKEN.findall(chance.choice(corpus()))
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(parts) + 1)
        match chance.randrange(8):
            case 0:
                del parts[at : at + chance.randrange(1, 4)]
            case 1:
                parts[at:at] = parts[at : at + chance.randrange(1, 6)]
            case 2:
                parts = parts[:at]
            case 3:
                other = TOKEN.findall(chance.choice(corpus()))
                parts = parts[:at] + other[chance.randrange(len(other) + 1) :]
            case 4:
                parts[at:at] = [chance.choice(STRANGE)]
            case 5:
                parts[at:at] = [" ", chance.choice(tokens()), " "]
            case _:
                parts[at : at + 1] = [chance.choice(tokens())]
    return "".join(parts)


def request(seed: int, number: int) -> Request:
    """Returns the request with a number."""
    chance = random.Random(f"{seed} {number}")
    text = statement(chance)
    path = chance.choice(QUERIES[1:]) if QUERY.match(text) else QUERIES[0]
    if chance.random() < 0.2:
        path = chance.choice(PATHS)
    document: Any = {("ksql" if path == "/ksql" else "sql"): text}
    is_changed = chance.random() < 0.2
    if is_changed:
        for _ in range(chance.randrange(1, 4)):
            document[chance.choice(MEMBERS)] = chance.choice((*VALUES, {chance.choice(tokens()): chance.choice(VALUES)}))
        if chance.random() < 0.2:
            document = chance.choice((*VALUES, [document]))
    body = json.dumps(document).encode()
    if path == "/inserts-stream":
        rows = [
            {"SENSOR": chance.choice(VALUES), "AREA": chance.choice(VALUES), chance.choice(tokens()): 1} for _ in range(chance.randrange(4))
        ]
        target = {"target": chance.choice(("READINGS", "`READINGS`", "AVERAGES", "t", "", *tokens()))}
        body = b"\n".join(json.dumps(row).encode() for row in (target, *rows))
    if chance.random() < 0.1:
        is_changed, body = True, damaged(body, chance)
    headers = [("Accept", chance.choice(MEDIA)), ("Content-Type", chance.choice(MEDIA))] if chance.random() < 0.1 else []
    method = "POST" if chance.random() < 0.97 else chance.choice(("GET", "PUT", "DELETE", "HEAD", "OPTIONS"))
    return Request(method, path, tuple(headers), body, None if is_changed or path == "/inserts-stream" else text)


def damaged(body: bytes, chance: random.Random) -> bytes:
    """Returns bytes with some of them removed, changed or added."""
    out = bytearray(body)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(4):
            case 0:
                del out[at:]
            case 1:
                out[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 2:
                out[at : at + 1] = bytes([chance.randrange(256)])
            case _:
                out[at:at] = chance.choice(
                    (b"[" * 3_000, b'{"a":' * 3_000, b"\\ud800", b"9" * 5_000, b"null", b"\xff", b"\xed\xa0\x80", b"\n")
                )
    return bytes(out)
