"""Finds the listening TCP sockets of a process tree, and what each answers without authentication.

Every socket gets the first request of every protocol that Tailgate's processes speak. `verdicts`
returns `<protocol> open` if the request was served, and `<protocol> refused` if the answer asks for
authentication. Silence and a closed connection give no verdict.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack

ANSWER_S = 5.0  # wait for a silent socket; an answer takes milliseconds
LISTEN = "0A"  # the state in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class Listener:
    pid: int
    host: str
    port: int


def descendants(root: int) -> dict[int, str]:
    """Returns the command lines of a process and its descendants, by process id."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # ended meanwhile
        parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return {pid: _command(pid) for pid in family}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def listeners(pids: list[int]) -> list[Listener]:
    """Returns the listening sockets of these processes."""
    ports = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                address, _, port = fields[1].rpartition(":")
                ports[fields[9]] = (_host(address), int(port, 16))
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
            except OSError:
                continue
            if match and match[1] in ports:
                sockets.add(Listener(pid, *ports[match[1]]))
    return sorted(sockets, key=lambda listener: (listener.pid, listener.port))


def _host(hexadecimal: str) -> str:
    """Parses an address of /proc/net/tcp or tcp6, which has 32-bit words in native byte order."""
    words = b"".join(pack("=I", int(hexadecimal[i : i + 8], 16)) for i in range(0, len(hexadecimal), 8))
    if len(words) == 4:
        return socket.inet_ntop(socket.AF_INET, words)
    text = socket.inet_ntop(socket.AF_INET6, words)
    return text.removeprefix("::ffff:")


# --- requests, and functions of their answers: True for served, False for refused, None for neither


def _http(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()


def _http_answer(answer: bytes) -> bool | None:
    match = re.match(rb"HTTP/1\.[01] (\d+)", answer)
    return None if match is None else {b"200": True, b"401": False}.get(match[1])


def _postgresql() -> bytes:
    body = pack("!I", 196608) + b"user\0tailgate\0database\0tailgate\0\0"
    return pack("!I", len(body) + 4) + body


def _postgresql_answer(answer: bytes) -> bool | None:
    if len(answer) < 9 or answer[:1] != b"R":
        return None
    return bool(unpack("!I", answer[5:9])[0] == 0)


def _spark() -> bytes:
    """Returns an RpcRequest that opens no blocks: BlockTransferMessage.OpenBlocks(app, executor, [])."""
    body = pack("!B", 0) + pack("!I", 3) + b"app" + pack("!I", 1) + b"0" + pack("!I", 0)
    message = pack("!BQI", 3, 1, len(body)) + body
    return pack("!Q", len(message) + 8) + message


def _spark_stream() -> bytes:
    name = b"/jars/none"
    message = pack("!BI", 6, len(name)) + name
    return pack("!Q", len(message) + 8) + message


def _spark_answer(answer: bytes) -> bool | None:
    if len(answer) < 9 or unpack("!Q", answer[:8])[0] > 1 << 20 or answer[8] not in (4, 5, 7, 8):
        return None
    return not (b"SaslMessage" in answer or b"challenge" in answer)


def _kafka(endpoint: int) -> bytes:
    """Returns a DescribeCluster request, version 1, about the brokers (1) or the controllers (2)."""
    body = pack("!hhih", 60, 1, 7, -1) + b"\0" + pack("!bb", 0, endpoint) + b"\0"
    return pack("!I", len(body)) + body


def _kafka_answer(answer: bytes) -> bool | None:
    return True if len(answer) > 8 and answer[4:8] == pack("!i", 7) else None


def _py4j_answer(answer: bytes) -> bool | None:
    return (b"Authentication" not in answer) if answer.startswith((b"!x", b"!y")) else None


Meaning = Callable[[bytes], bool | None]
PROBES: tuple[tuple[str, bytes, Meaning], ...] = (
    ("postgresql", _postgresql(), _postgresql_answer),
    ("control", _http("/status"), _http_answer),
    ("presto", _http("/v1/info"), _http_answer),
    ("metrics", _http("/metrics"), _http_answer),
    ("registry", _http("/subjects"), _http_answer),
    ("peers", b'{"do": "sessions", "role": 10, "superuser": true}\n', lambda answer: True if answer.startswith(b"{") else None),
    ("py4j", b"m\nd\nnothing\ne\n", _py4j_answer),  # removes an unknown object
    ("py4j callbacks", b"g\np999\ne\n", _py4j_answer),
    ("spark", _spark(), _spark_answer),
    ("kafka", _kafka(1), _kafka_answer),
    ("kafka controller", _kafka(2), _kafka_answer),
)


def verdicts(host: str, port: int) -> set[str]:
    """Sends every protocol's first request to a socket. Returns the verdicts."""
    with ThreadPoolExecutor(len(PROBES)) as pool:
        answers = pool.map(lambda probe: exchange(host, port, probe[1]), PROBES)
        meanings = [(name, meaning(answer)) for (name, _, meaning), answer in zip(PROBES, answers, strict=True)]
    return {f"{name} {'open' if served else 'refused'}" for name, served in meanings if served is not None}


def exchange(host: str, port: int, request: bytes, wait_s: float = ANSWER_S) -> bytes:
    """Sends a request. Returns the first piece of the answer, or b"" without one."""
    try:
        with socket.create_connection((host, port), timeout=wait_s) as connection:
            connection.sendall(request)
            return connection.recv(1 << 16)
    except OSError:
        return b""
