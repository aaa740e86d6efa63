"""`tailgate demo`: a complete Tailgate with the shop's load, and a live table of the view.

    Kafka + registry + engine + gateway + sinks (embedded.supervisor)
    load ──► topics          statements.sql ──psycopg──► gateway          poller ──every 20 ms──► freshness

examples.shop.freshness defines freshness. With `--check` the load stops, and view and sink must equal a
recompute of the topics.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import psycopg
from rich.console import Console
from rich.live import Live
from rich.table import Table

from tailgate.embedded.supervisor import Plan, Supervisor
from tailgate.examples.shop.freshness import VIEW, Freshness, Poller
from tailgate.examples.shop.load import Load
from tailgate.examples.shop.recompute import Rows, Topics, plain
from tailgate.lake.folder import Lake

SINK_TOPIC = "pageviews-user-segment-sink"
SHOW_S = 0.5
SETTLE = timedelta(seconds=60)  # time for view and sink to reach the end of the topics


def statements(kafka: str, registry: str) -> list[str]:
    """Returns the statements of scenario 1 with this machine's addresses."""
    text = (Path(__file__).parent / "statements.sql").read_text()
    text = (
        re.sub(r"--.*", "", text)
        .replace("http://schema-registry:8081", registry)
        .replace("'kafka:9092'", f"'{kafka}'")
        .replace("BROKER 'kafka'", f"BROKER '{kafka}'")
    )
    return [s.strip() for s in text.split(";") if s.strip()]


def run(plan: Plan, rate: float, seconds: float | None, check: bool) -> int:
    """Runs the demo until Ctrl-C or for `seconds`.

    Returns 1 if the check found a difference, otherwise 0.
    """
    console = Console(stderr=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _interrupt(stop))
    try:
        with Supervisor(plan, lambda words: console.print(f"[dim]demo: {words}")) as supervisor:
            return _demo(supervisor, console, stop, rate, seconds, check)
    except KeyboardInterrupt:
        return 0


def _interrupt(stop: threading.Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
    stop.set()


def _demo(supervisor: Supervisor, console: Console, stop: threading.Event, rate: float, seconds: float | None, check: bool) -> int:
    host, _, port = supervisor.plan.listen.rpartition(":")
    dsn = f"host={host} port={port} dbname=tailgate user=demo"
    assert supervisor.kafka is not None and supervisor.registry is not None
    console.print("[dim]demo: users and page views begin to come")
    load = Load(supervisor.kafka, supervisor.registry, rate)
    load.prepare()
    load.start()
    with psycopg.connect(dsn, autocommit=True) as db:
        existing = {name for (name,) in db.execute("SELECT relname FROM pg_catalog.pg_class").fetchall()}
        for statement in statements(supervisor.kafka, supervisor.registry):
            match = re.match(r"CREATE (?:MATERIALIZED )?\w+ (\w+)", statement)
            if match and match[1] in existing:
                continue
            began = time.monotonic()
            db.execute(statement)
            console.print(f"[dim]demo: {' '.join(statement.split())[:100]}… [{time.monotonic() - began:.1f} s]")
    console.print(supervisor.ready_line)
    freshness = Freshness(load.sending)
    poller = Poller(dsn, freshness)
    poller.start()
    deadline = None if seconds is None else time.monotonic() + seconds
    tables = 0
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        while not stop.is_set() and (deadline is None or time.monotonic() < deadline):
            supervisor.watch()
            if poller.error is not None:
                console.print(f"[yellow]demo: the poller connects again: {poller.error}")
                poller = Poller(dsn, freshness)
                poller.start()
            live.update(_table(poller, freshness, load, f"psql -h {host} -p {port} -U demo tailgate"))
            tables += 1
            stop.wait(SHOW_S)
    load.stop()
    equal = _check(supervisor, dsn, console) if check else None
    poller.ended.set()
    poller.join(5)
    newest = Lake.open(supervisor.plan.data).log.newest()
    answer = {
        "events": load.events,
        "ticks": newest.n if newest else 0,
        "polls": poller.polls,
        "freshness_ms": freshness.percentiles(),
    }
    if check:
        print(json.dumps({**answer, "equal": equal}), flush=True)
    return 0 if equal in (None, True) else 1


def _table(poller: Poller, freshness: Freshness, load: Load, psql: str) -> Table:
    fresh = freshness.percentiles()
    title = f"{VIEW}: {load.events} events sent; freshness p50 {fresh.get('p50', '-')} ms, p95 {fresh.get('p95', '-')} ms"
    table = Table(
        "is_vip",
        "channel",
        "ts_hour",
        "pageview_count",
        title=title,
        caption=f"{psql}\nCOPY (TAIL {VIEW}) TO STDOUT;   Ctrl-C ends the demo",
    )
    for row in poller.rows[:20]:
        table.add_row(*map(str, row))
    return table


def _check(supervisor: Supervisor, dsn: str, console: Console) -> bool:
    """Returns whether view and sink equal the recompute, after they have read all messages."""
    assert supervisor.kafka is not None and supervisor.registry is not None
    topics = Topics(supervisor.kafka, supervisor.registry)
    console.print("demo: computing the view again from the topics")
    expected, messages = topics.view()
    deadline = time.monotonic() + SETTLE.total_seconds()
    view, sink = _view(dsn), Rows()
    while time.monotonic() < deadline:
        supervisor.watch()
        view = _view(dsn)
        if view == expected:
            sink = topics.sink(SINK_TOPIC)
            if sink == expected:
                console.print(f"demo: view, sink and recompute of {messages} messages are equal: {len(expected)} rows")
                return True
        time.sleep(SHOW_S)
    for name, rows in (("view", view), ("sink", sink)):
        if rows != expected:
            more, less = dict(list((rows - expected).items())[:5]), dict(list((expected - rows).items())[:5])
            console.print(f"demo: the {name} differs from the recompute: it has {more}, it lacks {less}")
    return False


def _view(dsn: str) -> Rows:
    with psycopg.connect(dsn) as db:
        return Rows(plain(row) for row in db.execute(f"SELECT * FROM {VIEW}").fetchall())
