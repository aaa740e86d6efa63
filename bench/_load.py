"""Load on a PostgreSQL server: plain sockets in one thread, one request at a time per connection."""

from __future__ import annotations

import gc
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from struct import pack
from urllib.parse import urlsplit

READY = b"Z\0\0\0\5"


class Client:
    """A connection. `ask` sends a request and returns all bytes up to ReadyForQuery."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        self.socket = socket.create_connection((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = f"user\0{parts.username or 'bench'}\0database\0{parts.path.strip('/') or 'tailgate'}\0\0".encode()
        self.ask(pack("!II", len(words) + 8, 196608) + words)

    def ask(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        answer = b""
        while answer[-6:-1] != READY:
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError(answer)
            answer += more
        if b"ERROR\0" in answer:
            raise RuntimeError(answer)
        return answer


def message(letter: bytes, body: bytes) -> bytes:
    return letter + pack("!I", len(body) + 4) + body


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def parse(name: str, sql: str) -> bytes:
    return message(b"P", f"{name}\0{sql}\0".encode() + pack("!h", 0)) + message(b"S", b"")


def execute(name: str, value: str) -> bytes:
    bound = b"\0" + name.encode() + b"\0" + pack("!hhi", 0, 1, len(value)) + value.encode() + pack("!h", 0)
    return message(b"B", bound) + message(b"E", b"\0" + pack("!i", 0)) + message(b"S", b"")


def offered(dsn: str, connections: int, seconds: float, first: bytes | None, request: Callable[[], bytes]) -> list[float]:
    """Sends requests as fast as they are answered. Returns their latencies in seconds."""
    clients = [Client(dsn) for _ in range(connections)]
    for client in clients:
        if first is not None:
            client.ask(first)
        client.ask(request())
    latencies: list[float] = []
    with selectors.DefaultSelector() as selector:
        began: dict[Client, float] = {}
        got: dict[Client, bytes] = dict.fromkeys(clients, b"")
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            began[client] = time.perf_counter()
            client.socket.sendall(request())
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for key, _ in selector.select(0.1):
                client = key.data
                got[client] += client.socket.recv(1 << 20)
                if got[client][-6:-1] == READY:
                    if b"ERROR\0" in got[client]:
                        raise RuntimeError(got[client])
                    now = time.perf_counter()
                    latencies.append(now - began[client])
                    got[client], began[client] = b"", now
                    client.socket.sendall(request())
    for client in clients:
        client.socket.close()
    return latencies


def steady(dsn: str, connections: int, rate: float, seconds: float, sql: str) -> list[float]:
    """Sends requests at a fixed rate, whether or not earlier ones are answered.

    Returns latencies in seconds.

    A latency counts from the time when the request was due, so a server's pause counts for all
    requests that waited.
    """
    clients = [Client(dsn) for _ in range(connections)]
    request = query(sql)
    for client in clients:
        client.ask(request)
    by_number = {client.socket.fileno(): client for client in clients}
    idle, due_at, got = deque(clients), dict.fromkeys(clients, 0.0), dict.fromkeys(clients, b"")
    latencies: list[float] = []
    gc.collect()
    gc.disable()  # excludes the load's own pauses
    began, sent, many = time.perf_counter(), 0, round(rate * seconds)
    while len(latencies) < many:
        now = time.perf_counter()
        while idle and sent < many and began + sent / rate <= now:
            client = idle.popleft()
            due_at[client] = began + sent / rate
            client.socket.sendall(request)
            sent += 1
        wait = max(began + sent / rate - time.perf_counter(), 0.0) if idle and sent < many else 1.0
        for number in select.select(by_number, (), (), wait)[0]:
            client = by_number[number]
            more = client.socket.recv(1 << 20)
            if not more:
                raise ConnectionError(got[client])
            got[client] += more
            if got[client][-6:-1] == READY:
                if b"ERROR\0" in got[client]:
                    raise RuntimeError(got[client])
                latencies.append(time.perf_counter() - due_at[client])
                got[client] = b""
                idle.append(client)
    gc.enable()
    for client in clients:
        client.socket.close()
    return latencies


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Returns p50, p95, p99 and max in ms."""
    ordered = sorted(seconds)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(int(len(ordered) * p), len(ordered) - 1)] * 1000, 2) for name, p in shares.items()}


def figures(latencies: list[float], seconds: float) -> dict[str, float]:
    return {"per_second": round(len(latencies) / seconds), **quantiles(latencies)}
