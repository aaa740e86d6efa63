"""Conversations on the wire as text: the messages of a client, and PostgreSQL's recorded answers.

    # a comment
    > Query('select 1 as a')
    < RowDescription a:int4/4
    < DataRow 1
    < CommandComplete SELECT 1
    < ReadyForQuery I

Consecutive lines with `>` are sent in one piece. Then all messages are read up to the last
ReadyForQuery that they cause, or the messages caused by Flush. `play` runs a script and returns it with
the answers of that server.

    TAILGATE_RECORD=1 pytest tests/wire        records PostgreSQL's answers; review the diff
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from struct import pack, unpack_from

from tailgate.gateway.protocol.backend import frame
from tailgate.lake.types import FACTS

NAMES = {f.oid: f.name for f in FACTS.values()} | {f.array_oid: f.name + "[]" for f in FACTS.values()}
FIELDS = "SCMDHP"
SILENCE_S = 0.4  # silence after which the answer to a Flush is complete


def _z(text: str) -> bytes:
    return text.encode() + b"\0"


def Query(text: str) -> bytes:
    return frame(b"Q", _z(text))


def Parse(name: str, text: str, oids: tuple[int, ...] | list[int] = ()) -> bytes:
    return frame(b"P", _z(name) + _z(text) + pack(f"!H{len(oids)}I", len(oids), *oids))


def Bind(
    portal: str,
    name: str,
    values: list[bytes | str | None] | tuple[()] = (),
    formats: list[int] | tuple[()] = (),
    results: list[int] | tuple[()] = (),
) -> bytes:
    body = _z(portal) + _z(name) + pack(f"!H{len(formats)}h", len(formats), *formats) + pack("!H", len(values))
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        body += pack("!i", -1) if data is None else pack("!i", len(data)) + data
    return frame(b"B", body + pack(f"!H{len(results)}h", len(results), *results))


def Describe(kind: str, name: str) -> bytes:
    return frame(b"D", kind.encode() + _z(name))


def Execute(portal: str = "", rows: int = 0) -> bytes:
    return frame(b"E", _z(portal) + pack("!i", rows))


def Close(kind: str, name: str) -> bytes:
    return frame(b"C", kind.encode() + _z(name))


def Sync() -> bytes:
    return frame(b"S", b"")


def Flush() -> bytes:
    return frame(b"H", b"")


def Discarded(data: bytes) -> bytes:
    """Returns a message that the server discards up to Sync, so no answer to it is expected."""
    return data


def Raw(data: bytes) -> bytes:
    return data


WORDS = {f.__name__: f for f in (Query, Parse, Bind, Describe, Execute, Close, Sync, Flush, Discarded, Raw)}


@dataclass
class Client:
    """A raw connection after start-up."""

    socket: socket.socket
    buffer: bytes = b""
    key: tuple[int, bytes] = (0, b"")

    @staticmethod
    def connect(host: str, port: int, user: str = "postgres", database: str = "postgres", **options: str) -> Client:
        client = Client(socket.create_connection((host, port), timeout=20))
        words = {"user": user, "database": database, "client_encoding": "UTF8", **options}
        body = pack("!I", 196608) + b"".join(_z(k) + _z(v) for k, v in words.items()) + b"\0"
        client.socket.sendall(pack("!I", len(body) + 4) + body)
        for letter, body in client.until_ready():
            if letter == "K":
                client.key = (unpack_from("!I", body)[0], body[4:])
            assert letter != "E", body
        return client

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def message(self, timeout: float = 20) -> tuple[str, bytes] | None:
        """Returns the next message; None if the server closed the connection or the time is over."""
        self.socket.settimeout(timeout)
        while len(self.buffer) < 5 or len(self.buffer) < unpack_from("!I", self.buffer, 1)[0] + 1:
            try:
                data = self.socket.recv(65536)
            except (TimeoutError, ConnectionResetError):
                return None
            if not data:
                return None
            self.buffer += data
        size = unpack_from("!I", self.buffer, 1)[0] + 1
        message, self.buffer = self.buffer[:size], self.buffer[size:]
        return chr(message[0]), message[5:]

    def until_ready(self) -> Iterator[tuple[str, bytes]]:
        while (message := self.message()) is not None:
            yield message
            if message[0] == "Z":
                return

    def close(self) -> None:
        self.socket.close()


def cut(body: bytes, at: int = 0) -> tuple[str, int]:
    end = body.index(b"\0", at)
    return body[at:end].decode(), end + 1


def shown(letter: str, body: bytes) -> str:
    """Returns a message as a line, with the guaranteed fields only for errors and notices."""
    match letter:
        case "Z":
            return f"ReadyForQuery {body.decode()}"
        case "C":
            return f"CommandComplete {cut(body)[0]}"
        case "T":
            at, out = 2, []
            for _ in range(unpack_from("!H", body)[0]):
                name, at = cut(body, at)
                _, _, oid, size, typmod, code = unpack_from("!IhIhih", body, at)
                at += 18
                out.append(f"{name}:{NAMES.get(oid, oid)}/{size}" + (f"/{typmod}" if typmod != -1 else "") + ("b" if code else ""))
            return " ".join(["RowDescription", *out])
        case "D":
            at, out = 2, []
            for _ in range(unpack_from("!H", body)[0]):
                (length,) = unpack_from("!i", body, at)
                at += 4
                value = body[at : at + max(length, 0)]
                out.append(
                    "NULL" if length < 0 else value.decode() if value.isascii() and value.decode().isprintable() and value else repr(value)
                )
                at += max(length, 0)
            return " | ".join(out).join(["DataRow ", ""])
        case "E" | "N":
            fields, at = {}, 0
            while body[at : at + 1] != b"\0":
                value, end = cut(body, at + 1)
                fields[chr(body[at])] = value
                at = end
            words = [f"{code}={fields[code]!r}" if code in "MDH" else f"{code}={fields[code]}" for code in FIELDS if code in fields]
            return " ".join(["ErrorResponse" if letter == "E" else "NoticeResponse", *words])
        case "S":
            name, at = cut(body)
            return f"ParameterStatus {name}={cut(body, at)[0]}"
        case "t":
            oids = unpack_from(f"!{unpack_from('!H', body)[0]}I", body, 2)
            return " ".join(["ParameterDescription", *(str(NAMES.get(oid, oid)) for oid in oids)])
        case "H":
            return f"CopyOutResponse {'binary' if body[0] else 'text'} {unpack_from('!H', body, 1)[0]}"
        case "d":
            return f"CopyData {body!r}"
    plain = {
        "1": "ParseComplete",
        "2": "BindComplete",
        "3": "CloseComplete",
        "I": "EmptyQueryResponse",
        "n": "NoData",
        "s": "PortalSuspended",
        "c": "CopyDone",
    }
    return plain.get(letter, letter) + (f" {body!r}" if body else "")


def play(script: str, client: Client) -> str:
    """Runs a script on a server. Returns it with the server's answers."""
    out: list[str] = []
    lines = [line for line in script.splitlines() if not line.startswith("<")]
    at = 0
    while at < len(lines):
        if not lines[at].startswith(">"):
            out.append(lines[at])
            at += 1
            continue
        data, readies, flushes = b"", 0, False
        while at < len(lines) and lines[at].startswith(">"):
            out.append(lines[at])
            words = lines[at][1:].strip()
            data += eval(words, {"__builtins__": {}}, WORDS)
            readies += words.startswith(("Query", "Sync"))
            flushes = words.startswith(("Flush", "Raw"))
            at += 1
        client.send(data)
        while readies or flushes:
            message = client.message(20 if readies else SILENCE_S)
            if message is None:
                if readies:
                    out.append("< (closed)")
                break
            out.append(f"< {shown(*message)}")
            readies -= message[0] == "Z"
    return "\n".join(out) + "\n"
