"""Recorded conversations: the raw bytes of both sides, one line for each message of the server.

    > b'Q\\x00…'     a step of the client (`conversations`)
    < b'T\\x00…'     a message of the server, or other bytes, such as the N that answers an SSLRequest
    < closed         the server closed the connection

`converse` runs a conversation with a server, `written` and `read` convert it to and from text, and
`different` compares the answers of two servers.
"""

from __future__ import annotations

import ast
import socket
import threading
from collections.abc import Sequence
from struct import pack, unpack_from

from tests.wire.conversations import Step
from tests.wire.wire import Client, cut, shown

QUIET_S = 0.4  # silence after which an answer counts as complete
SURPRISE_S = 0.02  # wait for unexpected messages after the expected ones
ANSWER_S = 30.0
MOMENT_S = 0.4  # before a cancel request
CLOSED = b"closed"

Answers = list[list[bytes]]  # the messages of each step


def converse(host: str, port: int, steps: Sequence[Step], expected: Answers | None = None) -> Answers:
    """Runs a conversation and returns the answers.

    `expected` shortens the wait for silence once a step has as many messages as were recorded.
    """
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
            count = len(expected[number]) if expected is not None and number < len(expected) else None
            answers.append(_answer(client, step, count))
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        client.close()
    return answers


def _answer(client: Client, step: Step, count: int | None) -> list[bytes]:
    messages: list[bytes] = []
    ready = 0
    while step.ready is None or ready < step.ready:
        quiet = QUIET_S if count is None or len(messages) < count else SURPRISE_S
        message = _message(client, quiet if step.ready is None else ANSWER_S)
        if message is None:
            break
        messages.append(message)
        if message == CLOSED:
            break
        ready += message[:1] == b"Z"
    return messages


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
    """Returns whether the buffer is the single byte that answers an SSLRequest."""
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
    """Parses a recording. Returns the sent bytes and the answers, by step."""
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


# --- masks, applied to both sides ---------------------------------------------------------------


def key(message: bytes) -> bytes:
    """Masks the process id and the secret of BackendKeyData."""
    return message[:5] + bytes(len(message) - 5) if message[:1] == b"K" else message


def source(message: bytes) -> bytes:
    """Drops the fields F, L and R of errors and notices, the position in the server's source."""
    if message[:1] not in (b"E", b"N") or len(message) < 6:
        return message
    body, at = b"", 5
    while message[at : at + 1] not in (b"\0", b""):
        end = message.index(b"\0", at) + 1
        body += b"" if message[at : at + 1] in b"FLR" else message[at:end]
        at = end
    return message[:1] + pack("!I", len(body) + 5) + body + b"\0"


def origin(message: bytes) -> bytes:
    """Masks the table oid and column number of RowDescription's columns."""
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


def message_text(message: bytes) -> str:
    """Returns a message as a line with all its fields."""
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
    """Returns the steps with different answers.

    The lines of a step are a diff: - for PostgreSQL's messages, + for Tailgate's.
    """
    differences: dict[int, tuple[str, ...]] = {}
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
            differences[number] = (
                *(f"- {message_text(m)}" for m in left[same : len(left) - tail]),
                *(f"+ {message_text(m)}" for m in right[same : len(right) - tail]),
            )
    return differences
