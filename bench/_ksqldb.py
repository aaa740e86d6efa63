"""A Tailgate with ksqlDB's HTTP API over a separate Kafka, and clients of the API."""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.w1.usage import Usage
from tailgate.embedded.children import Child, free_port
from tailgate.embedded.kafka import Kafka
from tailgate.ksql.api import MEDIA, Server
from tailgate.lake.folder import Lake
from tailgate.lake.log.log import name as entry_name

READY = timedelta(seconds=120)
ANSWER_S = 600.0
TOPIC_S = 30.0
BATCH_S = 0.002  # the longest wait of a consumer for more records
BODY_END = b'"}]\n'  # of a complete result


class System:
    """The addresses of a running Tailgate: `kafka`, and `port` of the HTTP API. `data`: the folder of its lake."""

    def __init__(self, kafka: str, port: int, usage: Usage, data: Path) -> None:
        self.kafka, self.port, self.usage, self.data = kafka, port, usage, data
        self._server = Server(f"http://127.0.0.1:{port}")

    def run(self, statement: str, offset: str = "earliest") -> float:
        """Runs a statement. Returns the seconds until its answer."""
        began = time.perf_counter()
        self._server.run(statement, {"auto.offset.reset": offset}, {})
        return time.perf_counter() - began

    def create(self, *topics: str) -> None:
        """Creates topics with one partition."""
        admin = AdminClient({"bootstrap.servers": self.kafka})
        for topic in admin.create_topics([NewTopic(name, 1, 1) for name in topics]).values():
            topic.result(TOPIC_S)

    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.kafka, "linger.ms": 1, "queue.buffering.max.messages": 2_000_000})

    def reader(self, topic: str) -> Consumer:
        """Returns a consumer of committed records, at the first one of the topic."""
        consumer = Consumer(
            {"bootstrap.servers": self.kafka, "group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 10}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        return consumer


def records(consumer: Consumer) -> Iterator[Message]:
    """Yields the records of a consumer as they arrive. Raises TimeoutError if none arrives in ANSWER_S."""
    newest = time.monotonic()
    while time.monotonic() - newest < ANSWER_S:
        if messages := consumer.consume(10_000, BATCH_S):
            newest = time.monotonic()
            yield from (message for message in messages if message.error() is None)
    raise TimeoutError(f"no record in {ANSWER_S:g} s")


def steps(data: Path, name: str, column: str, sent: Sequence[float], arrived: Sequence[float], first: int) -> dict[str, list[float]]:
    """Returns the seconds of the steps of each tick that added events to a stream, from its oldest event of those from `first` on.

    `wait`: from the producer's call to the begin of the tick; `tick`: to its entry; `sink`: from there to the consumer of the topic. An
    event's number is in a column, and its times, in seconds since the epoch, are in `sent` and `arrived`. Entries that are in segments by
    now are left out.
    """
    lake = Lake(data)
    newest = lake.log.newest()
    assert newest is not None
    stream = next(item for item in lake.catalog_at(newest.n).items.values() if item.name == name and item.columns)
    position = [field.name for field in stream.columns].index(column)
    out: dict[str, list[float]] = {"wait": [], "tick": [], "sink": []}
    for entry in lake.log.after(0):
        changes, file = entry.changes(stream.id), data / entry_name(entry.header.n)
        if changes is None or not file.exists():
            continue
        numbers = changes.column(position).to_pylist()
        if numbers and min(numbers) >= first:
            began, ended = entry.header.time / 1000, file.stat().st_mtime
            out["wait"].append(began - sent[min(numbers)])
            out["tick"].append(ended - began)
            out["sink"].append(arrived[min(numbers)] - ended)
    return out


@contextmanager
def running(jvm: tuple[str, ...]) -> Iterator[System]:
    """Starts a broker and a Tailgate, and stops them at the end of the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tailgate-bench-")))
        kafka = Kafka(folder / "kafka", jvm=jvm)
        stack.callback(kafka.stop)
        kafka.start()
        port = free_port()
        command = [sys.executable, "-m", "tailgate", "up", "--data", str(folder / "lake"), "--kafka", kafka.address]
        command += ["--listen", f"127.0.0.1:{free_port()}", "--ksqldb", f"127.0.0.1:{port}"]
        child = Child("up", command, log=folder / "up.log")
        stack.callback(child.stop)
        child.wait_ready(lambda: answers(port), READY)
        yield System(kafka.address, port, stack.enter_context(Usage({"tailgate": [child]})), folder / "lake")


def answers(port: int) -> bool:
    """Returns whether the HTTP API answers, with an engine behind it."""
    try:
        Server(f"http://127.0.0.1:{port}").run("SHOW STREAMS;", {}, {})
    except Exception:  # noqa: BLE001  # not yet
        return False
    return True


def request(statement: str) -> bytes:
    """Returns the bytes of a query's request.

    >>> request("SELECT 1;").splitlines()[0]
    b'POST /query HTTP/1.1'
    """
    body = json.dumps({"ksql": statement}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: localhost\r\nAccept: {MEDIA}\r\nContent-Type: {MEDIA}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def pulls(port: int, connections: int, seconds: float, statements: list[str]) -> list[float]:
    """Sends pull queries over connections that stay open, each as soon as the one before is answered.

    Returns the latencies in seconds. Raises RuntimeError if a query fails or returns no row.
    """
    requests, number = [request(statement) for statement in statements], 0
    latencies: list[float] = []
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        began: dict[socket.socket, float] = {}
        received: dict[socket.socket, bytes] = {}

        def send(client: socket.socket) -> None:
            nonlocal number
            began[client], received[client], number = time.perf_counter(), b"", number + 1
            client.sendall(requests[number % len(requests)])

        for _ in range(connections):
            client = stack.enter_context(connected(port))
            selector.register(client, selectors.EVENT_READ)
            send(client)
        end = time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            for key, _ in selector.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                more = client.recv(1 << 16)
                if not more:
                    raise ConnectionError(received[client])
                received[client] += more
                if received[client].endswith(BODY_END):
                    if b" 200 " not in received[client][:16] or b'"row"' not in received[client]:
                        raise RuntimeError(received[client].decode())
                    now = time.perf_counter()
                    latencies.append(now - began[client])
                    send(client)
    return latencies


class Push:
    """Push queries of the same statement, read by one selector. Its rows end with the number of an event."""

    def __init__(self, port: int, statement: str, count: int) -> None:
        self._selector, self._clients = selectors.DefaultSelector(), [connected(port) for _ in range(count)]
        self._received = dict.fromkeys(self._clients, b"")
        for client in self._clients:
            self._selector.register(client, selectors.EVENT_READ)
            client.sendall(request(statement))

    def arrived(self, count: int, timeout_s: float) -> list[tuple[int, float]]:
        """Returns the numbers of `count` rows, and when each arrived. Raises TimeoutError if fewer arrive in time."""
        out: list[tuple[int, float]] = []
        end = time.perf_counter() + timeout_s
        while len(out) < count:
            if time.perf_counter() > end:
                raise TimeoutError(f"{len(out)} of {count} rows in {timeout_s:g} s")
            for key, _ in self._selector.select(0.1):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                more = client.recv(1 << 16)
                if not more:
                    raise ConnectionError(self._received[client])
                now = time.perf_counter()
                *lines, self._received[client] = (self._received[client] + more).split(b"\n")
                out += [(int(match[1]), now) for line in lines if (match := re.search(rb'"columns":\[.*?(\d+)\]', line))]
        return out

    def close(self) -> None:
        self._selector.close()
        for client in self._clients:
            client.close()
