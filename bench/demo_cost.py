"""Measures the cost of operation for the demo: metrics, watch, console, the log of statements, and endpoints over HTTP, all together.

    python bench/demo_cost.py [--rate 1000] [--for 300] [--parts metrics,watch,console,statements,http]

One system runs. In half of the slices of SLICE_S seconds the parts are in use: a scrape of each process once a second, the watch, the
console's page Now, a line in the log for each poll, and 10 requests/s to an endpoint that finds a row by its key. In the other half
nobody uses them, and the watch is stopped (SIGSTOP). What the processes always do, such as counting, is in both. Slices are in the order
off, on, on, off. The last line is JSON: CPU in percent of a core, by process, freshness in ms as the demo's poller sees it, and ticks per
second; `cost` is the mean of the differences of pairs, with its standard error.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import re
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
from _processes import scraped, stolen_ms, tree_cpu_s  # modules of this folder
from _repeated import repeated

from tailgate.embedded.children import free_port
from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.examples.shop.demo import statements
from tailgate.examples.shop.freshness import Freshness, Poller
from tailgate.examples.shop.load import Load
from tailgate.operations.endpoint import Address

SLICE_S, SETTLE_S, WARM_S = 15.0, 1.0, 60.0  # SETTLE_S: the begin of a slice, which is not measured
PARTS = ("metrics", "watch", "console", "statements", "http")
PROCESSES = ("engine", "gateway", "sinks", "watch", "kafka", "registry")
SCRAPE_S, REQUEST_S = 1.0, 0.1
MARK_PERCENT = 3
CONSOLE = Path(__file__).parents[1] / "tailgate" / "gateway" / "console" / "static"
ENDPOINT = "CREATE ENDPOINT user_information GET '/users/:id' AS SELECT * FROM users WHERE id = :id"


@dataclass(frozen=True, slots=True)
class Slice:
    """CPU in percent of a core by process, freshness in ms, and ticks per second."""

    cpu: dict[str, float]
    freshness: dict[str, float]
    ticks: float

    @property
    def total(self) -> float:
        """Returns the CPU of all processes."""
        return sum(self.cpu.values())


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of loopback: of the first process with metrics, the console, and the endpoints."""

    metrics: int
    console: int
    http: int


class Clients:
    """The clients of the parts, in another process: in that of the load and the poller they would delay both."""

    def __init__(self, ports: Ports, parts: frozenset[str]) -> None:
        self._pipe = _started(_work, ports, parts)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lets the clients work within the block. Raises their error at the end."""
        self._pipe.send(None)
        try:
            yield
        finally:
            self._pipe.send(None)
        if error := self._pipe.recv():
            raise RuntimeError(error)


class Reader:
    """The load and the poller, in another process, so that the supervisor, which copies the logs of the others, does not delay them."""

    def __init__(self, kafka: str, registry: str, rate: float) -> None:
        self._pipe = _started(_send_and_poll, kafka, registry, rate)
        self._pipe.recv()

    def begin(self, dsn: str) -> None:
        """Begins to poll."""
        self._pipe.send(dsn)

    def end(self) -> dict[str, float]:
        """Ends polling, and returns the freshness in ms."""
        self._pipe.send("")
        result: dict[str, float] | str = self._pipe.recv()
        if isinstance(result, str):
            raise RuntimeError(result)
        return result

    def stop(self) -> None:
        """Ends the load."""
        self._pipe.send(None)
        self._pipe.recv()


def _started(work: Callable[..., None], *arguments: object) -> Connection:
    """Returns the pipe to a new process that executes `work`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    context.Process(target=_until_closed, args=(work, theirs, *arguments), daemon=True).start()
    theirs.close()
    return ours


def _until_closed(work: Callable[..., None], pipe: Connection, *arguments: object) -> None:
    """Executes `work`, which ends when the parent has closed the pipe."""
    with suppress(EOFError):
        work(pipe, *arguments)


def _send_and_poll(pipe: Connection, kafka: str, registry: str, rate: float) -> None:
    """Sends the load until None arrives. Polls from a DSN that arrives until the next message, and answers it."""
    load = Load(kafka, registry, rate)
    load.prepare()
    load.start()
    pipe.send("")
    while (dsn := pipe.recv()) is not None:
        freshness = Freshness(load.sending, SETTLE_S)
        poller = Poller(dsn, freshness)
        poller.start()
        pipe.recv()
        poller.ended.set()
        poller.join()
        error = poller.error or load.error
        pipe.send(freshness.percentiles() if error is None else repr(error))
    load.stop()
    pipe.send("")


class Demo:
    """The demo's processes and load."""

    def __init__(self, folder: Path, rate: float, stack: ExitStack) -> None:
        self._port, self.ports = free_port(), Ports(metrics=free_port(5), console=free_port(), http=free_port())
        serves = ("--http", f"127.0.0.1:{self.ports.http}", "--console", f"127.0.0.1:{self.ports.console}")
        metrics = Address("127.0.0.1", self.ports.metrics)
        plan = Plan(folder, f"127.0.0.1:{self._port}", "embedded", "embedded", listening=serves, metrics=metrics)
        self.supervisor = stack.enter_context(Supervisor(plan, lambda words: print(words, file=sys.stderr)))
        assert self.supervisor.kafka is not None and self.supervisor.registry is not None
        self.reader = Reader(self.supervisor.kafka, self.supervisor.registry, rate)
        stack.callback(self.reader.stop)
        with psycopg.connect(self.dsn(), autocommit=True) as db:
            for statement in (*statements(self.supervisor.kafka, self.supervisor.registry), ENDPOINT):
                db.execute(statement.encode())

    def dsn(self, *, logged: bool = False) -> str:
        options = " options='-c log_min_duration_statement=0'" if logged else ""
        return f"host=127.0.0.1 port={self._port} dbname=tailgate user=tailgate{options}"

    def cpu_s(self) -> dict[str, float]:
        return {name: tree_cpu_s(self.supervisor.pid(name)) for name in PROCESSES}

    def measured(self, parts: frozenset[str], clients: Clients) -> Slice:
        """Returns the figures of a slice with these parts in use."""
        os.kill(self.supervisor.pid("watch"), signal.SIGCONT if "watch" in parts else signal.SIGSTOP)
        with ExitStack() as stack:
            if parts:
                stack.enter_context(clients.at_work())
            self.reader.begin(self.dsn(logged="statements" in parts))
            time.sleep(SETTLE_S)
            ticks, before, began = self._ticks(), self.cpu_s(), time.monotonic()
            time.sleep(SLICE_S - SETTLE_S)
            after, seconds = self.cpu_s(), time.monotonic() - began
        freshness, ticks = self.reader.end(), (self._ticks() - ticks) / seconds
        return Slice({name: (after[name] - before[name]) / seconds * 100 for name in before}, freshness, ticks)

    def _ticks(self) -> float:
        """Returns the number of ticks so far."""
        match = re.search(rb"^tailgate_engine_ticks_total ([0-9.e+]+)", scraped(self.ports.metrics + 1), re.MULTILINE)
        assert match is not None
        return float(match[1])


def _work(pipe: Connection, ports: Ports, parts: frozenset[str]) -> None:
    """Runs the clients of parts between every two messages."""
    while True:
        pipe.recv()
        error = ""
        try:
            with ExitStack() as stack:
                if "metrics" in parts:
                    stack.enter_context(repeated(SCRAPE_S, _scrape(ports.metrics, with_watch="watch" in parts)))
                if "console" in parts:
                    stack.enter_context(repeated(_page_s(), _show_page(ports.console)))
                if "http" in parts:
                    stack.enter_context(repeated(REQUEST_S, _request(ports.http)))
                pipe.recv()
        except Exception:  # noqa: BLE001  # sent to the parent
            error = traceback.format_exc()
        pipe.send(error)


def _scrape(first: int, *, with_watch: bool) -> Callable[[], None]:
    ports = range(first, first + 4 + with_watch)  # supervisor, engine, sinks, gateway, watch

    def scrape() -> None:
        for port in ports:
            scraped(port)

    return scrape


def _show_page(port: int) -> Callable[[], None]:
    page = (CONSOLE / "now.js").read_text()
    texts = [text for text in re.findall(r"^const [A-Z]+ = `([^`]+)`", page, re.MULTILINE) if text.startswith("SELECT")]
    assert len(texts) == 3, "the page Now has other statements"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    fields = {"Content-Type": "application/json", "Tailgate-Console": "1"}

    def show() -> None:
        for text in texts:
            connection.request("POST", "/statement", json.dumps({"sql": text}), fields)
            body = connection.getresponse().read()
            assert b"event: end" in body, body

    return show


def _request(port: int) -> Callable[[], None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def request() -> None:
        connection.request("GET", "/users/1")
        response = connection.getresponse()
        body = response.read()
        assert response.status in (200, 404), body  # the load also removes users

    return request


def _page_s() -> float:
    """Returns the seconds after which the console reads the statements of an open page again."""
    match = re.search(r"^const REFRESH_MS = (\d+);", (CONSOLE / "app.js").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1000


def figures(slices: list[Slice]) -> dict[str, object]:
    """Returns the medians of slices."""
    cpu = {name: round(statistics.median(each.cpu[name] for each in slices), 1) for name in PROCESSES}
    freshness = {name: round(statistics.median(each.freshness[name] for each in slices)) for name in ("p50", "p95")}
    total, ticks = (round(statistics.median(value), 1) for value in ([s.total for s in slices], [s.ticks for s in slices]))
    return {"cpu_percent": cpu, "cpu_percent_total": total, "freshness_ms": freshness, "ticks_per_s": ticks}


def cost(differences: list[float]) -> dict[str, float]:
    """Returns mean and standard error."""
    error = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else float("nan")
    return {"mean": round(statistics.mean(differences), 2), "error": round(error, 2)}


def measure(rate: float, seconds: float, parts: frozenset[str]) -> dict[str, object]:
    load, stolen = [round(x, 1) for x in os.getloadavg()], stolen_ms()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        demo = Demo(folder, rate, stack)
        clients = Clients(demo.ports, parts)
        deadline = time.monotonic() + WARM_S
        while time.monotonic() < deadline:
            demo.measured(parts, clients)  # also compiles the code of the parts and fills their caches
        off, on = list[Slice](), list[Slice]()
        for pair in range(max(2, round(seconds / (2 * SLICE_S)))):
            for each in (off, on) if pair % 2 == 0 else (on, off):
                each.append(demo.measured(parts if each is on else frozenset(), clients))
    pairs = list(zip(on, off, strict=True))
    cpu = cost([with_.total - without.total for with_, without in pairs])
    return {
        "rate": rate,
        "parts": sorted(parts),
        "pairs": len(pairs),
        "off": figures(off),
        "on": figures(on),
        "cost_percent_of_a_core": cpu,
        "cost_freshness_p50_ms": cost([with_.freshness["p50"] - without.freshness["p50"] for with_, without in pairs]),
        "cost_freshness_p95_ms": cost([with_.freshness["p95"] - without.freshness["p95"] for with_, without in pairs]),
        "mark_percent": MARK_PERCENT,
        "stolen_ms": stolen_ms() - stolen,
        "load": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1000, help="page views per second")
    parser.add_argument("--for", dest="seconds", type=float, default=300, metavar="SECONDS", help="of all slices")
    parser.add_argument("--parts", default=",".join(PARTS), help="those that are in use (all)")
    options = parser.parse_args()
    parts = frozenset(options.parts.split(","))
    if not parts <= set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    print(json.dumps(measure(options.rate, options.seconds, parts)))


if __name__ == "__main__":
    main()
