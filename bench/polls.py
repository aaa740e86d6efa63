"""Polls while ticks run: a view of 100 rows by 8 connections, and look-ups by key, beside PostgreSQL 15 with the same table.

    python bench/polls.py [--seconds 5] [--connections 8]                    a lake, a writer and a gateway of its own
    python bench/polls.py --dsn postgresql://… --relation v --key column     a running gateway; its ticks are its own

Load comes from one thread over plain sockets, one request at a time on each connection; servers are asked in turns, and PostgreSQL's
table is updated at the same moments as ours. The last line is JSON: answers per second, latencies in ms, and ratios to PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from struct import pack
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from lake import Lake  # noqa: E402
from lake.catalog import Change, Item  # noqa: E402
from lake.types import INT8, TEXT, WEIGHT, Field  # noqa: E402
from lake.writing import open_epoch  # noqa: E402
from tests.postgres import Postgres  # noqa: E402

ROWS, CHANGED, TICK_S = 100, 20, 0.2
FORM = (Field("id", INT8, False), Field("segment", TEXT), Field("views", INT8), Field("last_page", TEXT))
READY = b"Z\0\0\0\5"


# --- load


class Client:
    """One connection: a request, then all bytes up to ReadyForQuery."""

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
    """Latencies, in seconds, of as many requests as were answered."""
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


def figures(latencies: list[float], seconds: float) -> dict[str, float]:
    ordered = sorted(latencies)
    at = [round(ordered[min(int(len(ordered) * p), len(ordered) - 1)] * 1000, 2) for p in (0.5, 0.95, 0.99)]
    return {"per_second": round(len(ordered) / seconds), "p50": at[0], "p95": at[1], "p99": at[2], "max": round(ordered[-1] * 1000, 2)}


# --- what is polled


@contextmanager
def own_gateway(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    """A gateway over a lake that is written here: its DSN, and what makes the next tick."""
    writer = open_epoch(Lake.create(folder / "lake"))
    item = Item(16384, "materialized view", "v", FORM, (0,), stored=True, errors=16385)
    writer.append(kind="catalog", catalog=Change(put=(item,)))
    writer.append([(item.id, rows(range(ROWS), 0, 1))])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"from gateway.main import Options, run; from pathlib import Path; run(Options(Path({str(folder / 'lake')!r}), port={port}))"
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline().startswith("ready"), "the gateway did not start"
        yield f"postgresql://bench@127.0.0.1:{port}/tailgate", lambda step: tick(writer, item, step)
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()
        writer.close()


def values(ids: range | list[int], version: int) -> list[tuple[int, str, int, str]]:
    return [(i, f"segment {i % 7}", version * 10 + i, f"/page/{(i + version) % 50}") for i in ids]


def rows(ids: range | list[int], version: int, weight: int) -> pa.Table:
    columns = list(zip(*values(ids, version), strict=True))
    weights = pa.array([weight] * len(ids), pa.int64())
    return pa.Table.from_arrays([*(pa.array(c) for c in columns), weights], names=[*(f.name for f in FORM), WEIGHT])


def touched(step: int) -> list[tuple[int, int]]:
    """Ids that a tick changes, with the version each has before."""
    first = step * CHANGED % ROWS
    return [(i, step * CHANGED // ROWS) for i in range(first, first + CHANGED)]


def tick(writer, item: Item, step: int) -> None:  # type: ignore[no-untyped-def]
    ids, (version, *_) = [i for i, _ in touched(step)], [v for _, v in touched(step)]
    writer.append([(item.id, pa.concat_tables([rows(ids, version, -1), rows(ids, version + 1, 1)]))])


@contextmanager
def postgresql() -> Iterator[tuple[str, Callable[[int], None]]]:
    server = Postgres()
    try:
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE v (id bigint PRIMARY KEY, segment text, views bigint, last_page text)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO v VALUES (%s, %s, %s, %s)", values(range(ROWS), 0))
            connection.execute("VACUUM ANALYZE v")

            def tick(step: int) -> None:
                changes = [(views, page, i) for i, _, views, page in values([i for i, _ in touched(step)], touched(step)[0][1] + 1)]
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany("UPDATE v SET views = %s, last_page = %s WHERE id = %s", changes)

            yield server.dsn, tick
    finally:
        server.stop()


@contextmanager
def ticking(*ticks: Callable[[int], None]) -> Iterator[list[int]]:
    """Ticks on a thread, the same ones everywhere."""
    stop, made = threading.Event(), [0]

    def run() -> None:
        while not stop.wait(TICK_S):
            for one in ticks:
                one(made[0])
            made[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


def measure(given: argparse.Namespace) -> dict[str, object]:
    with ExitStack() as stack:
        theirs, their_tick = stack.enter_context(postgresql())
        if given.dsn:
            ours, ticks = given.dsn, [their_tick]
        else:
            ours, our_tick = stack.enter_context(own_gateway(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
            ticks = [our_tick, their_tick]
        keys = list(range(ROWS))
        if given.dsn:
            with psycopg.connect(given.dsn) as connection:
                keys = [k for (k,) in connection.execute(f"SELECT {given.key} FROM {given.relation}").fetchall()]  # type: ignore[arg-type]
        made = stack.enter_context(ticking(*ticks))
        out: dict[str, object] = {
            "connections": given.connections,
            "seconds": given.seconds,
            "load": [round(x, 1) for x in os.getloadavg()],
        }
        for name, prepare, of in (
            ("scan", lambda r, k: None, lambda r, k, keys: lambda: query(f"SELECT * FROM {r}")),
            (
                "look_up",
                lambda r, k: parse("p", f"SELECT * FROM {r} WHERE {k} = $1"),
                lambda r, k, keys: lambda: execute("p", str(random.choice(keys))),
            ),
        ):
            got: dict[str, list[float]] = {"tailgate": [], "postgresql": []}
            for _ in range(2):  # in turns, so that both see the machine's moods
                for who, dsn, relation, key, some in (
                    ("tailgate", ours, given.relation, given.key, keys),
                    ("postgresql", theirs, "v", "id", list(range(ROWS))),
                ):
                    got[who] += offered(dsn, given.connections, given.seconds / 2, prepare(relation, key), of(relation, key, some))
            both = {who: figures(latencies, given.seconds) for who, latencies in got.items()}
            out[name] = both | {"ratio": round(both["tailgate"]["per_second"] / both["postgresql"]["per_second"], 2)}
        out["ticks"] = made[0]
        return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn")
    parser.add_argument("--relation", default="v")
    parser.add_argument("--key", default="id")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--connections", type=int, default=8)
    print(json.dumps(measure(parser.parse_args())))
