"""Conversations as they were: raw bytes of both sides, a message of the server a line.

    > b'Q\\x00…'     a step of the client (`conversations`)
    < b'T\\x00…'     a message of the server; bytes that are no message, such as the N to an SSLRequest, stand as they came
    < closed         the server closed the connection

`converse` has a conversation with a server, `written` and `read` keep it, `different` says where two servers answered otherwise.
"""

from __future__ import annotations

import ast
import socket
import threading
from collections.abc import Sequence
from struct import pack, unpack_from

from tests.wire.conversations import Step
from tests.wire.wire import Client, cut, shown

QUIET_S = 0.4  # after which a server has said all
SURPRISE_S = 0.02  # that a server is given to say more than it should
ANSWER_S = 30.0
MOMENT_S = 0.4  # before a cancel request
CLOSED = b"closed"

Answers = list[list[bytes]]  # by step, a message each


def converse(host: str, port: int, steps: Sequence[Step], expected: Answers | None = None) -> Answers:
    """`expected`: what is known of the answers, so that a step that is read until nothing more comes need not be waited for."""
    if steps[0].first:
        client = Client(socket.create_connection((host, port), timeout=ANSWER_S))
    else:
        client = Client.connect(host, port, "postgres", "wire")
    answers: Answers = []
    try:
        for number, step in enumerate(steps):
            if step.cancel:
                threading.Timer(MOMENT_S, _cancel, (host, port, client.key)).start()
            client.send(step.data)
            known = len(expected[number]) if expected is not None and number < len(expected) else None
            answers.append(_answer(client, step, known))
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        client.close()
    return answers


def _answer(client: Client, step: Step, known: int | None) -> list[bytes]:
    found: list[bytes] = []
    ready = 0
    while step.ready is None or ready < step.ready:
        quiet = QUIET_S if known is None or len(found) < known else SURPRISE_S
        message = _message(client, quiet if step.ready is None else ANSWER_S)
        if message is None:
            break
        found.append(message)
        if message == CLOSED:
            break
        ready += message[:1] == b"Z"
    return found


def _message(client: Client, timeout: float) -> bytes | None:
    client.socket.settimeout(timeout)
    while not _whole(client.buffer):
        try:
            more = client.socket.recv(65536)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return CLOSED
        if not more:
            return CLOSED
        client.buffer += more
    size = 1 if _single(client.buffer) else unpack_from("!I", client.buffer, 1)[0] + 1
    message, client.buffer = client.buffer[:size], client.buffer[size:]
    return message


def _single(buffer: bytes) -> bool:
    """The one byte that answers SSLRequest."""
    return buffer in (b"N", b"S")


def _whole(buffer: bytes) -> bool:
    return _single(buffer) or (len(buffer) >= 5 and len(buffer) > unpack_from("!I", buffer, 1)[0])


def _cancel(host: str, port: int, key: tuple[int, bytes]) -> None:
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(pack("!III", 12 + len(key[1]), 80877102, key[0]) + key[1])


def written(steps: Sequence[Step], answers: Answers) -> str:
    lines: list[str] = []
    for step, messages in zip(steps, answers, strict=False):
        lines.append("> cancel" if step.cancel else f"> {step.data!r}")
        lines += ["< closed" if m == CLOSED else f"< {m!r}" for m in messages]
    return "\n".join(lines) + "\n"


def read(text: str) -> tuple[list[bytes], Answers]:
    """What was sent, and what was answered."""
    sent: list[bytes] = []
    answers: Answers = []
    for line in text.splitlines():
        value = line[2:]
        data = value.encode() if value in ("cancel", "closed") else ast.literal_eval(value)
        if line.startswith(">"):
            sent.append(b"" if data == b"cancel" else data)
            answers.append([])
        else:
            answers[-1].append(data)
    return sent, answers


# --- what is masked on both sides -----------------------------------------------------------------------------------------


def key(message: bytes) -> bytes:
    """BackendKeyData: the process and its secret."""
    return message[:5] + bytes(len(message) - 5) if message[:1] == b"K" else message


def source(message: bytes) -> bytes:
    """Fields F, L and R of errors and notices: where in the server's source they come from."""
    if message[:1] not in (b"E", b"N") or len(message) < 6:
        return message
    body, at = b"", 5
    while message[at : at + 1] not in (b"\0", b""):
        end = message.index(b"\0", at) + 1
        body += b"" if message[at : at + 1] in b"FLR" else message[at:end]
        at = end
    return message[:1] + pack("!I", len(body) + 5) + body + b"\0"


def origin(message: bytes) -> bytes:
    """The table and column number of RowDescription's columns."""
    if message[:1] != b"T":
        return message
    out, at = bytearray(message), 7
    for _ in range(unpack_from("!H", message, 5)[0]):
        at = message.index(b"\0", at) + 1
        out[at : at + 6] = bytes(6)
        at += 18
    return bytes(out)


MASKS = {"key": key, "source": source, "origin": origin}


def masked(message: bytes, without: str = "") -> bytes:
    for name, mask in MASKS.items():
        if name != without and message != CLOSED:
            message = mask(message)
    return message


def told(message: bytes) -> str:
    """A message as a line, with all its fields."""
    if message == CLOSED:
        return "closed"
    if len(message) < 5:
        return repr(message)
    letter, body = chr(message[0]), message[5:]
    if letter in "EN":
        fields, at = [], 0
        while body[at : at + 1] != b"\0":
            value, end = cut(body, at + 1)
            fields.append(f"{chr(body[at])}={value!r}")
            at = end
        return " ".join(["ErrorResponse" if letter == "E" else "NoticeResponse", *fields])
    return shown(letter, body)


def different(theirs: Answers, ours: Answers) -> dict[int, tuple[str, ...]]:
    """By step: lines that PostgreSQL has, with -, and that we have, with +."""
    found: dict[int, tuple[str, ...]] = {}
    for number in range(max(len(theirs), len(ours))):
        left = [masked(m) for m in theirs[number]] if number < len(theirs) else []
        right = [masked(m) for m in ours[number]] if number < len(ours) else []
        if left != right:
            same = 0
            while same < min(len(left), len(right)) and left[same] == right[same]:
                same += 1
            tail = 0
            while tail < min(len(left), len(right)) - same and left[-1 - tail] == right[-1 - tail]:
                tail += 1
            found[number] = (
                *(f"- {told(m)}" for m in left[same : len(left) - tail]),
                *(f"+ {told(m)}" for m in right[same : len(right) - tail]),
            )
    return found
