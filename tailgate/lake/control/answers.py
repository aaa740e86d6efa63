"""The answers of the control protocol."""

from __future__ import annotations

import json
import struct
from asyncio import StreamReader
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailgate.lake.errors import TailgateError, of
from tailgate.lake.uncommitted import Uncommitted

Answer = Mapping[str, Any]  # a JSON object


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of the engine, before or with the answer to a statement."""

    message: str
    severity: str = "NOTICE"
    sqlstate: str = "00000"
    detail: str | None = None
    hint: str | None = None

    @staticmethod
    def of(fields: Answer) -> Notice:
        """Returns the notice of a JSON object."""
        severity, sqlstate = fields.get("severity", "NOTICE"), fields.get("sqlstate", "00000")
        return Notice(fields.get("message", ""), severity, sqlstate, fields.get("detail"), fields.get("hint"))


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The answer to a statement: it is durable in log entry `n`, at `time`. `lines`: the output of EXPLAIN and the like.

    `block`: the uncommitted changes of a block with those of the statement; it was planned over the catalog of entry `n`.
    `view`: the id of the view of a push query.
    """

    tag: str
    n: int
    time: int
    notices: tuple[Notice, ...] = ()
    lines: tuple[str, ...] = ()
    block: Uncommitted | None = None
    view: int = 0

    @staticmethod
    def of(answer: Answer) -> StatementResult:
        """Returns the result of an answer."""
        notices = tuple(map(Notice.of, answer.get("notices", ())))
        lines: Sequence[Any] = answer.get("lines") or ()
        block = Uncommitted.from_json(answer["block"]) if "block" in answer else None
        n, time, view = (int(answer.get(name, 0)) for name in ("n", "time", "view"))
        return StatementResult(answer["tag"], n, time, notices, tuple(map(str, lines)), block, view)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The answer to a write: its durable entry of the inbox, or the entry that it conflicts with. The other is 0."""

    number: int = 0
    conflict: int = 0

    @staticmethod
    def of(answer: Answer) -> WriteResult:
        """Returns the result of an answer."""
        return WriteResult(answer.get("number", 0), answer.get("conflict", 0))


@dataclass(frozen=True, slots=True)
class SequenceValues:
    """The answer to a request for values: `count` values from `first`, of the `series` (`lake.catalog.Sequence`).

    `time`: the catalog has the new position from this time on; 0 from an engine of an earlier version.
    """

    first: int
    count: int
    series: int
    time: int = 0

    @staticmethod
    def of(answer: Answer) -> SequenceValues:
        """Returns the values of an answer."""
        return SequenceValues(answer["first"], answer["count"], answer["series"], answer.get("time", 0))


def encode(answer: Answer) -> bytes:
    """Returns the body of an answer, or the value of a Notice header."""
    return json.dumps(answer).encode()


def encode_part(lines: Sequence[str] | Answer) -> bytes:
    """Returns a part of the stream of a PRINT: its length (4 bytes, big-endian), and lines or the fields of an error as JSON."""
    data = json.dumps(lines, ensure_ascii=False).encode()
    return struct.pack(">I", len(data)) + data


async def next_part(reader: StreamReader) -> list[str]:
    """Waits for the next part of the stream of a PRINT and returns its lines. Raises its error, or IncompleteReadError."""
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    lines = json.loads(await reader.readexactly(length))
    if isinstance(lines, dict):
        raise error_of(lines)
    return list(map(str, lines))


def decode(body: bytes) -> Answer:
    """Returns the answer of a body. Raises ValueError for anything but a JSON object."""
    answer = json.loads(body or b"{}")
    if not isinstance(answer, dict):
        raise ValueError("not a JSON object")
    return answer


def error_fields(error: TailgateError) -> Answer:
    """Returns the answer that reports an error."""
    return {
        "sqlstate": error.sqlstate,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "position": error.position,
    }


def error_of(answer: Answer) -> TailgateError:
    """Returns the error of an answer."""
    return of(
        answer.get("sqlstate", "58000"),
        answer.get("message", "the engine gave an answer that cannot be read"),
        detail=answer.get("detail"),
        hint=answer.get("hint"),
        position=answer.get("position"),
    )
