"""Attacks on a gateway in a separate process, while another client polls it.

An attack takes a `Target` and a size and returns figures. During every attack the gateway keeps
running within its memory limit, and the poller gets its answers.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from struct import pack

import psycopg
import pytest

from tailgate.gateway.protocol.backend import frame
from tests.gateway import statement_attacks as statements
from tests.gateway.target import PATIENCE_S, WHO, Figures, Target, Watched
from tests.wire.wire import Client, Parse, Query, Sync


def wrong_passwords(target: Target, size: int) -> Figures:
    """Returns how long the refusal of a password takes, for an existing role and for an unknown role."""

    def refused(user: str) -> float:
        began = time.perf_counter()
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"host=127.0.0.1 port={target.port} dbname=shop user={user} password=wrong").close()
        return time.perf_counter() - began

    present, absent = [], []
    for _ in range(size):
        present.append(refused("ann"))
        absent.append(refused("nobody"))
    return {
        "least_ms": min(present + absent) * 1000,
        "present_median_ms": statistics.median(present) * 1000,
        "absent_median_ms": statistics.median(absent) * 1000,
    }


def half_open(target: Target, size: int) -> Figures:
    """Opens connections that send nothing, or half of a startup packet, and keeps them open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(size + 1000, hard), hard))
    opened: list[socket.socket] = []
    began = time.perf_counter()
    try:
        for number in range(size):
            opened.append(target.connect())
            if number % 2:
                opened[-1].sendall(pack("!II", 5000, 196608) + b"user\0ann\0" + b"x" * 1000)
        opening = time.perf_counter() - began
        assert target.answers()
        return {"connections": size, "opening_s": opening}
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def huge_messages(target: Target, size: int) -> Figures:
    """Sends messages with lengths of a gigabyte, before and after the startup, until the server closes the connection."""
    refused = 0
    for length in (2**31 - 1, 2**30, 20_000):
        with target.connect() as connection:
            connection.sendall(pack("!I", length) + b"x" * 10_000)
            refused += _ends(connection)
    heads = [frame(letter, b"")[:1] + pack("!I", 2**30) for letter in (b"Q", b"P", b"B", b"d", b"X", b"S")]
    for head in heads:
        client = Client.connect("127.0.0.1", target.port, WHO, "shop")
        with contextlib.suppress(OSError):
            client.send(head)
            for _ in range(size):
                client.send(b"x" * 2**20)
        refused += _ends(client.socket)
        client.close()
    client = Client.connect("127.0.0.1", target.port, WHO, "shop")
    client.send(Query("SELECT '" + "x" * (5 * 2**20) + "'"))
    answered = [letter for letter, _ in client.until_ready()]
    client.close()
    assert answered == ["E", "Z"], answered
    assert refused == 3 + len(heads)
    return {"refused": refused}


def _ends(connection: socket.socket) -> bool:
    """Waits until the server closes the connection. Returns True."""
    connection.settimeout(30)
    with contextlib.suppress(ConnectionError):
        while connection.recv(65536):
            pass
    return True


def deep_nesting(target: Target, size: int) -> Figures:
    """Sends texts with very deep nesting. Each gets an error or an answer, and the next statement works."""
    deep = (
        "SELECT " + "(" * size + "1" + ")" * size,
        "SELECT " + "-" * 1 + " -" * size + "1",
        "SELECT " + "NOT " * size + "true",
        "SELECT 1" + " + 1" * size,
        "SELECT true" + " AND true" * size,
        "SELECT " + "abs(" * size + "1" + ")" * size,
        "SELECT " + "CASE WHEN true THEN " * size + "1" + " END" * size,
        "SELECT " + "ARRAY[" * size + "1" + "]" * size,
        "SELECT '" + "[" * size + "]" * size + "'::jsonb",
        "SELECT '" + "{" * size + "}" * size + "'::int[]",
        "SELECT * FROM " + "(SELECT * FROM " * size + "v" + ") AS q" * size,
        "SELECT 1" + " UNION ALL SELECT 1" * size,
        "SELECT 1 WHERE 1 IN (" + ", ".join(map(str, range(size))) + ")",
        "(" * size,
        "/*" * size,
        "SELECT '" + "(" * size + "' ~ '" + "(" * size + "a" + ")" * size + "'",
        "WITH " + ", ".join(f"c{i} AS (SELECT 1)" for i in range(min(size, 2000))) + " SELECT 1",
    )
    longest, errors = 0.0, 0
    client = Client.connect("127.0.0.1", target.port, WHO, "shop")
    for text in deep:
        for words in (Query(text), Parse("", text) + Sync()):
            began = time.perf_counter()
            client.send(words)
            messages = list(_patiently(client))
            longest = max(longest, time.perf_counter() - began)
            assert messages, text[:40]
            assert messages[-1][0] == "Z", text[:40]
            for letter, body in messages:
                errors += letter == "E"
                assert letter != "E" or b"CXX000\0" not in body, (text[:60], body[:200])
    client.send(Query("SELECT 1"))
    assert [letter for letter, _ in client.until_ready()] == ["T", "D", "C", "Z"]
    client.close()
    return {"statements": 2 * len(deep), "errors": errors, "longest_s": longest}


def _patiently(client: Client) -> Iterator[tuple[str, bytes]]:
    while (message := client.message(PATIENCE_S)) is not None:
        yield message
        if message[0] == "Z":
            return


def stopped_reader(target: Target, size: int) -> Figures:
    """Requests results of `size` MiB with a client that stops reading, and with one that disconnects early."""
    text = f"SELECT repeat('x', 1048000) AS v FROM generate_series(1, {size}) AS g"
    reader = Client.connect("127.0.0.1", target.port, WHO, "shop")
    reader.send(Query(text))
    time.sleep(min(3.0, size / 100))
    first_message = reader.message(60)
    follower = Client.connect("127.0.0.1", target.port, WHO, "shop")
    follower.send(Query(text))
    time.sleep(min(1.0, size / 300))
    follower.close()
    assert first_message is not None
    time.sleep(min(2.0, size / 100))
    reader.close()
    return {"requested_mb": size, "refused": float(first_message[0] == "E")}


def cancel_storm(target: Target, size: int) -> Figures:
    """Sends cancel requests with invalid keys, and with the right key of a polling session."""
    victim = Client.connect("127.0.0.1", target.port, WHO, "shop")
    chance = random.Random(2)
    began = time.perf_counter()
    cancelled = 0
    for number in range(size):
        key = victim.key if number % 10 == 0 else (chance.randrange(2**31), chance.randbytes(len(victim.key[1])))
        with target.connect() as connection:
            connection.sendall(pack("!III", 12 + len(key[1]), 80877102, key[0]) + key[1])
            _ends(connection)
        if number % 100 == 0:
            victim.send(Query("SELECT 1"))
            cancelled += any(letter == "E" for letter, _ in victim.until_ready())
    took = time.perf_counter() - began
    victim.close()
    return {"requests": size, "per_second": size / took, "cancelled": cancelled}


ATTACKS: dict[str, tuple[Callable[[Target, int], Figures], int, int]] = {  # attack, its small size, its full size
    "wrong passwords": (wrong_passwords, 3, 50),
    "half-open connections": (half_open, 300, 10_000),
    "huge messages": (huge_messages, 2, 1024),
    "deep nesting": (deep_nesting, 500, 20_000),
    "a reader that stops": (stopped_reader, 64, 1024),
    "cancel storm": (cancel_storm, 200, 10_000),
    "before signing in": (statements.before_signing_in, 3, 40),
    "complex statements": (statements.complex_statements, 100, 2_000),
    "hoarding": (statements.hoarding, 2, 512),
    "large results": (statements.large_results, 2, 40),
    "catalog queries": (statements.catalog_queries, 4, 40),
    "followed queries": (statements.followed_queries, 4, 40),
    "ordinary queries": (statements.ordinary_queries, 4, 60),
    "open blocks": (statements.open_blocks, 10, 150),
}


def run_attack(name: str, target: Target, size: int) -> Figures:
    """Runs an attack. Returns its figures and those of the poller; raises if the gateway or the poller fails."""
    attack, _, _ = ATTACKS[name]
    with Watched(target) as watched:
        figures = attack(target, size)
        watched.once_more()
    assert watched.polls, "the poller failed"
    assert target.answers()
    os.kill(target.child.pid, 0)
    return {**figures, **watched.figures()}
