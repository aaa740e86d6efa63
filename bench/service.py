"""Measures an endpoint that reads a view by key over HTTP, at a fixed rate, during ticks with changes.

    python bench/service.py [--users 100000] [--rate 1000] [--connections 100] [--seconds 60] [--changes 200] [--streams 0]
    python bench/service.py --writes [--rate 100]        requests of POST that update a row of a table, without ticks

PostgreSQL 15 behind a plain asynchronous server (`_peer_service.py`) has the same rows, changes and requests, and is measured in turns of
SLICE_S seconds; `--alone` leaves it out. The load is another process. A latency counts from the time when the request was due. The first
requests build the gateway's index and are not measured. With `--streams`, a third process follows as many users; once a second a tick
changes 500 of them, and `last_reader_ms` is the time from its commit to its last reader, the median over these ticks. The last line is
JSON: latencies in ms, memory and CPU of the servers, and whether the marks are reached. `slowest` has the latency of each of the slowest
requests, the part until it was sent, and the part in which a process that only sleeps was late (`sleeper_ms`: the largest of its
delays), because it waited for the machine.
"""

from __future__ import annotations

import argparse
import contextlib
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
import sys
import tempfile
import time
from collections import deque
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.pool import Pool
from pathlib import Path

from _load import figures  # a module of this folder
from _processes import Sleeper, resident_mib, stolen_ms, tree_cpu_s, within
from polls import ticking

sys.path.insert(0, str(Path(__file__).parents[1]))

from _services import Service, gateway, postgresql, tailgate

TICK_S = 0.2  # seconds between ticks
WARM_REQUESTS = 2_000
FOLLOWED_EVERY, FOLLOWED_ROWS = 5, 500  # each fifth tick changes 500 of the rows that have streams
STREAMS_S = 60.0  # for opening the streams
SLICE_S = 10.0  # of one server's turn
SLOWEST = 5  # requests of each service that are printed
LOAD_NICE = -10  # priority of the process that sends and times requests: its own waits for a processor do not count
MARK_MS = {"p95": 5, "max": 10, "last_reader_ms": 250}
READ = b"GET /users/%d HTTP/1.1\r\nHost: localhost\r\n\r\n"
WRITE = b"POST /users/%d/likes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"

Times = tuple[float, float, float]  # of a request, in seconds: when it was due, sent and answered


def _is_complete(answer: bytes) -> bool:
    """Returns whether these bytes are a whole response."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer)
    match = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
    assert match is not None
    return len(answer) >= end + 4 + int(match[1])


def _with_more(client: socket.socket, answer: bytes) -> bytes:
    """Returns the bytes of a response, and those that follow. Raises ConnectionError if the server has closed the connection."""
    more = client.recv(1 << 16)
    if not more:
        raise ConnectionError(answer)
    return answer + more


def steady(request: bytes, port: int, connections: int, rate: float, count: int, users: int) -> list[Times]:
    """Sends requests for random users at a fixed rate, whether or not earlier ones are answered."""
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for client in clients:  # the server has accepted each before the first request that counts
        client.sendall(request % random.randrange(users))
        answer = b""
        while not _is_complete(answer):
            answer = _with_more(client, answer)
    by_number = {client.fileno(): client for client in clients}
    idle, due_at, received = deque(clients), dict.fromkeys(clients, (0.0, 0.0)), dict.fromkeys(clients, b"")
    times: list[Times] = []
    gc.collect()
    gc.disable()  # excludes the load's own pauses
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, LOAD_NICE)
    began, sent = time.perf_counter(), 0
    while len(times) < count:
        while idle and sent < count and began + sent / rate <= time.perf_counter():
            client = idle.popleft()
            due_at[client] = (began + sent / rate, time.perf_counter())
            client.sendall(request % random.randrange(users))
            sent += 1
        wait = max(began + sent / rate - time.perf_counter(), 0.0) if idle and sent < count else 1.0
        for number in select.select(by_number, (), (), wait)[0]:
            client = by_number[number]
            received[client] = _with_more(client, received[client])
            if _is_complete(received[client]):
                times.append((*due_at[client], time.perf_counter()))
                received[client] = b""
                idle.append(client)
    gc.enable()
    for client in clients:
        client.close()
    return times


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
            *blocks, received[client] = _with_more(client, received[client]).split(b"\n\n")
            for block in blocks:
                if (match := re.search(rb"event: update\nid: (\d+)", block)) is not None:
                    number, _ = arrivals.get(int(match[1]), (0, 0.0))
                    arrivals[int(match[1])] = (number + 1, time.time())
                    waiting -= 1
        if first and waiting <= 0:
            pipe.send("ready")
            first = False
    pipe.send(arrivals)


class Changes:
    """The changes of ticks, which all services get. `commits`: by time, when a tick that changed users with streams was committed."""

    def __init__(self, options: argparse.Namespace, services: list[Service]) -> None:
        self._options, self._services = options, services
        self._versions = [0] * options.users
        self.commits: dict[float, float] = {}

    def tick(self, step: int) -> None:
        """Changes random users without streams, and in each FOLLOWED_EVERY-th step some with streams."""
        users, changes, streams = self._options.users, self._options.changes, self._options.streams
        ids = random.sample(range(streams, users), min(users - streams, max(1, round(changes * TICK_S))))
        followed = random.sample(range(streams), min(streams, FOLLOWED_ROWS)) if step % FOLLOWED_EVERY == 0 else []
        ids += followed
        before = [self._versions[i] for i in ids]
        for i in ids:
            self._versions[i] += 1
        for service in self._services:
            time_ = service.change(ids, before)
            if followed and time_ is not None:
                self.commits[time_] = time.time()


def in_turns(request: bytes, clients: Pool, services: dict[str, Service], options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Returns the figures of each service."""
    times: dict[str, list[Times]] = {name: [] for name in services}
    used = dict.fromkeys(services, 0.0)
    slices = max(1, round(options.seconds / SLICE_S))
    with Sleeper(LOAD_NICE) as sleeper:
        for _ in range(slices):
            for name, service in services.items():
                before = sum(map(tree_cpu_s, service.pids))
                count = round(options.rate * options.seconds / slices)
                times[name] += clients.apply(steady, (request, service.port, options.connections, options.rate, count, options.users))
                used[name] += sum(map(tree_cpu_s, service.pids)) - before
        delays = sleeper.delays()
    return {
        name: {
            **figures([answered - due for due, _, answered in of], options.seconds),
            "cpu_us_per_request": round(used[name] / len(of) * 1e6, 1),
            "mib": resident_mib(services[name].pids[0]),
            "slowest": slowest(of, delays),
        }
        for name, of in times.items()
    } | {"sleeper_ms": {"max": milliseconds(max((end - begin for begin, end in delays), default=0.0))}}


def slowest(times: list[Times], delays: list[tuple[float, float]]) -> list[dict[str, float]]:
    """Returns the latency in ms of the slowest requests, with the parts until it was sent, and in which the sleeper was late."""
    last = sorted(times, key=lambda each: each[2] - each[0])[: -SLOWEST - 1 : -1]
    return [
        {"ms": milliseconds(answered - due), "unsent": milliseconds(sent - due), "late": milliseconds(within(delays, due, answered))}
        for due, sent, answered in last
    ]


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 2)


def measure(options: argparse.Namespace) -> dict[str, object]:
    load, stolen = [round(x, 1) for x in os.getloadavg()], stolen_ms()
    request = WRITE if options.writes else READ
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        clients = stack.enter_context(multiprocessing.get_context("spawn").Pool(1))
        ours = tailgate(folder, options.users) if options.writes else gateway(folder, options.users, options.streams)
        services = {"tailgate": stack.enter_context(ours)}
        if not options.alone:
            services["postgresql"] = stack.enter_context(postgresql(options.users))
        changes = Changes(options, list(services.values()))
        ticks = [0] if options.writes else stack.enter_context(ticking(changes.tick, every=TICK_S))
        for service in services.values():
            clients.apply(
                steady, (request, service.port, 4, options.rate, min(WARM_REQUESTS, round(options.rate * SLICE_S)), options.users)
            )
        followed = stack.enter_context(Followers(services["tailgate"].port, options.streams))
        changes.commits.clear()
        first = ticks[0]
        results = in_turns(request, clients, services, options)
        results["tailgate"] |= followed.figures(dict(changes.commits))
        quantiles = results["tailgate"]
        return {
            **vars(options),
            **results,
            "within_the_mark": all(quantiles[name] < mark for name, mark in MARK_MS.items() if name in quantiles),
            "ticks": ticks[0] - first,
            "stolen_ms": stolen_ms() - stolen,
            "load": load,
        }


class Followers:
    """A process that follows the first users, within the block."""

    def __init__(self, port: int, streams: int) -> None:
        self._streams, spawning = streams, multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=follow, args=(port, streams, theirs))

    def __enter__(self) -> Followers:
        if self._streams:
            self._process.start()
            assert self._pipe.poll(STREAMS_S), "the streams have not begun"
            assert self._pipe.recv() == "ready"
        return self

    def __exit__(self, *exception: object) -> None:
        if self._streams and self._process.is_alive():
            self._process.kill()

    def figures(self, commits: dict[float, float]) -> dict[str, float]:
        """Ends the streams. Returns the delays of their last readers."""
        if not self._streams:
            return {}
        time.sleep(1)  # the last events arrive
        self._pipe.send("end")
        arrivals = self._pipe.recv()
        self._process.join()
        return last_readers(commits, arrivals, min(self._streams, FOLLOWED_ROWS))


def last_readers(commits: dict[float, float], arrivals: dict[float, tuple[int, float]], readers: int) -> dict[str, float]:
    """Returns the milliseconds from a tick's commit to the last of its readers: the median and the largest."""
    if not commits or not arrivals:
        return {}
    assert all(arrivals[time][0] == readers for time in commits), "a stream has missed a change"
    delays = [(arrivals[time][1] - commit) * 1000 for time, commit in commits.items()]
    return {"last_reader_ms": round(statistics.median(delays), 1), "last_reader_max_ms": round(max(delays), 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000, help="requests per second")
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--changes", type=float, default=200, help="changed rows per second")
    parser.add_argument("--streams", type=int, default=0, help="users that are followed by a stream of events each")
    parser.add_argument("--writes", action="store_true", help="requests that write, in place of those that read")
    parser.add_argument("--alone", action="store_true", help="without PostgreSQL")
    print(json.dumps(measure(parser.parse_args())))
