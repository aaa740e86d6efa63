"""Measures an endpoint that reads a view by key over HTTP, at a fixed rate, during ticks with changes.

    python bench/service.py [--users 100000] [--rate 1000] [--connections 100] [--seconds 60] [--changes 200] [--streams 0]

The script starts a lake, a writer and `tailgate gateway --http`. The load is another process. A latency
counts from the time when the request was due. The first requests build the gateway's index and are not
measured. With `--streams`, a third process follows as many users; once a second a tick changes 500 of them,
and `last_reader_ms` is the time from its commit to its last reader, the median over these ticks. The last line
is JSON: latencies in ms, the gateway's memory and CPU, and whether the marks are reached.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import re
import select
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
from _load import figures  # a module of this folder
from _processes import cpu_s, resident_mib, stolen_ms
from polls import ticking

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tailgate.lake.catalog import Change, Endpoint, MaterializedView  # noqa: E402
from tailgate.lake.folder import Lake  # noqa: E402
from tailgate.lake.types import INT8, TEXT, WEIGHT, Field  # noqa: E402
from tailgate.lake.writer.log_writer import open_epoch  # noqa: E402

TICK_S = 0.2  # seconds between ticks
WARM_REQUESTS = 2_000
FOLLOWED_EVERY, FOLLOWED_ROWS = 5, 500  # each fifth tick changes 500 of the rows that have streams
STREAMS_S = 60.0  # for opening the streams
MARK_MS = {"p95": 5, "max": 10, "last_reader_ms": 250}
COUNTS = ("tweet_count", "following_count", "follower_count", "like_count")
FORM = (Field("id", INT8, False), Field("username", TEXT), Field("name", TEXT), *(Field(name, INT8) for name in COUNTS))
QUERY = 'SELECT id::text AS "userId", username, name, tweet_count, following_count, follower_count, like_count AS "likeCount" '
QUERY += "FROM user_information WHERE id = $1"


def rows(ids: list[int], versions: list[int], weight: int) -> pa.Table:
    columns = [
        ids,
        [f"user{i}" for i in ids],
        [f"User {i}" for i in ids],
        *([i % 100 + v for i, v in zip(ids, versions, strict=True)],) * 4,
    ]
    arrays = [pa.array(c, f.type.arrow) for c, f in zip(columns, FORM, strict=True)]
    return pa.Table.from_arrays([*arrays, pa.array([weight] * len(ids), pa.int64())], names=[*(f.name for f in FORM), WEIGHT])


@contextmanager
def service(folder: Path, options: argparse.Namespace, commits: dict[int, float]) -> Iterator[tuple[int, int, Callable[[int], None]]]:
    """Starts a gateway. Yields its HTTP port, its process id and a function that writes a tick with changes.

    Users below `options.streams` have streams. The ticks that change some of them are added to `commits`, with the moments after them.
    """
    users, changes, streams = options.users, options.changes, options.streams
    writer = open_epoch(Lake.create(folder / "lake"))
    view = MaterializedView(16384, "user_information", FORM, (0,), stored=True, errors=16385)
    endpoint = Endpoint(16386, "users", depends=(16384,), query=QUERY, method="GET", path="/users/:id", parameters=(Field("id", INT8),))
    writer.append(kind="catalog", catalog=Change(put=(view, endpoint)))
    writer.append([(view.id, rows(list(range(users)), [0] * users, 1))])
    versions = [0] * users

    def tick(step: int) -> None:
        ids = random.sample(range(streams, users), min(users - streams, max(1, round(changes * TICK_S))))
        followed = random.sample(range(streams), min(streams, FOLLOWED_ROWS)) if step % FOLLOWED_EVERY == 0 else []
        ids += followed
        before = [versions[i] for i in ids]
        for i in ids:
            versions[i] += 1
        writer.append([(view.id, pa.concat_tables([rows(ids, before, -1), rows(ids, [v + 1 for v in before], 1)]))])
        if followed:
            commits[writer.newest.time] = time.time()

    command = [
        sys.executable,
        "-m",
        "tailgate",
        "gateway",
        "--data",
        str(folder / "lake"),
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--http-streams",
        str(max(streams, 1)),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            served = re.search(r":(\d+)/", child.stdout.readline())
            assert served is not None, "the gateway did not start"
            assert child.stdout.readline().startswith("ready")
            yield int(served[1]), child.pid, tick
        finally:
            child.terminate()
            child.wait()
            writer.close()


def _length(answer: bytes) -> int | None:
    """Returns the length of the response that begins with these bytes, or None if the header is not complete."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return None
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer)
    match = re.search(rb"Content-Length: (\d+)", answer)
    assert match is not None
    return end + 4 + int(match[1])


def steady(port: int, connections: int, rate: float, count: int, users: int) -> list[float]:
    """Sends requests at a fixed rate, whether or not earlier ones are answered. Returns latencies in seconds."""
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    by_number = {client.fileno(): client for client in clients}
    idle, due_at, received = deque(clients), dict.fromkeys(clients, 0.0), dict.fromkeys(clients, b"")
    latencies: list[float] = []
    gc.collect()
    gc.disable()  # excludes the load's own pauses
    began, sent = time.perf_counter(), 0
    while len(latencies) < count:
        while idle and sent < count and began + sent / rate <= time.perf_counter():
            client = idle.popleft()
            due_at[client] = began + sent / rate
            client.sendall(b"GET /users/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % random.randrange(users))
            sent += 1
        wait = max(began + sent / rate - time.perf_counter(), 0.0) if idle and sent < count else 1.0
        for number in select.select(by_number, (), (), wait)[0]:
            client = by_number[number]
            more = client.recv(1 << 16)
            if not more:
                raise ConnectionError(received[client])
            received[client] += more
            if (length := _length(received[client])) is not None and len(received[client]) >= length:
                latencies.append(time.perf_counter() - due_at[client])
                received[client] = b""
                idle.append(client)
    gc.enable()
    for client in clients:
        client.close()
    return latencies


def follow(port: int, count: int, pipe: Connection) -> None:
    """Follows the first users until a message arrives. Sends a message when it does, and at the end by time: events, newest arrival."""
    selector, received = selectors.DefaultSelector(), dict[socket.socket, bytes]()
    for user in range(count):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET /users/%d HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n" % user)
        selector.register(client, selectors.EVENT_READ)
        received[client] = b""
    arrivals: dict[int, tuple[int, float]] = {}
    waiting, first = count, True
    while not pipe.poll():
        for key, _ in selector.select(0.1):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            more = client.recv(1 << 16)
            if not more:
                raise ConnectionError(received[client])
            *blocks, received[client] = (received[client] + more).split(b"\n\n")
            for block in blocks:
                if (match := re.search(rb"event: update\nid: (\d+)", block)) is not None:
                    number, _ = arrivals.get(int(match[1]), (0, 0.0))
                    arrivals[int(match[1])] = (number + 1, time.time())
                    waiting -= 1
        if first and waiting <= 0:
            pipe.send("ready")
            first = False
    pipe.send(arrivals)


def measure(options: argparse.Namespace) -> dict[str, object]:
    load = [round(x, 1) for x in os.getloadavg()]
    spawning, commits = multiprocessing.get_context("spawn"), dict[int, float]()
    ours, theirs = spawning.Pipe()
    with (
        tempfile.TemporaryDirectory() as folder,
        spawning.Pool(1) as clients,
        service(Path(folder), options, commits) as (port, pid, tick),
        ticking(tick, every=TICK_S) as ticks,
    ):
        clients.apply(steady, (port, 4, options.rate, WARM_REQUESTS, options.users))
        followers = spawning.Process(target=follow, args=(port, options.streams, theirs))
        followers.start()
        assert not options.streams or ours.poll(STREAMS_S), "the streams have not begun"
        stolen, first, cpu = stolen_ms(), ticks[0], cpu_s(pid)
        commits.clear()
        latencies = clients.apply(steady, (port, options.connections, options.rate, round(options.rate * options.seconds), options.users))
        used = cpu_s(pid) - cpu
        measured = dict(commits)
        time.sleep(1)  # the last events arrive
        ours.send("end")
        arrivals = ours.recv() if not options.streams or ours.recv() == "ready" else {}
        quantiles = figures(latencies, options.seconds) | last_readers(measured, arrivals)
        followers.join()
        return {
            **vars(options),
            **quantiles,
            "within_the_mark": all(quantiles[name] < mark for name, mark in MARK_MS.items() if name in quantiles),
            "ticks": ticks[0] - first,
            "gateway_cpu_us_per_request": round(used / len(latencies) * 1e6, 1),
            "gateway_mib": resident_mib(pid),
            "stolen_ms": stolen_ms() - stolen,
            "load": load,
        }


def last_readers(commits: dict[int, float], arrivals: dict[int, tuple[int, float]]) -> dict[str, float]:
    """Returns the milliseconds from a tick's commit to its last reader: the median and the largest."""
    if not commits or not arrivals:
        return {}
    assert all(arrivals[time][0] == FOLLOWED_ROWS for time in commits), "a stream has missed a change"
    delays = [(arrivals[time][1] - commit) * 1000 for time, commit in commits.items()]
    return {"last_reader_ms": round(statistics.median(delays), 1), "last_reader_max_ms": round(max(delays), 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--changes", type=float, default=200, help="changed rows per second")
    parser.add_argument("--streams", type=int, default=0, help="users that are followed by a stream of events each")
    print(json.dumps(measure(parser.parse_args())))
