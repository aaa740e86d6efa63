"""Attacks by statements: costly short texts, objects that stay in memory, and queries that run until they are canceled."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any

import psycopg

from tailgate.gateway.protocol.backend import frame
from tests.gateway.target import LOW, PATIENCE_S, WHO, Figures, Target
from tests.wire.wire import Bind, Client, Parse, Query, Sync

TIMEOUT_S, SMALL_TIMEOUT_S, SMALL = 3, 1, 100  # statement_timeout of the attacks that would take days, also of small attacks
ENDED_S = 10.0  # within which a canceled statement ends, on a busy machine
OVER = ("57014", "54000", "54001", "54011", "53200", "53400")  # cancelled, too complex, too large, too many
DAYS = "generate_series(1, 1000000) a, generate_series(1, 1000000) b"


def texts(size: int) -> dict[str, str]:
    """Returns statements that are much more expensive than long, if nothing limits their cost."""
    twice = ", ".join(f"c{i} AS (SELECT a.id FROM c{i - 1} a, c{i - 1} b WHERE a.id = b.id)" for i in range(1, 31))
    return {
        "nested calls": "SELECT " + "exp(" * 12 + "-1e300::float8" + ")" * 12,
        "nested parentheses": "SELECT " + "((SELECT " * 40 + "1" + ") + 1)" * 40,
        "references": f"WITH c0 AS (SELECT id FROM v), {twice} SELECT count(*) FROM c30",
        "backtracking": "SELECT repeat('a', 20) ~ '(((a*)*)*)*(?=b)'",
        "backtracking of rows": f"SELECT count(*) FROM generate_series(1, {size}) g WHERE repeat('a', 20 + g % 9) ~ '(((a*)*)*)*(?=b)'",
        "replacing": "SELECT length(regexp_replace(repeat('a', 100000), '(a*)*b', 'x', 'g'))",
        "back references": "SELECT repeat('ab', 20000) ~ '^(.*)(.*)(.*)\\1\\2\\3x$'",
        "similar to": "SELECT repeat('a', 2000) SIMILAR TO '((a|aa)*)*b'",
        "like": "SELECT repeat('a', 20000) LIKE '" + "%a" * 30 + "b'",
        "show like": "SHOW DATABASES LIKE '" + "%" * 2000 + "x'",
        "show like parts": "SHOW DATABASES LIKE '" + "%s" * 40 + "x'",
        "parameter": "SELECT $1000000000",
        "long list": f"SELECT count(*) FROM v WHERE id IN ({', '.join(map(str, range(100 * size)))})",
        "long array": f"SELECT cardinality('{{{','.join(['1'] * (100 * size))}}}'::int[])",
        "long json": f"SELECT jsonb_array_length('[{','.join(['1'] * (100 * size))}]'::jsonb)",
        "long script": "SELECT 1; " * (5 * size),
        "columns": f"SELECT {', '.join(['id + 1'] * (4 * size))} FROM v",
        "joins": f"SELECT count(*) FROM {' JOIN '.join(f'v v{i}' + (f' ON v{i}.id = v{i - 1}.id' if i else '') for i in range(100))}",
        "rows": f"SELECT count(*) FROM {DAYS}",
        "sorted rows": f"SELECT * FROM {DAYS} ORDER BY a.a * b.b",
        "series": "SELECT sum(g) FROM generate_series(1, 1000000000000) g",
        "recursion": "SELECT count(*) FROM " + ", ".join(f"v v{i}" for i in range(8)),
        "large text": "SELECT length(repeat('x', 1000000000) || repeat('y', 1000000000))",
        "large texts": "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 10000)",
        "large array": "SELECT cardinality(array_agg(a)) FROM generate_series(1, 100000000) a",
        "large power": "SELECT 9999999999::numeric ^ 99999::numeric",
        "large padding": "SELECT sum(length(lpad('x', 10000000 + g))) FROM generate_series(1, 1000) g",
        "large rows": "SELECT repeat('x', 50000000) FROM generate_series(1, 100)",
        "catalog": "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d",
        "catalog texts": "SELECT sum(length(repeat(a.attname, 100000))) FROM pg_attribute a, pg_attribute b",
        "catalog patterns": "SELECT count(*) FROM pg_attribute WHERE repeat('a', 25) ~ '(((a*)*)*)*(?=b)'",
    }


def complex_statements(target: Target, size: int) -> Figures:
    """Runs the statements of `texts`. Each is answered, refused or ended by statement_timeout."""
    longest, refused = 0.0, 0
    timeout_s = SMALL_TIMEOUT_S if size <= SMALL else TIMEOUT_S
    for name, text in texts(size).items():
        with _signed_in(target, statement_timeout=f"{timeout_s}s") as client:
            began = time.perf_counter()
            client.send(Query(text))
            sqlstate = _answer(client, name)
            took = time.perf_counter() - began
            if sqlstate is not None:
                refused += 1
            longest = max(longest, took)
            assert took < timeout_s + ENDED_S, f"{name} took {took:.1f} s"
    return {"statements": len(texts(size)), "refused": refused, "longest_s": longest}


def _answer(client: Client, what: str) -> str | None:
    """Reads messages until ReadyForQuery or the end of the connection.

    Returns the SQLSTATE of the error, "closed", or None without an error.
    """
    sqlstate = None
    while (message := client.message(PATIENCE_S)) is not None:
        letter, body = message
        if letter == "E":
            fields = {part[:1]: part[1:] for part in body.split(b"\0") if part}
            sqlstate = fields[b"C"].decode()
            if sqlstate.startswith("XX"):
                raise AssertionError(f"{what}: {fields}")
        if letter == "Z":
            return sqlstate
    return sqlstate or "closed"


@contextlib.contextmanager
def _signed_in(target: Target, user: str = LOW, **options: str) -> Iterator[Client]:
    client = Client.connect("127.0.0.1", target.port, user, "shop", **options)
    try:
        yield client
    finally:
        client.close()


def before_signing_in(target: Target, size: int) -> Figures:
    """Sends a message of 64 MiB instead of a password, from `size` connections."""
    refused = 0
    words = pack("!I", 196608) + b"user\0bob\0database\0shop\0\0"
    for _ in range(size):
        with target.connect() as connection:
            connection.sendall(pack("!I", len(words) + 4) + words + b"p" + pack("!I", 64 << 20))
            connection.settimeout(30)
            with contextlib.suppress(OSError):
                for _ in range(64):
                    connection.sendall(b"x" * 2**20)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
            refused += 1
    return {"refused": refused}


# --- memory of sessions ------------------------------------------------------------------------------------------------------------------


FILLER = "x" * 2**20
OCCUPYING_MESSAGES: dict[str, Callable[[int], bytes]] = {  # messages that occupy about one more MiB; n counts them in a session
    "prepared statements": lambda n: Parse(f"s{n}", f"SELECT '{FILLER}', {n}") + Sync(),
    "short statements": lambda n: b"".join(Parse(f"s{n} {i}", f"SELECT {i} + id FROM v WHERE id = $1") for i in range(200)) + Sync(),
    "bound values": lambda n: Parse("", "SELECT $1::text", [25]) + Bind(f"p{n}", "", [FILLER]) + frame(b"H", b""),
    "cursors": lambda n: Query(f"DECLARE c{n} CURSOR WITH HOLD FOR SELECT repeat('x', 1048576), {n}"),
    "temporary views": lambda n: Query(f"CREATE TEMP VIEW t{n} AS SELECT '{FILLER}' AS x, {n} AS n"),
    "texts": lambda n: Query(f"SELECT {n}, '{'y' * 18000}'; " * 8),
    "settings": lambda n: Query("; ".join(f"SET my.s{n}_{i} = '{'z' * 9000}'" for i in range(100))),
    "savepoints": lambda n: Query(("BEGIN; " if n == 0 else "") + "; ".join(f"SAVEPOINT s{n}_{i}" for i in range(80))),
}
EACH_MB = 64  # in one session; half of the gateway's share for clients is its limit


def hoarding(target: Target, size: int) -> Figures:
    """Occupies `size` MiB with each kind of object that a session can hold, in many sessions of one role."""
    refused = sum(_occupies(target, name, size) for name in OCCUPYING_MESSAGES)
    with contextlib.ExitStack() as stack:  # half of a message of 15 MiB each
        for _ in range(max(size // 14, 1)):
            try:
                client = stack.enter_context(_signed_in(target))
                client.send(b"Q" + pack("!I", 15 << 20) + b"x" * min(size, 14) * 2**20)
            except (AssertionError, OSError):  # 53200
                refused += 1
                break
    return {"refused": refused}


def _occupies(target: Target, name: str, size: int) -> bool:
    """Returns whether the server refused a message or a sign-in."""
    with contextlib.ExitStack() as stack:
        for number in range(size):
            if number % EACH_MB == 0:
                try:
                    client = stack.enter_context(_signed_in(target))
                except AssertionError:  # 53200, at the sign-in
                    return True
            client.send(OCCUPYING_MESSAGES[name](number % EACH_MB))
            sqlstate = _bind_answer(client, name) if name == "bound values" else _answer(client, name)
            if sqlstate is not None:
                assert sqlstate in ("closed", *OVER), f"{name}: {sqlstate}"
                return True
    return False


def _bind_answer(client: Client, what: str) -> str | None:
    """Reads messages until BindComplete or an error. Returns the SQLSTATE of the error, "closed", or None."""
    while (message := client.message(PATIENCE_S)) is not None:
        letter, body = message
        if letter == "E":
            return next(part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C")
        if letter == "2":
            return None
    return "closed"


def large_results(target: Target, size: int) -> Figures:
    """Requests results of 100 MiB from `size` clients that do not read them."""
    refused = 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(_signed_in(target)) for _ in range(size)]
        for client in clients:
            client.send(Query("SELECT repeat('x', 1048576) FROM generate_series(1, 100)"))
        for client in clients:
            message = client.message(PATIENCE_S)
            assert message is not None
            refused += message[0] == "E"
    return {"requested_mb": 100 * size, "refused": refused}


# --- long work ------------------------------------------------------------------------------------------------------------------


def _run_endless(target: Target, size: int, text: str) -> Figures:
    """Runs `text` in `size` sessions of one role, and cancels all of them.

    Other sessions get answers meanwhile. Half of the queries are canceled by the client, half with
    pg_cancel_backend.
    """
    slowest: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        ann = stack.enter_context(target.client("ann"))
        ann.execute("SELECT pg_cancel_backend(0)")
        attackers = [stack.enter_context(contextlib.closing(target.client(LOW))) for _ in range(size)]
        errors: list[str | None] = []
        threads = [threading.Thread(target=lambda a=a: errors.append(_error_of(a, text)), daemon=True) for a in attackers]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 2
        for number in itertools.count():
            for name, query in PROBES.items():
                began = time.perf_counter()
                ann.execute(query)  # type: ignore[arg-type]
                slowest[name] = max(slowest.get(name, 0.0), time.perf_counter() - began)
            slowest["first of TAIL"] = max(slowest.get("first of TAIL", 0.0), _first_of_tail(target))
            if time.monotonic() > until and number > 2:
                break
        began = time.perf_counter()
        for number, attacker in enumerate(attackers):
            if number % 2:
                attacker.cancel()
            else:
                ann.execute("SELECT pg_cancel_backend(%s)", (attacker.info.backend_pid,))
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        ending = time.perf_counter() - began
        assert set(errors) <= {*OVER}, errors
        assert ending < ENDED_S + 0.2 * size
        for attacker in attackers:
            assert attacker.execute("SELECT 1").fetchone() == (1,)
    return {"sessions": size, "ending_s": ending, "beside_max_ms": 1000 * max(slowest.values())}


PROBES = {
    "pg_cancel_backend": "SELECT pg_cancel_backend(0)",
    "SELECT 1": "SELECT 1",
    "catalog": "SELECT count(*) FROM pg_class WHERE relname = 'v'",
    "rows": "SELECT count(*) FROM v WHERE amount > extract(second FROM now())",
}


def _error_of(connection: psycopg.Connection[Any], text: str) -> str | None:
    try:
        for _ in connection.cursor().stream(text):  # type: ignore[arg-type]
            pass
    except psycopg.Error as error:
        return error.sqlstate
    return "no error"


def _first_of_tail(target: Target) -> float:
    with _signed_in(target, WHO) as client:
        began = time.perf_counter()
        client.send(Query("TAIL v"))
        while (message := client.message(PATIENCE_S)) is not None and message[0] not in "dD":
            assert message[0] != "E", message
        assert message is not None
        return time.perf_counter() - began


def catalog_queries(target: Target, size: int) -> Figures:
    """Runs queries of the system catalog that would take days."""
    return _run_endless(target, size, "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d, pg_attribute e")


def followed_queries(target: Target, size: int) -> Figures:
    """Follows queries that would take days."""
    joined = ", ".join(f"v v{i}" for i in range(8))
    return _run_endless(target, size, f"TAIL (SELECT v0.id, count(*) AS n FROM {joined} GROUP BY 1)")


def ordinary_queries(target: Target, size: int) -> Figures:
    """Runs more queries that would take days than the server has threads."""
    return _run_endless(target, size, f"SELECT count(*) FROM {DAYS}")


def open_blocks(target: Target, size: int) -> Figures:
    """Opens as many transactions as one role may. Another role and a superuser can still open theirs."""
    refused = 0
    with contextlib.ExitStack() as stack:
        for _ in range(size):
            low = stack.enter_context(target.client(LOW))
            low.execute("BEGIN")
            try:
                low.execute("SELECT count(*) FROM v").fetchone()
            except psycopg.errors.ConfigurationLimitExceeded:
                refused += 1
        for user in ("bob", "ann"):
            other = stack.enter_context(target.client(user))
            other.execute("BEGIN")
            assert other.execute("SELECT count(*) FROM v").fetchone() == (100,)
    return {"transactions": size, "refused": refused}
