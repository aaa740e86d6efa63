"""Sends statements to a server over the wire and returns its answers, with a time limit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from struct import unpack_from

from tests.wire.wire import Bind, Client, Describe, Execute, Parse, Query, Sync

ANSWER_S = 20.0  # limit for one statement; a longer wait counts as a hang


@dataclass
class Result:
    """The rows of one statement. `types` are the oids of the columns."""

    names: list[str] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    rows: list[tuple[bytes | None, ...]] = field(default_factory=list)


@dataclass
class Answer:
    """The answer to one or several statements.

    `sqlstate` and `message` belong to an error. `hung` and `gone` mean that there was no answer.
    """

    results: list[Result] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    copied: bytes = b""
    sqlstate: str = ""
    message: str = ""
    hung: bool = False
    disconnected: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.sqlstate) or self.hung or self.disconnected

    def add(self, other: Answer) -> None:
        self.results += other.results
        self.tags += other.tags
        self.parameters += other.parameters
        self.copied += other.copied
        self.sqlstate, self.message, self.hung, self.disconnected = other.sqlstate, other.message, other.hung, other.disconnected


class Server:
    """A connection to a server that reconnects after a loss."""

    def __init__(self, name: str, port: int, user: str = "postgres", database: str = "postgres", setup: tuple[str, ...] = ()) -> None:
        self.name, self.port, self.user, self.database, self.setup = name, port, user, database, setup
        self._client: Client | None = None
        self._status = "I"

    def client(self) -> Client:
        if self._client is None:
            self._client = Client.connect("127.0.0.1", self.port, self.user, self.database)
            for statement in self.setup:
                self.query(statement)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            with contextlib.suppress(OSError):
                self._client.close()
        self._client = None

    def run(self, statements: Iterable[str], cleanup: Iterable[str] = ()) -> Answer:
        """Runs statements up to the first error, then always runs `cleanup`."""
        answer = Answer()
        for statement in statements:
            answer.add(self.query(statement))
            if answer.failed:
                break
        self.settle()
        for statement in cleanup:
            self.query(statement)
        return answer

    def settle(self) -> None:
        """Ends an open transaction."""
        if self._client is not None and self._status != "I":
            self.query("ROLLBACK")

    def query(self, text: str) -> Answer:
        """Runs statements with the simple query protocol."""
        return self._ask(Query(text))

    def execute(self, text: str) -> None:
        """Runs a statement that must succeed."""
        answer = self.query(text)
        if answer.failed:
            raise AssertionError(f"{self.name}: {answer.sqlstate} {answer.message}: {text[:500]}")

    def prepared(self, text: str, values: list[str | None], oids: tuple[int, ...] = (), results: tuple[int, ...] = ()) -> Answer:
        """Runs a statement with the extended query protocol, with text parameters."""
        parts = Parse("", text, oids) + Describe("S", "") + Bind("", "", list(values), (), list(results)) + Execute() + Sync()
        answer = self._ask(parts)
        self.settle()
        return answer

    def _ask(self, data: bytes) -> Answer:
        answer = Answer()
        try:
            client = self.client()
            client.send(data)
            for letter, body in self._messages(client, answer):
                _note(answer, letter, body)
        except OSError:
            answer.disconnected = True
        if answer.hung or answer.disconnected:
            self.close()
        return answer

    def _messages(self, client: Client, answer: Answer) -> Iterator[tuple[str, bytes]]:
        end = time.monotonic() + ANSWER_S
        while True:
            message = client.message(max(end - time.monotonic(), 0.01))
            if message is None:
                if time.monotonic() >= end:
                    answer.hung = True
                else:
                    answer.disconnected = True
                return
            if message[0] == "Z":
                self._status = message[1].decode()
                return
            yield message


def _note(answer: Answer, letter: str, body: bytes) -> None:
    match letter:
        case "T":
            result, at = Result(), 2
            for _ in range(unpack_from("!H", body)[0]):
                name, at = _cut(body, at)
                result.names.append(name)
                result.types.append(unpack_from("!I", body, at + 6)[0])
                at += 18
            answer.results.append(result)
        case "D":
            at, row = 2, []
            for _ in range(unpack_from("!H", body)[0]):
                (length,) = unpack_from("!i", body, at)
                at += 4
                row.append(None if length < 0 else body[at : at + length])
                at += max(length, 0)
            answer.results[-1].rows.append(tuple(row))
        case "t":
            answer.parameters = list(unpack_from(f"!{unpack_from('!H', body)[0]}I", body, 2))
        case "d":
            answer.copied += body
        case "C":
            answer.tags.append(_cut(body, 0)[0])
        case "E":
            at = 0
            while body[at : at + 1] != b"\0":
                value, end = _cut(body, at + 1)
                if body[at : at + 1] == b"C":
                    answer.sqlstate = value
                elif body[at : at + 1] == b"M":
                    answer.message = value
                at = end


def _cut(body: bytes, at: int) -> tuple[str, int]:
    """Reads a zero-terminated string. Returns it with the position after it.

    PostgreSQL may quote bytes that are not valid UTF-8.
    """
    end = body.index(b"\0", at)
    return body[at:end].decode(errors="replace"), end + 1
